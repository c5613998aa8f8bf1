"""Peers: systems that people would use instead of nearcast, with the same subscriptions, the same messages and equal answers.

`method` is a name of `benchmarks.peers.PEERS`. A peer that is not installed is left out, with the reason. Batches have the size
of the chunks of the plan; single messages go through the same call, one at a time.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.experiments import Experiment, read_fields
from benchmarks.experiments.shared.answers import compare_answers, count_work, sorted_answer, spread_rows
from benchmarks.peers import PEERS
from benchmarks.peers.peer import Peer
from benchmarks.plan import Series
from benchmarks.record import Record
from nearcast.boolean.engine import Matcher
from nearcast.timing import in_chunks, time_once, time_passes
from nearcast.workloads import open_workload

_MOST_SINGLES = 500


@dataclass(frozen=True, slots=True)
class Parameters:
    """`messages` limits how many messages a slow peer gets; 0 = all."""

    messages: int = 0


class Peers(Experiment[Parameters]):
    """All answers are compared with those of the default index."""

    subject = "method"
    methods = PEERS
    metrics = (
        "messages_per_second",
        "us_per_message",
        "singles_per_second",
        "single_us_per_message",
        "matches_per_message",
        "build_seconds",
        "bytes_per_subscription",
    )

    def read_parameters(self, series: Series) -> Parameters:
        return read_fields(Parameters, series)

    def prepare(self) -> None:
        size, seed = self.point.size, self.plan.seed
        workload = open_workload(self.point.workload, **self.point.workload_parameters)
        self.workload_facts = workload.describe()
        self.subscriptions = workload.subscriptions(size.n_subscriptions, seed)
        self.messages = workload.messages(size.n_messages, seed).drop_columns(["time"])
        self.history = workload.history(size.n_history).drop_columns(["time"])
        self.sample = self.messages.take(pa.array(spread_rows(self.messages.num_rows, self.plan.check.messages)))
        matcher = Matcher("auto", workload.space)
        matcher.subscribe_table(self.subscriptions)
        self.expected = sorted_answer(matcher.match_table(self.sample))
        _, self.n_matches = count_work(matcher, in_chunks(self.messages, size.chunk))

    def measure(self, series: Series) -> Record:
        facts: dict[str, Any] = {"workload": self.workload_facts, "n_subscriptions": self.subscriptions.num_rows}
        kind = PEERS[series.subject]
        reason = kind.missing()
        if reason is not None:
            return Record(facts | {"left_out": reason}, np.empty((0, 0)), np.empty(0, np.int64))
        messages = self.messages.slice(0, self.parameters[series.label].messages or None)
        before = _peak_bytes()
        peer = kind()
        try:
            # Timed once, without a second try: a peer that is loaded twice holds twice as much.
            facts["build_seconds"] = float(time_once([peer], lambda one: one.load(self.subscriptions, self.history)).sum())
            answer = sorted_answer(peer.match(self.sample).cast(self.expected.schema))
            compare_answers(series.label, answer, "Matcher", self.expected)
            checked = {"against": "Matcher", "messages": self.sample.num_rows, "pairs": answer.num_rows, "equal": True}
            facts["check"] = checked
            facts["bytes"] = peer.n_bytes if peer.n_bytes is not None else _peak_bytes() - before
            facts["single_seconds"] = _single_seconds(peer, messages)
            chunks = in_chunks(messages, self.point.size.chunk) if peer.takes_batches else []
            seconds = time_passes(chunks, peer.match, self.point.size.repetitions) if chunks else np.empty((0, 0))
        finally:
            peer.close()
        return Record(facts, seconds, np.array([chunk.num_rows for chunk in chunks], np.int64), {}, self.n_matches)


EXPERIMENT = Peers


def _single_seconds(peer: Peer, messages: pa.Table) -> list[float]:
    if not peer.takes_singles:
        return []
    singles = [messages.slice(row, 1) for row in spread_rows(messages.num_rows, _MOST_SINGLES).tolist()]
    # Once untimed: plans are made, caches are filled.
    time_once(singles, peer.match)
    return [float(one) for one in time_once(singles, peer.match)]


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
