"""Kind "peers": what people would use instead, beside us; the same subscriptions, the same messages, equal answers.

`method` is a name of `peers.PEERS`; one that is not installed here is left out, with the reason. Batches are what the plan
calls chunks; single messages go through the same call, one at a time.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.experiments.shared.answers import compare_answers, count_work, sorted_answer, spread_rows
from benchmarks.peers import PEERS
from benchmarks.peers.peer import Peer
from benchmarks.plan import Plan, Point, Series
from benchmarks.record import Record
from nearcast.boolean.engine import Matcher
from nearcast.errors import PlanError
from nearcast.timing import in_chunks, time_once, time_passes
from nearcast.workloads import open_workload

_MOST_SINGLES = 500


class _Scene:
    """What all series of a point share."""

    def __init__(self, plan: Plan, point: Point) -> None:
        workload = open_workload(point.workload, **point.workload_parameters)
        self.described = workload.describe()
        self.subscriptions = workload.subscriptions(point.size.n_subscriptions, plan.seed)
        self.messages = workload.messages(point.size.n_messages, plan.seed).drop_columns(["time"])
        self.history = workload.history(point.size.n_history).drop_columns(["time"])
        self.n_passes = point.size.repetitions
        self.chunk = point.size.chunk
        self.sample = self.messages.take(pa.array(spread_rows(self.messages.num_rows, plan.check.messages)))
        matcher = Matcher("auto", workload.space)
        matcher.subscribe_table(self.subscriptions)
        self.expected = sorted_answer(matcher.match_table(self.sample))
        _, self.n_matches = count_work(matcher, in_chunks(self.messages, self.chunk))


def measure_peers(plan: Plan, point: Point, say: Callable[[str], None]) -> list[Record]:
    """One record per series."""
    for series in point.series:
        if series.subject not in PEERS:
            raise PlanError(f"method {series.subject!r} of {plan.name!r}: expected one of {', '.join(PEERS)}")
    say("generating")
    scene = _Scene(plan, point)
    records = []
    for series in point.series:
        say(series.label)
        records.append(_measure(scene, series))
    return records


def _measure(scene: _Scene, series: Series) -> Record:
    facts: dict[str, Any] = {"workload": scene.described, "n_subscriptions": scene.subscriptions.num_rows}
    kind = PEERS[series.subject]
    reason = kind.missing()
    if reason is not None:
        return Record(facts | {"left_out": reason}, np.empty((0, 0)), np.empty(0, np.int64))
    # Some peers take long for many: their series say how many messages are enough.
    messages = scene.messages.slice(0, int(series.parameters.get("messages", scene.messages.num_rows)))
    before = _peak_bytes()
    peer = kind()
    try:
        # Once, whatever else goes on: a peer that is loaded twice holds twice as much.
        facts["build_seconds"] = float(time_once([peer], lambda one: one.load(scene.subscriptions, scene.history)).sum())
        answer = sorted_answer(peer.match(scene.sample).cast(scene.expected.schema))
        compare_answers(series.label, answer, "Matcher", scene.expected)
        facts["check"] = {"against": "Matcher", "messages": scene.sample.num_rows, "pairs": answer.num_rows, "equal": True}
        facts["bytes"] = peer.n_bytes if peer.n_bytes is not None else _peak_bytes() - before
        facts["single_seconds"] = _single_seconds(peer, messages)
        chunks = in_chunks(messages, scene.chunk) if peer.takes_batches else []
        seconds = time_passes(chunks, peer.match, scene.n_passes) if chunks else np.empty((0, 0))
    finally:
        peer.close()
    return Record(facts, seconds, np.array([chunk.num_rows for chunk in chunks], np.int64), {}, scene.n_matches)


def _single_seconds(peer: Peer, messages: pa.Table) -> list[float]:
    if not peer.takes_singles:
        return []
    singles = [messages.slice(row, 1) for row in spread_rows(messages.num_rows, _MOST_SINGLES).tolist()]
    # Once before the clock runs: plans are made, caches are filled.
    time_once(singles, peer.match)
    return [float(one) for one in time_once(singles, peer.match)]


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
