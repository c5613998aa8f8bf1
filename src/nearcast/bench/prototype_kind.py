"""Kind "prototype": the default index beside the prototype it grew out of, which lies outside the package, in one process.

`method` "prototype" loads it from the folder of its parameters and is left out, with the reason, where there is none.
"match_runs" is our index alone, as the prototype is: keyword ids in, positions out; "match_encoded" the way to the table of
int64 ids. Coordinates are rounded to float32 beforehand, which is all the prototype knows, so that answers must be equal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast.bench.plan import Plan, Point, Series
from nearcast.bench.prototype_tables import (
    MOST_MESSAGE_WORDS,
    MOST_SUBSCRIPTION_WORDS,
    keyword_matrix,
    load,
    prototype_folder,
    rounded,
    single_columns,
)
from nearcast.bench.record import Record
from nearcast.columns.arrow import numbers
from nearcast.engines.boolean import Matcher
from nearcast.errors import NearcastError, PlanError
from nearcast.timing import in_chunks, time_once, timed
from nearcast.workloads import open_workload

METHODS = ("prototype", "match_runs", "match_encoded")
_MESSAGES_AT_ONCE = 16
_COPY_COST = 2e-6
# Odd, to tell sums of ids of different messages apart.
_MIX = np.uint64(0x9E3779B97F4A7C15)


class _Scene:
    """What all series of a point share: tables whose coordinates are float32, and the engine that holds them."""

    def __init__(self, plan: Plan, point: Point) -> None:
        self.workload = open_workload(point.workload, **point.workload_parameters)
        size = point.size
        self.subscriptions = rounded(self.workload.subscriptions(size.n_subscriptions, plan.seed))
        self.messages = rounded(self.workload.messages(size.n_messages, plan.seed))
        self.history = rounded(self.workload.history(size.n_history))
        self.chunks = in_chunks(self.messages, size.chunk)

    @cached_property
    def built(self) -> tuple[float, Matcher]:
        """Seconds to build the engine, and the engine."""

        def build() -> Matcher:
            matcher = Matcher("frequency_grid", self.workload.space, history=self.history)
            matcher.subscribe_table(self.subscriptions)
            return matcher

        return timed(build)


class Runner(ABC):
    """One method: `match(number of a chunk)` is timed, `answer` gives the message and the subscription of each match."""

    n_bytes: float
    build_seconds: float

    @abstractmethod
    def match(self, number: int) -> Any: ...

    @abstractmethod
    def answer(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...


class _Ours(Runner):
    def __init__(self, scene: _Scene, is_index_only: bool) -> None:
        self.build_seconds, self._matcher = scene.built
        self._encoded = [self._matcher.encode_table(chunk) for chunk in scene.chunks]
        self._index, self._clauses, self._is_index_only = self._matcher._index, self._matcher._clauses, is_index_only
        self.n_bytes = float(self._matcher.stats()["bytes"])

    def match(self, number: int) -> Any:
        if self._is_index_only:
            return self._index.match_runs(self._clauses, self._encoded[number].batch)
        return self._matcher.match_encoded(self._encoded[number])

    def answer(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        found = self._matcher.match_encoded(self._encoded[number])
        rows = pc.index_in(found["message_id"].combine_chunks(), value_set=self._encoded[number].ids)
        return numbers(rows, np.int64), numbers(found["subscription_id"].combine_chunks(), np.int64)


class _Prototype(Runner):
    """The prototype takes keywords as a matrix, padded with -1, and writes two runs of positions for each message."""

    def __init__(self, scene: _Scene, folder: Path) -> None:
        fk3 = load("fk3", [folder])
        keywords = keyword_matrix(scene.subscriptions, MOST_SUBSCRIPTION_WORDS)[0]
        box = single_columns(scene.subscriptions, "x0", "y0", "x1", "y1")
        history = (*keyword_matrix(scene.history, MOST_MESSAGE_WORDS), single_columns(scene.history, "x", "y"))
        size = scene.workload.vocabulary_size
        self.build_seconds, self._index = timed(lambda: fk3.FK3(keywords, box, size, history, lam=_COPY_COST))
        self._chunks = [(*keyword_matrix(chunk, MOST_MESSAGE_WORDS), single_columns(chunk, "x", "y")) for chunk in scene.chunks]
        self._match = fk3.match3
        self.n_bytes = float(self._index.total())
        n = max(chunk.num_rows for chunk in scene.chunks)
        self._out, self._offsets = [np.empty(1 << 26, np.int32) for _ in range(2)], np.zeros((2, n + 1), np.int64)
        self._counters = np.zeros(8, np.int64)

    def match(self, number: int) -> Any:
        out, offsets = self._out, self._offsets
        arguments = (out[0], offsets[0], out[1], offsets[1], self._counters, _MESSAGES_AT_ONCE)
        return self._match(*self._index.args(), *self._chunks[number], *arguments)

    def answer(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        self.match(number)
        n = len(self._chunks[number][1])
        rows, found = [], []
        for out, offsets in zip(self._out, self._offsets, strict=True):
            rows.append(np.repeat(np.arange(n), np.diff(offsets[: n + 1])))
            found.append(out[: offsets[n]].astype(np.int64))
        return np.concatenate(rows), np.concatenate(found)


def measure_prototype(plan: Plan, point: Point, say: Callable[[str], None]) -> list[Record]:
    """One record per series, passes in turn; a series whose prototype is not there has no chunks, and says so."""
    for series in point.series:
        if series.subject not in METHODS:
            raise PlanError(f"method {series.subject!r} of {plan.name!r}: expected one of {', '.join(METHODS)}")
    say("generating")
    scene = _Scene(plan, point)
    runners: list[Runner | str] = []
    for series in point.series:
        say(series.label)
        runners.append(_runner(scene, series))
    there = [runner for runner in runners if isinstance(runner, Runner)]
    seconds: dict[int, list[NDArray[np.float64]]] = {id(runner): [] for runner in there}
    numbers_of_chunks = range(len(scene.chunks))
    for runner in there:
        time_once(numbers_of_chunks, runner.match)
    for _ in range(point.size.repetitions):
        for runner in there:
            seconds[id(runner)].append(time_once(numbers_of_chunks, runner.match))
    say("checking")
    matches = _compared(there, scene, [series.label for series in point.series])
    chunk_messages = np.array([chunk.num_rows for chunk in scene.chunks], np.int64)
    records = []
    for one in runners:
        facts: dict[str, Any] = {"workload": scene.workload.describe(), "n_subscriptions": scene.subscriptions.num_rows}
        facts["check"] = {"against": "each other", "messages": scene.messages.num_rows, "equal": len(there) > 1}
        if isinstance(one, Runner):
            facts |= {"bytes": one.n_bytes, "build_seconds": one.build_seconds}
            records.append(Record(facts, np.stack(seconds[id(one)]), chunk_messages, {}, matches))
        else:
            facts["left_out"] = one
            records.append(Record(facts, np.empty((0, 0)), np.empty(0, np.int64)))
    return records


def _runner(scene: _Scene, series: Series) -> Runner | str:
    """What runs a series, or why it cannot."""
    if series.subject != "prototype":
        return _Ours(scene, series.subject == "match_runs")
    folder = prototype_folder(str(series.parameters.get("folder", "")), "fk3")
    return folder if isinstance(folder, str) else _Prototype(scene, folder)


def _compared(runners: list[Runner], scene: _Scene, labels: list[str]) -> NDArray[np.int64]:
    """The matches of each message; raises unless every method found the same subscriptions for each of them."""
    matches = []
    for number, chunk in enumerate(scene.chunks):
        told = []
        for runner in runners:
            rows, found = runner.answer(number)
            sums = np.zeros(chunk.num_rows, np.uint64)
            with np.errstate(over="ignore"):
                np.add.at(sums, rows, (found.astype(np.uint64) + np.uint64(1)) * _MIX)
            told.append((np.bincount(rows, minlength=chunk.num_rows), sums))
        for counts, sums in told[1:]:
            if not (np.array_equal(counts, told[0][0]) and np.array_equal(sums, told[0][1])):
                raise NearcastError(f"{', '.join(labels)} give different matches in chunk {number}: no time is worth anything")
        matches.append(told[0][0])
    return np.concatenate(matches)
