"""Kind "match": subscriptions filed in an index, a stream of messages matched chunk by chunk.

Timed are messages read before (keyword ids in, subscription ids out), and beside it the whole way from table to table.
Every answer to the checked sample is compared with another index; a wrong index has no times.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.experiments.shared.answers import compare_answers, count_work, sorted_answer, spread_rows
from benchmarks.plan import Plan, Point, Series
from benchmarks.record import Record
from nearcast.boolean.engine import Matcher
from nearcast.engine.registry import indexes
from nearcast.errors import NearcastError, PlanError
from nearcast.timing import in_chunks, time_passes, timed
from nearcast.workloads import open_workload

_WARM_SUBSCRIPTIONS = 2_000
_INSERTED_AT_ONCE = 1_000
_CALLS = 20


class _Scene:
    """What all series of a point share."""

    def __init__(self, plan: Plan, point: Point) -> None:
        workload = open_workload(point.workload, **point.workload_parameters)
        self.space = workload.space
        self.described = workload.describe()
        self.subscriptions = workload.subscriptions(point.size.n_subscriptions, plan.seed)
        self.n_built = self.subscriptions.num_rows * point.size.built_percent // 100
        self.messages = workload.messages(point.size.n_messages, plan.seed)
        self.sample = self.messages.take(pa.array(spread_rows(self.messages.num_rows, plan.check.messages)))
        self.chunks = in_chunks(self.messages, point.size.chunk)
        self.n_passes = point.size.repetitions
        self.history = workload.history(point.size.n_history) if point.size.n_history else None

    def matcher(self, index: str, parameters: Any) -> Matcher:
        return Matcher(index, self.space, history=self.history, **parameters)


def measure_matching(plan: Plan, point: Point, say: Callable[[str], None]) -> list[Record]:
    """One record per series."""
    _check_reference(plan)
    say("generating")
    scene = _Scene(plan, point)
    records, answers = [], []
    # Series that take turns share whatever else the machine does meanwhile, but all must fit into memory.
    for group in [point.series] if point.size.takes_turns else [[series] for series in point.series]:
        built = [_Built(scene, series, say) for series in group]
        for _ in range(scene.n_passes):
            for one in built:
                one.time_pass()
        records += [one.record() for one in built]
        answers += [sorted_answer(one.matcher.match_table(scene.sample)) for one in built]
    say("checking")
    scanned = None if plan.check.against == "other" else _answer_of(scene, plan.check.against)
    for position, (record, answer) in enumerate(zip(records, answers, strict=True)):
        other = (position + 1) % len(records)
        against = point.series[other].subject if scanned is None else plan.check.against
        compare_answers(point.series[position].label, answer, against, answers[other] if scanned is None else scanned)
        record.facts["check"] = {"against": against, "messages": scene.sample.num_rows, "pairs": answer.num_rows, "equal": True}
    return records


class _Built:
    """One series with its subscriptions filed, and what was measured of it so far."""

    def __init__(self, scene: _Scene, series: Series, say: Callable[[str], None]) -> None:
        say(series.label)
        self._scene = scene
        _warm_up(scene, series)

        def build() -> Matcher:
            filed = scene.matcher(series.subject, series.parameters)
            _file(filed, scene.subscriptions.slice(0, scene.n_built))
            return filed

        self.build_seconds, self.matcher = timed(build)
        self.insert_seconds = _insert(self.matcher, scene.subscriptions.slice(scene.n_built))
        self.counters, self.matches = count_work(self.matcher, scene.chunks)
        self._encoded = [self.matcher.encode_table(chunk) for chunk in scene.chunks]
        self._chunk_seconds: list[NDArray[np.float64]] = []
        self._table_seconds: list[NDArray[np.float64]] = []

    def time_pass(self) -> None:
        """Match the whole stream once from encoded messages, and once from the table."""
        self._chunk_seconds.append(time_passes(self._encoded, self.matcher.match_encoded, 1))
        self._table_seconds.append(time_passes(self._scene.chunks, self.matcher.match_table, 1))

    def record(self) -> Record:
        scene = self._scene
        one = [scene.messages.slice(position % scene.messages.num_rows, 1) for position in range(_CALLS)]
        stats = self.matcher.stats()
        facts = {
            "workload": scene.described,
            "n_subscriptions": stats["subscriptions"],
            "build_seconds": self.build_seconds,
            "insert_seconds": self.insert_seconds,
            "n_inserted": scene.subscriptions.num_rows - scene.n_built,
            "bytes": stats["bytes"],
            "table_bytes": scene.subscriptions.nbytes,
            "stats": stats,
            "table_seconds": float(np.concatenate(self._table_seconds).min(axis=0).sum()),
            "call_seconds": float(time_passes(one, self.matcher.match_table, 1).min()),
        }
        chunk_messages = np.array([chunk.num_rows for chunk in scene.chunks], np.int64)
        return Record(facts, np.concatenate(self._chunk_seconds), chunk_messages, self.counters, self.matches)


def _insert(matcher: Matcher, subscriptions: pa.Table) -> float:
    """Seconds to insert the rest, in batches as a service would; whatever the index does about it meanwhile is included."""
    seconds = 0.0
    for batch in in_chunks(subscriptions, _INSERTED_AT_ONCE):
        begin = time.perf_counter()
        _file(matcher, batch)
        seconds += time.perf_counter() - begin
    return seconds


def _file(matcher: Matcher, subscriptions: pa.Table) -> None:
    matcher.subscribe_table(subscriptions)
    rejected = matcher.report.rejected
    if rejected:
        row, reason = rejected[0]
        raise NearcastError(f"{len(rejected)} generated subscriptions were rejected; the first, row {row}: {reason}")


def _warm_up(scene: _Scene, series: Series) -> None:
    """Compile or load everything with a matcher that is thrown away."""
    matcher = scene.matcher(series.subject, series.parameters)
    matcher.subscribe_table(scene.subscriptions.slice(0, _WARM_SUBSCRIPTIONS))
    matcher.subscribe_table(scene.subscriptions.slice(_WARM_SUBSCRIPTIONS // 2, _WARM_SUBSCRIPTIONS))
    matcher.match_table(scene.chunks[0])


# --- answers ---------------------------------------------------------------------------------------------------------


def _check_reference(plan: Plan) -> None:
    known = indexes("boolean")
    against = plan.check.against
    if against == "other":
        if len(plan.series) < 2:
            raise PlanError(f"plan {plan.name!r} checks against 'other' but has one series; check against 'scan'")
    elif against not in known:
        raise PlanError(f"plan {plan.name!r} checks against {against!r}; expected 'other' or one of {', '.join(known)}")


def _answer_of(scene: _Scene, index: str) -> pa.Table:
    matcher = scene.matcher(index, {})
    matcher.subscribe_table(scene.subscriptions)
    return sorted_answer(matcher.match_table(scene.sample))
