"""Matching: subscriptions are filed in an index, then a stream of messages is matched chunk by chunk.

Two things are timed: messages that were read before (keyword ids in, subscription ids out), and the whole way from table to
table. Every answer to the checked sample is compared with another index; an index with a wrong answer has no times.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.experiments import Experiment, OnProgress, check_reference
from benchmarks.experiments.shared.answers import compare_answers, count_work, sorted_answer, spread_rows
from benchmarks.plan import Plan, Point, Series
from benchmarks.record import Record
from nearcast.boolean.engine import Matcher
from nearcast.boolean.indexes import BOOLEAN_INDEXES
from nearcast.engine.registry import create, indexes
from nearcast.errors import NearcastError
from nearcast.timing import in_chunks, time_passes, timed
from nearcast.workloads import open_workload

_WARM_SUBSCRIPTIONS = 2_000
_INSERTED_AT_ONCE = 1_000
_CALLS = 20


class Match(Experiment[Mapping[str, Any]]):
    """The parameters of a series are those of its index."""

    subject = "index"
    metrics = (
        "us_per_message",
        "candidates_per_message",
        "nodes_per_message",
        "matches_per_message",
        "bytes_per_subscription",
    )

    def read_parameters(self, series: Series) -> Mapping[str, Any]:
        create(BOOLEAN_INDEXES, series.subject, series.parameters)
        return series.parameters

    def check_plan(self) -> None:
        check_reference(self.plan, indexes("boolean"), "scan")

    def prepare(self) -> None:
        self.setup = _Setup(self.plan, self.point)
        self.answers: list[pa.Table] = []

    def measure(self, series: Series) -> Record:
        return self.measure_group([series])[0]

    def measure_group(self, group: Sequence[Series]) -> list[Record]:
        runs = [_Run(self.setup, series, self.on_progress) for series in group]
        for _ in range(self.setup.n_passes):
            for run in runs:
                run.time_pass()
        records = [run.record() for run in runs]
        self.answers += [sorted_answer(run.matcher.match_table(self.setup.sample)) for run in runs]
        return records

    def check(self, records: Sequence[Record]) -> None:
        reference, n_messages = self.plan.check.against, self.setup.sample.num_rows
        expected = None if reference == "other" else self._answer_of(reference)
        for position, (record, answer) in enumerate(zip(records, self.answers, strict=True)):
            other = (position + 1) % len(records)
            against = self.point.series[other].subject if expected is None else reference
            compared = self.answers[other] if expected is None else expected
            compare_answers(self.point.series[position].label, answer, against, compared)
            record.facts["check"] = {"against": against, "messages": n_messages, "pairs": answer.num_rows, "equal": True}

    def _answer_of(self, index: str) -> pa.Table:
        matcher = self.setup.matcher(index, {})
        matcher.subscribe_table(self.setup.subscriptions)
        return sorted_answer(matcher.match_table(self.setup.sample))


EXPERIMENT = Match


class _Setup:
    """What all series of a point share."""

    def __init__(self, plan: Plan, point: Point) -> None:
        workload = open_workload(point.workload, **point.workload_parameters)
        self.space = workload.space
        self.workload_facts = workload.describe()
        self.subscriptions = workload.subscriptions(point.size.n_subscriptions, plan.seed)
        self.n_built = self.subscriptions.num_rows * point.size.built_percent // 100
        self.messages = workload.messages(point.size.n_messages, plan.seed)
        self.sample = self.messages.take(pa.array(spread_rows(self.messages.num_rows, plan.check.messages)))
        self.chunks = in_chunks(self.messages, point.size.chunk)
        self.n_passes = point.size.repetitions
        self.history = workload.history(point.size.n_history) if point.size.n_history else None

    def matcher(self, index: str, parameters: Mapping[str, Any]) -> Matcher:
        return Matcher(index, self.space, history=self.history, **parameters)


class _Run:
    """One series with its subscriptions filed, and what was measured so far."""

    def __init__(self, setup: _Setup, series: Series, on_progress: OnProgress) -> None:
        on_progress(series.label)
        self._setup = setup
        _warm_up(setup, series)

        def build() -> Matcher:
            matcher = setup.matcher(series.subject, series.parameters)
            _file(matcher, setup.subscriptions.slice(0, setup.n_built))
            return matcher

        self.build_seconds, self.matcher = timed(build)
        self.insert_seconds = _insert(self.matcher, setup.subscriptions.slice(setup.n_built))
        self.counters, self.matches = count_work(self.matcher, setup.chunks)
        self._encoded = [self.matcher.encode_table(chunk) for chunk in setup.chunks]
        self._chunk_seconds: list[NDArray[np.float64]] = []
        self._table_seconds: list[NDArray[np.float64]] = []

    def time_pass(self) -> None:
        """Match the whole stream once from encoded messages, and once from the table."""
        self._chunk_seconds.append(time_passes(self._encoded, self.matcher.match_encoded, 1))
        self._table_seconds.append(time_passes(self._setup.chunks, self.matcher.match_table, 1))

    def record(self) -> Record:
        setup = self._setup
        singles = [setup.messages.slice(position % setup.messages.num_rows, 1) for position in range(_CALLS)]
        stats = self.matcher.stats()
        facts = {
            "workload": setup.workload_facts,
            "n_subscriptions": stats["subscriptions"],
            "build_seconds": self.build_seconds,
            "insert_seconds": self.insert_seconds,
            "n_inserted": setup.subscriptions.num_rows - setup.n_built,
            "bytes": stats["bytes"],
            "table_bytes": setup.subscriptions.nbytes,
            "stats": stats,
            "table_seconds": float(np.concatenate(self._table_seconds).min(axis=0).sum()),
            "call_seconds": float(time_passes(singles, self.matcher.match_table, 1).min()),
        }
        chunk_messages = np.array([chunk.num_rows for chunk in setup.chunks], np.int64)
        return Record(facts, np.concatenate(self._chunk_seconds), chunk_messages, self.counters, self.matches)


def _insert(matcher: Matcher, subscriptions: pa.Table) -> float:
    """Seconds to insert the rest in batches, as a service would; what the index does about it meanwhile is included."""
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


def _warm_up(setup: _Setup, series: Series) -> None:
    """Compile or load everything with a matcher that is thrown away."""
    matcher = setup.matcher(series.subject, series.parameters)
    matcher.subscribe_table(setup.subscriptions.slice(0, _WARM_SUBSCRIPTIONS))
    matcher.subscribe_table(setup.subscriptions.slice(_WARM_SUBSCRIPTIONS // 2, _WARM_SUBSCRIPTIONS))
    matcher.match_table(setup.chunks[0])
