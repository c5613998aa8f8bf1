"""Kind "ranked_prototype": the default ranked engine beside the prototype it grew out of, in one process, batches in turn.

The window is one of messages. `method` "ranker" is our engine from table to table, with `changes` told as its parameters say;
"lists" is the part of it that the prototype has too, reckoned inside of the same calls: whom messages reach, lists and refills,
changes written down as positions, but not messages read and weighed, what leaves a list scored, ids and tables;
"prototype" is loaded from its folder and left out, with the reason, where there is none: keyword ids in, positions and float32
scores out, and what a message pushes out or what ends is not told. Its lists are filed anew just before it is timed, which
takes no time of it; ours are filed anew whenever that is due. Places and weights are float32 numbers, which is all the
prototype knows: lists must be equal, but for what float32 cannot tell apart.
"""

from __future__ import annotations

import contextlib
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.bench.plan import Plan, Point, Series
from nearcast.bench.prototype_tables import (
    MOST_MESSAGE_WORDS,
    MOST_SUBSCRIPTION_WORDS,
    keyword_matrix,
    left_out,
    load,
    prototype_folder,
    rounded,
    single_columns,
)
from nearcast.bench.ranked_story import check_usable, frequencies_of, ranked_subscriptions
from nearcast.bench.record import Record
from nearcast.engines.ranked.ranker import Ranker
from nearcast.errors import NearcastError, PlanError
from nearcast.model.window import CountWindow
from nearcast.workloads import open_workload

METHODS = ("prototype", "ranker", "lists")
_MODULE = "topk6"
_K = 20
# What the prototype has its weights of nearness from, the messages its lists are filled with, and what a cell of it costs.
_WEIGHT_SEED, _FILLED_WITH, _CELL_COST, _SHORTEST = 5, 45, 1e-4, 32
# It tells changes in what is timed and in the last of so many parts of the warm steps; told or not, lists are the same.
_TOLD_IN = 10
# A list of it has so many places, of score and number.
_PLACES = 64
_FILLED_AT_ONCE, _FILED_AT_ONCE = 10_000, 100_000
_CLOSE = 1e-6


class _Story:
    """What both live through; all places and weights are float32 numbers in the unit square."""

    def __init__(self, plan: Plan, point: Point) -> None:
        self.size, size = point.size, point.size
        self.workload = open_workload(point.workload, **point.workload_parameters)
        self.n_window = size.n_messages * size.life
        self.n_later = size.n_messages * (size.warm_steps + size.repetitions)
        self.messages = rounded(self.workload.messages(self.n_window + self.n_later, plan.seed))
        given = rounded(ranked_subscriptions(self.workload, size.n_subscriptions, plan.seed))
        self.weight = np.random.default_rng(_WEIGHT_SEED).random(given.num_rows).astype(np.float32)
        columns = {"spatial_weight": self.weight.astype(np.float64), "k": np.full(given.num_rows, _K, np.int32)}
        self.subscriptions = pa.table({**{name: given[name] for name in ("id", "keywords", "x", "y")}, **columns})

    def part(self, first: int, n: int) -> pa.Table:
        """Some messages; the one at row t comes at time t."""
        part = self.messages.slice(first, n).select(["id", "keywords", "x", "y"])
        return part.append_column("time", pa.array(np.arange(first, first + part.num_rows, dtype=np.float64)))


