"""Kind "moving_prototype": the default moving index beside the prototype it grew out of, which lies outside the package.

Subscribers with boxes of one size stay near home and messages come where they are: many changes for every move, as the
prototype was measured. `method` "tables" is our engine from table to table with every change told; "prototype" is loaded from
its folders and left out, with the reason, where there are none: keyword ids in, positions out, and what expires is not told.
"index" is our engine timed as the prototype is, without what lies between tables and positions. Centres and messages are
float32 numbers, which is all the prototype knows, so that changes must be equal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.bench.moving_kind import Calls, Journey, Lived, Living, Step, checksum_of
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
from nearcast.bench.record import Record
from nearcast.columns.arrow import numbers
from nearcast.errors import NearcastError, PlanError
from nearcast.timing import timed
from nearcast.workloads import open_workload

METHODS = ("prototype", "index", "tables")
# A fifth of the subscribers moves in a step, to about a fifth of the side of a box from home.
_MOBILITY, _STRAY = 0.2, 0.2
_LAST_PLACE = np.float32(0.9999999)
# What the prototype was measured with: from how many entries on a keyword has a grid of so many levels.
_CLAUSE_LEVELS, _MESSAGE_LEVELS = [(8, 5)], [(16, 5), (4096, 6), (20_000, 7)]
_WARM = 500
_BOX = ("x0", "y0", "x1", "y1")
# Subscriptions, messages, +1 or -1.
Changed = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
_NOTHING: Changed = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


class HomelyJourney(Journey):
    """Boxes of one size that stray from home; all coordinates are float32 numbers. `centre` is where everyone is now."""

    def __init__(self, plan: Plan, point: Point) -> None:
        super().__init__(open_workload(point.workload, **point.workload_parameters), plan, point)
        given = single_columns(self.subscriptions, *_BOX)
        self.half = np.float32((given[:, 2] - given[:, 0]).mean() / 2)
        self.home: NDArray[np.float32] = np.clip((given[:, :2] + given[:, 2:]) / 2, np.float32(0), _LAST_PLACE)
        self.centre = self.home.copy()
        for name, side in zip(_BOX, self._boxes(self.home), strict=True):
            self.subscriptions = self.subscriptions.set_column(self.subscriptions.column_names.index(name), name, side)
        self._messages = rounded(self._messages)

    def travels(self) -> Iterator[pa.Table]:
        rng = np.random.default_rng(self.seed)
        self.centre = self.home.copy()
        n = len(self.home)
        while True:
            ids = rng.permutation(n)[: int(_MOBILITY * n)]
            angle, way = 2 * np.pi * rng.random(len(ids)), 2 * self.half * _STRAY * (0.5 + rng.random(len(ids)))
            stray = np.stack([way * np.cos(angle), way * np.sin(angle)], axis=1).astype(np.float32)
            to = np.clip(np.abs(self.home[ids] + stray), np.float32(0), _LAST_PLACE)
            self.centre[ids] = to
            yield pa.table({"id": pa.array(ids), **dict(zip(_BOX, self._boxes(to), strict=True))})

    def _boxes(self, centre: NDArray[np.float32]) -> list[pa.Array]:
        """Sides as the prototype computes them, in float32."""
        edges = (centre[:, 0] - self.half, centre[:, 1] - self.half, centre[:, 0] + self.half, centre[:, 1] + self.half)
        return [pa.array(edge.astype(np.float64)) for edge in edges]


def measure_moving_prototype(plan: Plan, point: Point, say: Callable[[str], None]) -> list[Record]:
    """One record per series, step by step in turn; a series whose prototype is not there has no chunks, and says so."""
    for series in point.series:
        if series.subject not in METHODS:
            raise PlanError(f"method {series.subject!r} of {plan.name!r}: expected one of {', '.join(METHODS)}")
    say("generating")
    journey = HomelyJourney(plan, point)
    runners = [_runner(journey, series, say) for series in point.series]
    there = [runner for runner in runners if not isinstance(runner, str)]
    for step in journey.steps():
        for runner in there:
            runner.live(step)
    say("checking")
    lived = {id(runner): runner.end(plan.check.messages) for runner in there}
    _compare(list(lived.values()))
    checked = {"against": "each other", "messages": point.size.n_messages * point.size.repetitions, "equal": len(there) > 1}
    records = []
    for one in runners:
        if isinstance(one, str):
            records.append(left_out(journey.workload, len(journey.home), one))
        else:
            records.append(lived[id(one)].record)
        records[-1].facts["check"] = checked
    return records


def _runner(journey: HomelyJourney, series: Series, say: Callable[[str], None]) -> Living | _Prototype | str:
    """What runs a series, or why it cannot."""
    if series.subject in ("index", "tables"):
        kind = Living if series.subject == "tables" else _IndexAlone
        return kind(journey, Series(series.label, "moving_grid", series.parameters), say)
    say(series.label)
    folders = []
    for name, module in (("folder", "eng"), ("shared_folder", "common")):
        found = prototype_folder(str(series.parameters.get(name, "")), module)
        if isinstance(found, str):
            return found
        folders.append(found)
    return _Prototype(journey, series.label, folders)


class _IndexAlone(Living):
    """Our engine on its way, timed in the index and where messages are kept.

    A message costs what clearing away the dead costs, too; telling what they leave has no time, as the prototype does not tell.
    """

    def __init__(self, journey: HomelyJourney, series: Series, say: Callable[[str], None]) -> None:
        super().__init__(journey, series, say)
        state, self._inside = self._matcher._state, 0.0
        for owner, name in (
            (state.index, "move_groups"),
            (state.index, "arrive_groups"),
            (state.index, "sweep"),
            (state.messages, "add"),
        ):
            setattr(owner, name, self._clocked(getattr(owner, name)))

    def live(self, step: Step) -> None:
        super().live(step)
        self._seconds[-1] += self._facts["step_expiry_seconds"][-1] / len(step.messages)

    def seconds_of(self, chunks: Sequence[Any], calls: Calls) -> NDArray[np.float64]:
        seconds = np.empty(len(chunks))
        for at, chunk in enumerate(chunks):
            before = self._inside
            super().seconds_of([chunk], calls)
            seconds[at] = self._inside - before
        return seconds

    def _clocked(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def clocked(*given: Any) -> Any:
            start = time.perf_counter()
            answer = call(*given)
            self._inside += time.perf_counter() - start
            return answer

        return clocked


class _Prototype:
    """The prototype on its way: it takes the time of its own kernels, before results are copied."""

    def __init__(self, journey: HomelyJourney, label: str, folders: list[Path]) -> None:
        self._journey, self._label = journey, label
        size = journey.size
        subscriptions = keyword_matrix(journey.subscriptions, MOST_SUBSCRIPTION_WORDS)[0]
        history = keyword_matrix(journey.workload.history(size.n_history), MOST_MESSAGE_WORDS)[0]
        living = size.n_messages * (size.life + 1)
        engine = load("eng", folders).Eng

        def build(n: int) -> Any:
            home = np.ascontiguousarray(journey.home[:n].T)
            side = 2 * float(journey.half)
            bits, scale = (living - 1).bit_length(), size.n_messages * size.life / size.n_history
            given = (subscriptions[:n], home[0], home[1], side, history, scale, bits, _CLAUSE_LEVELS, _MESSAGE_LEVELS)
            made = engine(*given, V0=journey.workload.vocabulary_size)
            made.keep = True
            return made

        self._id_of = np.zeros(1 << (living - 1).bit_length(), np.int64)
        self._engine = build(_WARM)
        step = next(journey.steps())
        self._move(step.moves[0].filter(pa.compute.less(step.moves[0]["id"], _WARM)), 0)
        self._publish(step.messages[0].slice(0, _WARM), 0)
        self._build_seconds, self._engine = timed(lambda: build(len(journey.home)))
        for now, messages in enumerate(journey.past()):
            self._publish(messages, now, is_matched=False)
        self._seconds: list[list[float]] = []
        self._changes: list[int] = []
        self._facts: dict[str, list[float]] = {"step_move_seconds": [], "step_moves": [], "step_move_updates": []}
        self._matches = np.empty(0, np.int64)

    def live(self, step: Step) -> None:
        """Move and arrive."""
        now = int(step.now)
        # The clock is set forward after the moves.
        moved = [self._move(chunk, now - 1) for chunk in step.moves]
        arrived = [self._publish(chunk, now) for chunk in step.messages]
        updates = _summed([changes for _, changes in moved])
        self._changes += [*updates, 0, 0, *_summed([changes for _, changes in arrived])]
        facts = (sum(seconds for seconds, _ in moved), sum(chunk.num_rows for chunk in step.moves), updates[0])
        for name, value in zip(self._facts, facts, strict=True):
            self._facts[name].append(float(value))
        self._seconds.append([seconds for seconds, _ in arrived])
        first = step.messages[0]["id"][0].as_py()
        found = np.concatenate([changes[1] for _, changes in arrived])
        self._matches = np.bincount(found - first, minlength=self._journey.size.n_messages)

    def end(self, n_checked: int) -> Lived:
        """The record of the journey; results it has none to ask for."""
        facts: dict[str, Any] = {
            "workload": self._journey.workload.describe(),
            "n_subscriptions": len(self._journey.home),
            "build_seconds": self._build_seconds,
            **self._facts,
        }
        n, size = self._journey.size.n_messages, self._journey.size.chunk
        chunk_messages = np.array([min(size, n - first) for first in range(0, n, size)], np.int64)
        return Lived(
            self._label, Record(facts, np.array(self._seconds), chunk_messages, {}, self._matches), self._changes, pa.table({})
        )

    def _move(self, chunk: pa.Table, now: int) -> tuple[float, Changed]:
        ids = numbers(chunk["id"].combine_chunks(), np.int32)
        x, y = np.ascontiguousarray(self._journey.centre[ids].T)
        seconds, told = self._engine.moves(ids, x, y, now)
        parts, done = [_NOTHING], 0
        for entered, left, runs in told:
            own = ids[done : done + len(runs)]
            done += len(runs)
            for sign, members, begin, count in ((1, entered, runs[:, 0], runs[:, 1]), (-1, left, runs[:, 2], runs[:, 3])):
                found = self._id_of[members[_places(begin, count)]]
                parts.append((np.repeat(own, count), found, np.full(len(found), sign)))
        return seconds, _together(parts)

    def _publish(self, chunk: pa.Table, now: int, is_matched: bool = True) -> tuple[float, Changed]:
        words, n_words = keyword_matrix(chunk, MOST_MESSAGE_WORDS)
        ids, place = numbers(chunk["id"].combine_chunks(), np.int64), single_columns(chunk, "x", "y")
        self._id_of[(self._engine.nid + np.arange(len(ids))) & self._engine.rmask] = ids
        expires = np.full(len(ids), now + self._journey.size.life, np.int32)
        matching, filing, told = self._engine.msgs(words, n_words, place, expires, now, match=is_matched)
        parts, done = [_NOTHING], 0
        for members, runs in told if is_matched else ():
            own = ids[done : done + len(runs)]
            done += len(runs)
            for begin, count in ((runs[:, 0], runs[:, 1]), (runs[:, 2], runs[:, 3])):
                found = members[_places(begin, count)]
                parts.append((found, np.repeat(own, count), np.ones(len(found), np.int64)))
        return matching + filing, _together(parts)


def _together(parts: list[Changed]) -> Changed:
    own, messages, change = (np.concatenate(column) for column in zip(*parts, strict=True))
    return own, messages, change


def _places(begin: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places of all members of runs, one run after the other."""
    ends = np.cumsum(count)
    return np.arange(int(count.sum())) + np.repeat(begin - ends + count, count)


def _summed(parts: list[Changed]) -> tuple[int, int]:
    """How many changes, and their checksum."""
    sums = np.array([checksum_of(*changes) for changes in parts], np.uint64)
    return sum(len(changes[0]) for changes in parts), int(sums.sum())


def _compare(lived: list[Lived]) -> None:
    """Moves and arrivals of every step; of what expires the prototype does not tell."""
    for other in lived[1:]:
        for at, (one, two) in enumerate(zip(lived[0].changes, other.changes, strict=True)):
            if one != two and at % 6 not in (2, 3):
                raise NearcastError(
                    f"{lived[0].label!r} and {other.label!r} tell different changes in step {at // 6}: no time is worth a thing"
                )
