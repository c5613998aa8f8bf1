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
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast.bench.measuring import time_passes, timed
from nearcast.bench.plan import Plan, Point, Series
from nearcast.bench.record import Record
from nearcast.engines.boolean import Matcher
from nearcast.errors import NearcastError, PlanError
from nearcast.indexes.registry import indexes
from nearcast.workloads import open_workload

_WARM_SUBSCRIPTIONS = 2_000
_INSERTED_AT_ONCE = 1_000
_CALLS = 20
_SHOWN_PAIRS = 3


class _Scene:
    """What all series of a point share."""

    def __init__(self, plan: Plan, point: Point) -> None:
        workload = open_workload(point.workload, **point.workload_parameters)
        self.space = workload.space
        self.described = workload.describe()
        self.subscriptions = workload.subscriptions(point.size.n_subscriptions, plan.seed)
        self.n_built = self.subscriptions.num_rows * point.size.built_percent // 100
        self.messages = workload.messages(point.size.n_messages, plan.seed)
        self.sample = self.messages.take(pa.array(_spread(self.messages.num_rows, plan.check.messages)))
        self.chunks = _chunks(self.messages, point.size.chunk)
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
        answers += [_sorted(one.matcher.match_table(scene.sample)) for one in built]
    say("checking")
    scanned = None if plan.check.against == "other" else _answer_of(scene, plan.check.against)
    for position, (record, answer) in enumerate(zip(records, answers, strict=True)):
        other = (position + 1) % len(records)
        against = point.series[other].subject if scanned is None else plan.check.against
        _compare(point.series[position].label, answer, against, answers[other] if scanned is None else scanned)
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
        self.counters, self.matches = _count_work(self.matcher, scene)
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
            "stats": stats,
            "table_seconds": float(np.concatenate(self._table_seconds).min(axis=0).sum()),
            "call_seconds": float(time_passes(one, self.matcher.match_table, 1).min()),
        }
        chunk_messages = np.array([chunk.num_rows for chunk in scene.chunks], np.int64)
        return Record(facts, np.concatenate(self._chunk_seconds), chunk_messages, self.counters, self.matches)


def _insert(matcher: Matcher, subscriptions: pa.Table) -> float:
    """Seconds to insert the rest, in batches as a service would; whatever the index does about it meanwhile is included."""
    seconds = 0.0
    for batch in _chunks(subscriptions, _INSERTED_AT_ONCE):
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


def _count_work(matcher: Matcher, scene: _Scene) -> tuple[dict[str, NDArray[np.int64]], NDArray[np.int64]]:
    """Counters of each chunk and matches of each message, in a pass of their own that no clock sees."""
    names = ("candidates", "nodes_visited", "matches")
    counted = np.zeros((len(names), len(scene.chunks)), np.int64)
    matches = []
    for position, chunk in enumerate(scene.chunks):
        deliveries = matcher.match_table(chunk)
        counted[:, position] = [getattr(matcher.report, name) for name in names]
        codes = deliveries["message_id"].combine_chunks()
        found = pc.index_in(codes, value_set=chunk["id"].combine_chunks())
        matches.append(np.bincount(np.asarray(found), minlength=chunk.num_rows))
    return dict(zip(names, counted, strict=True)), np.concatenate(matches)


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
    return _sorted(matcher.match_table(scene.sample))


def _sorted(deliveries: pa.Table) -> pa.Table:
    return deliveries.sort_by([("message_id", "ascending"), ("subscription_id", "ascending")]).combine_chunks()


def _compare(series: str, answer: pa.Table, against: str, expected: pa.Table) -> None:
    """Both are sorted; a pair given twice is a difference too."""
    if answer.equals(expected):
        return
    given, wanted = (set(zip(*table.to_pydict().values(), strict=True)) for table in (answer, expected))
    missing, extra = sorted(wanted - given)[:_SHOWN_PAIRS], sorted(given - wanted)[:_SHOWN_PAIRS]
    raise NearcastError(
        f"{series!r} gives {answer.num_rows} deliveries where {against!r} gives {expected.num_rows} "
        f"(missing: {missing}, too many: {extra}); its times are worth nothing: correct the index first"
    )


def _spread(n: int, n_wanted: int) -> NDArray[np.int64]:
    """At most `n_wanted` rows, evenly spread over the stream."""
    return np.unique(np.linspace(0, n - 1, min(n, n_wanted)).astype(np.int64)) if n else np.empty(0, np.int64)


def _chunks(table: pa.Table, size: int) -> list[pa.Table]:
    return [table.slice(first, size) for first in range(0, table.num_rows, size)]
