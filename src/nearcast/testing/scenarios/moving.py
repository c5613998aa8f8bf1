"""Thousands of small random lives of travelling subscriptions: written down with the oracle's answers, lived by matchers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.model.inputs import Id
from nearcast.model.message import Message
from nearcast.model.regions import Box, Circle, MultiPolygon, Polygon, Region
from nearcast.testing.comparison.moving import MakeMovingMatcher, compare_changes, compare_rejected, compare_results
from nearcast.testing.oracles.moving import MovingOracle, Step
from nearcast.testing.scenarios.worlds import WorldMaker, message_table, subscription_table

if TYPE_CHECKING:
    from nearcast.moving.engine import MovingMatcher

_SPACES = ("plane", "lonlat")
_STEPS = 12
_LARGEST = 24
_SHARE_SAVED = 0.1
_SHARE_TABLES = 0.3


class Deed(NamedTuple):
    """One thing that happens, as a call of a matcher, with what the oracle expects of it."""

    name: str
    argument: Any
    changes: Sequence[Step]
    rejected: Sequence[int]
    results: Mapping[Id, set[Id]]


class Life(NamedTuple):
    """The story of one world."""

    space: str
    deeds: list[Deed]


def run_moving_worlds(
    make_matchers: MakeMovingMatcher | Sequence[MakeMovingMatcher], n_worlds: int, seed: int = 0, first: int = 0
) -> int:
    """Live through worlds `first` … `first + n_worlds - 1` of a seed with every matcher; returns the changes compared."""
    makers = make_matchers if isinstance(make_matchers, Sequence) else [make_matchers]
    n_changes = 0
    for number in range(first, first + n_worlds):
        life = write_life([seed, number])
        for make_matcher in makers:
            _live_or_tell(life, make_matcher, [seed, number])
            n_changes += sum(len(deed.changes) for deed in life.deeds)
    return n_changes


def write_life(seed: Sequence[int]) -> Life:
    """The same life for the same seed."""
    return _Writer(np.random.default_rng(seed)).write()


class _Writer:
    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        space = _SPACES[int(rng.integers(2))]
        self._maker = WorldMaker(rng, space)
        self._oracle = MovingOracle(space)
        self._ids: list[Id] = []
        self._sent: list[Id] = []
        self._time = float(rng.integers(0, 5))
        self._deeds: list[Deed] = []

    def write(self) -> Life:
        acts: list[Callable[[], None]] = [self._subscribe, self._publish, self._publish, self._move, self._move]
        acts += [self._move, self._advance, self._replace, self._unsubscribe]
        self._subscribe()
        for choice in self._rng.integers(0, len(acts), _STEPS).tolist():
            acts[choice]()
            if self._chance(_SHARE_SAVED / _STEPS):
                self._note("save and open", None, [])
        return Life(self._oracle.space, self._deeds)

    def _subscribe(self) -> None:
        new = self._maker.subscriptions(int(self._rng.integers(_LARGEST)))
        self._ids += [s.id for s in new]
        self._note("subscribe", new, self._oracle.subscribe(new))

    def _replace(self) -> None:
        new = [self._maker.subscription(id) for id in self._some(self._ids, 0.2)]
        self._note("subscribe", new, self._oracle.subscribe(new))

    def _unsubscribe(self) -> None:
        gone = [*self._some(self._ids, 0.15), self._maker.new_id("unknown")]
        self._oracle.unsubscribe(gone)
        self._note("unsubscribe", gone, [])

    def _publish(self) -> None:
        messages = [self._message() for _ in range(int(self._rng.integers(_LARGEST // 2)))]
        self._sent += [m.id for m in messages]
        self._note("publish", messages, self._oracle.publish(messages))

    def _message(self) -> Message:
        again = self._sent and self._chance(0.1)
        id = self._sent[int(self._rng.integers(len(self._sent)))] if again else self._maker.new_id("m")
        drawn = self._maker.message(id)
        # Late ones too, and some that are dead when they come.
        time = None if self._chance(0.2) else self._time + float(self._rng.integers(-2, 3))
        self._time = max(self._time, time or self._time)
        expires = None if self._chance(0.2) else (self._time if time is None else time) + float(self._rng.integers(1, 8))
        return Message(id, keywords=drawn.keywords, location=drawn.location, time=time, expires=expires)

    def _move(self) -> None:
        known = self._oracle.subscriptions
        moves: dict[Id, Region | None] = {}
        for id in self._some(self._ids, 0.4):
            where = known[id].region if id in known else None
            moves[id] = self._maker.region() if where is None or self._chance(0.3) else self._shifted(where)
        self._note("move", moves, self._oracle.move(moves))

    def _shifted(self, where: Region) -> Region:
        dx, dy = (float(d) * self._maker.step for d in self._rng.integers(-2, 3, 2).tolist())
        if self._chance(0.2):
            dx, dy = dx / 2, dy / 2
        return translated(where, dx, dy)

    def _advance(self) -> None:
        now = self._time + float(self._rng.integers(-1, 4))
        self._time = max(self._time, now)
        self._note("advance", now, self._oracle.advance(now))

    def _note(self, name: str, argument: Any, changes: Sequence[Step]) -> None:
        as_table = name in _TABLES and len(argument) > 0 and self._chance(_SHARE_TABLES) and self._fits(name, argument)
        told = _TABLES[name](argument) if as_table else argument
        deed = Deed(name + "_table" if as_table else name, told, changes, self._oracle.rejected, self._oracle.results())
        self._deeds.append(deed)

    def _fits(self, name: str, argument: Any) -> bool:
        """Whether a table says the same: moves need boxes, and lists of nothing would be lists of words."""
        if name == "move":
            return all(isinstance(where, Box) for where in argument.values())
        return not self._maker.has_numbers or any(row.keywords for row in argument)

    def _some(self, ids: Sequence[Id], share: float) -> list[Id]:
        return [id for id, drawn in zip(ids, self._rng.random(len(ids)).tolist(), strict=True) if drawn < share]

    def _chance(self, share: float) -> bool:
        return bool(self._rng.random() < share)


def translated(where: Region, dx: float, dy: float) -> Region:
    """The same shape elsewhere."""
    if isinstance(where, Box):
        return Box(where.x0 + dx, where.y0 + dy, where.x1 + dx, where.y1 + dy)
    if isinstance(where, Circle):
        return Circle(where.x + dx, where.y + dy, where.radius)
    if isinstance(where, Polygon):
        return Polygon([[(x + dx, y + dy) for x, y in ring] for ring in where.rings])
    assert isinstance(where, MultiPolygon)
    return MultiPolygon([[[(x + dx, y + dy) for x, y in ring] for ring in rings] for rings in where.polygons])


def timed_table(messages: Sequence[Message]) -> pa.Table:
    """Messages as a table with their times."""
    table = message_table(messages)
    for name in ("time", "expires"):
        table = table.append_column(name, pa.array([getattr(m, name) for m in messages], pa.float64()))
    return table


def move_table(moves: Mapping[Id, Region | None]) -> pa.Table:
    """Moves to boxes as a table."""
    boxes = [where for where in moves.values() if isinstance(where, Box)]
    ids = pa.array(list(moves), pa.string() if isinstance(next(iter(moves)), str) else pa.int64())
    return pa.table({"id": ids, **{name: [getattr(box, name) for box in boxes] for name in ("x0", "y0", "x1", "y1")}})


_TABLES: dict[str, Callable[[Any], pa.Table]] = {
    "subscribe": subscription_table,
    "publish": timed_table,
    "move": move_table,
}


def _live_or_tell(life: Life, make_matcher: MakeMovingMatcher, seed: Sequence[int]) -> None:
    matcher, name, number = make_matcher(life.space), "", 0
    try:
        for number, deed in enumerate(life.deeds):  # noqa: B007 - told when it fails
            name = deed.name
            matcher = live(deed, matcher)
    except Exception as error:
        where = f"{make_matcher}: moving world seed={list(seed)}, space={life.space!r}, step {number} ({name!r})"
        raise AssertionError(f"{where}: {error!r}") from error


def live(deed: Deed, matcher: MovingMatcher) -> MovingMatcher:
    """Let it happen to a matcher and compare; returns the one to go on with."""
    if deed.name == "save and open":
        with TemporaryDirectory(prefix="nearcast-moving-") as folder:
            matcher.save(Path(folder) / "saved")
            matcher = type(matcher).open(Path(folder) / "saved")
    else:
        found = getattr(matcher, deed.name)(deed.argument)
        if isinstance(found, pa.Table):
            found = [Step(**row) for row in found.to_pylist()]
        compare_changes(found or [], deed.changes)
        compare_rejected(matcher, deed.rejected)
    compare_results(matcher, deed.results)
    return matcher