class _Lived(ABC):
    """What both sides have in common: batch after batch, of which the last ones are timed."""

    def __init__(self, story: _Story) -> None:
        self.story = story
        self.fill_seconds = 0.0
        self.seconds: list[float] = []
        self.n_told: list[int] = []
        self._is_timed = False

    def be_timed(self) -> None:
        self._is_timed = True

    def live(self, first: int) -> None:
        """Take in the messages of a batch from row `first` on."""
        given = self.prepared(first)
        begin = time.perf_counter()
        told = self.take(given)
        if self._is_timed:
            self.seconds.append(time.perf_counter() - begin)
            self.n_told.append(self.count(told))

    @abstractmethod
    def prepared(self, first: int) -> Any:
        """What is taken in, outside of the clock."""

    @abstractmethod
    def take(self, given: Any) -> Any:
        """Take it in, and tell what changes."""

    @abstractmethod
    def count(self, told: Any) -> int:
        """How many changes were told."""

    def facts(self) -> dict[str, Any]:
        return {}

    @abstractmethod
    def scores(self, numbers: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        """Of the best messages of some subscriptions, best first."""

    def record(self) -> Record:
        return self._record(self.seconds)

    def _record(self, seconds: list[float]) -> Record:
        story = self.story
        facts: dict[str, Any] = {
            "workload": story.workload.describe(),
            "n_subscriptions": story.subscriptions.num_rows,
            "n_living_messages": story.n_window,
            "fill_seconds": self.fill_seconds,
            "step_arrival_seconds": seconds,
            # What ends does so when something arrives.
            "step_expiry_seconds": [0.0] * len(seconds),
            **self.facts(),
        }
        chunk_messages = np.full(len(seconds), story.size.n_messages, np.int64)
        return Record(facts, np.array(seconds)[None, :], chunk_messages, {}, np.array(self.n_told, np.int64))


class _Ranker(_Lived):
    """Our engine, from table to table."""

    def __init__(self, story: _Story, series: Series) -> None:
        super().__init__(story)
        first = story.messages.slice(0, story.n_window)
        self._ranker = Ranker(
            CountWindow(story.n_window),
            space="plane",
            max_distance=float(np.sqrt(2.0)),
            idf=frequencies_of(first),
            n_documents=story.n_window,
            **series.parameters,
        )
        for at in range(0, story.n_window, _FILLED_AT_ONCE):
            self._ranker.publish_table(story.part(at, min(_FILLED_AT_ONCE, story.n_window - at)))
        begin = time.perf_counter()
        for at in range(0, story.subscriptions.num_rows, _FILED_AT_ONCE):
            self._ranker.subscribe_table(story.subscriptions.slice(at, _FILED_AT_ONCE))
            check_usable(self._ranker)
        self.fill_seconds = time.perf_counter() - begin

    def prepared(self, first: int) -> pa.Table:
        return self.story.part(first, self.story.size.n_messages)

    def take(self, given: pa.Table) -> pa.Table:
        return self._ranker.publish_table(given)

    def count(self, told: pa.Table) -> int:
        check_usable(self._ranker)
        return int(told.num_rows)

    def be_timed(self) -> None:
        super().be_timed()
        self._before = self._ranker.stats()

    def facts(self) -> dict[str, Any]:
        stats = self._ranker.stats()
        return {"stats": stats, "bytes": stats["bytes"], "n_refills": int(self._since("refills"))}

    def record_of_lists(self) -> Record:
        """What was timed, without what comes in and goes out: of each batch the mean of all."""
        n = len(self.seconds)
        return self._record([self._since("list_seconds") / n] * n)

    def _since(self, name: str) -> float:
        return float(self._ranker.stats()[name]) - float(self._before[name])

    def scores(self, numbers: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        return [np.array([score for _, score in self._ranker.top(number)]) for number in numbers.tolist()]


class _Prototype(_Lived):
    """The prototype: its kernel writes what enters a list to memory that it uses again."""

    def __init__(self, story: _Story, folder: Path) -> None:
        super().__init__(story)
        size = story.size
        with _environment("BASE", "4"):
            module = load(_MODULE, [folder])
        made = (story.n_window, story.n_later, size.n_subscriptions, _K, _FILLED_WITH)
        begin = time.perf_counter()
        with _elsewhere():
            self._system = module.Sys(*made, lam=_CELL_COST, log=False, wl=self)
        self.fill_seconds = time.perf_counter() - begin
        self._counted = np.zeros(20, np.int64)
        self._tells_from = story.n_window + (size.warm_steps - size.warm_steps // _TOLD_IN) * size.n_messages

    def msgs(self, n: int, seed: int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
        """All messages, as the prototype asks for them."""
        return (*keyword_matrix(self.story.messages, MOST_MESSAGE_WORDS), single_columns(self.story.messages, "x", "y"))

    def subs(self, n: int, seed: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """All subscriptions, likewise: each is where the middle of its box is."""
        words, _ = keyword_matrix(self.story.subscriptions, MOST_SUBSCRIPTION_WORDS)
        return words, single_columns(self.story.subscriptions, "x", "y", "x", "y")

    def be_timed(self) -> None:
        super().be_timed()
        self._system.build(_CELL_COST, _SHORTEST, False)

    def prepared(self, first: int) -> tuple[int, bool]:
        if first == self._tells_from:
            self._system.set_eager(first - 1)
        return first, first >= self._tells_from

    def take(self, given: tuple[int, bool]) -> None:
        first, is_told = given
        self._system.run(first, first + self.story.size.n_messages, 3, self._counted, is_told)

    def count(self, told: None) -> int:
        return int(self._counted[19])

    def scores(self, numbers: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        held, score = (np.asarray(array).reshape(-1, _PLACES, 2)[numbers] for array in (self._system.ring, self._system.fring))
        is_alive = held[:, :, 1] >= self.story.n_later
        return [np.sort(own[alive])[::-1][:_K].astype(np.float64) for own, alive in zip(score[:, :, 0], is_alive, strict=True)]


def measure_ranked_prototype(plan: Plan, point: Point, say: Callable[[str], None]) -> list[Record]:
    """One record per series; a series whose prototype is not there has no chunks, and says so."""
    for series in point.series:
        if series.subject not in METHODS:
            raise PlanError(f"method {series.subject!r} of {plan.name!r}: expected one of {', '.join(METHODS)}")
    if [series.subject for series in point.series].count("ranker") != 1:
        raise PlanError(f"{plan.name!r} has not one series with method 'ranker'; expected one, beside which others are timed")
    say("generating")
    story = _Story(plan, point)
    runners: dict[str, _Lived | str] = {}
    for series in point.series:
        if series.subject != "lists":
            say(series.label)
            runners[series.subject] = _runner(story, series)
    ranker = runners["ranker"]
    assert isinstance(ranker, _Ranker)
    there = [runner for runner in runners.values() if not isinstance(runner, str)]
    size = story.size
    for step in range(size.warm_steps + size.repetitions):
        for runner in there:
            if step == size.warm_steps:
                runner.be_timed()
            runner.live(story.n_window + step * size.n_messages)
    say("checking")
    numbers = np.unique(np.linspace(0, size.n_subscriptions - 1, plan.check.messages).astype(np.int64))
    _compare(there, numbers)
    checked = {"against": "each other", "messages": size.n_messages * size.repetitions, "equal": len(there) > 1}
    records = []
    for series in point.series:
        one = runners.get(series.subject)
        if one is None:
            records.append(ranker.record_of_lists())
        elif isinstance(one, str):
            records.append(left_out(story.workload, size.n_subscriptions, one))
        else:
            records.append(one.record())
        records[-1].facts["check"] = checked
    return records


def _runner(story: _Story, series: Series) -> _Lived | str:
    """What runs a series, or why it cannot."""
    if series.subject == "ranker":
        return _Ranker(story, series)
    found = prototype_folder(series.parameters.get("folder", ""), _MODULE)
    return found if isinstance(found, str) else _Prototype(story, found)


def _compare(lived: list[_Lived], numbers: NDArray[np.int64]) -> None:
    """Scores of the best messages, which float32 rounds."""
    of_all = [one.scores(numbers) for one in lived]
    for others in of_all[1:]:
        for number, one, other in zip(numbers.tolist(), of_all[0], others, strict=True):
            if len(one) != len(other) or not np.allclose(one, other, rtol=0, atol=_CLOSE):
                raise NearcastError(
                    f"the list of subscription {number} has the scores {one.tolist()} here and {other.tolist()} there; "
                    "their times are worth nothing: correct the index first"
                )


@contextlib.contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """A setting that a prototype reads when it is loaded."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@contextlib.contextmanager
def _elsewhere() -> Iterator[None]:
    """In a folder of its own: the prototype leaves files where it runs."""
    before = Path.cwd()
    with TemporaryDirectory(prefix="nearcast-prototype-") as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)
