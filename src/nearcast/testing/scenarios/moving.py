"""Moving scenarios: a moving matcher compared with its oracle, and random worlds of subscriptions that travel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from nearcast.model.inputs import Id
from nearcast.model.message import Message
from nearcast.model.regions import Box, Circle, MultiPolygon, Polygon, Region
from nearcast.testing.oracles.moving import MovingOracle, Step
from nearcast.testing.scenarios.scenario import SAVE_AND_OPEN, Comparison, Run, Scenario, ScenarioWriter, Tables, run_worlds
from nearcast.testing.scenarios.worlds import SPACES, WorldMaker, message_table, move_table, subscription_table

if TYPE_CHECKING:
    from nearcast.moving.engine import MovingMatcher

_STEPS = 12
_LARGEST = 24
_SHARE_SAVED = 0.1
_ASKED_ALONE = 1


class MakeMovingMatcher(Protocol):
    """How the tests get an empty matcher with the index under test."""

    def __call__(self, space: str = "lonlat") -> MovingMatcher: ...


class MovingRun(Run["MovingMatcher"]):
    """A moving matcher that goes through a scenario; its results are compared after each action."""

    kind = "moving"
    change_type = Step
    tables: ClassVar[Tables] = {
        "subscribe": subscription_table,
        "publish": partial(message_table, times=("time", "expires")),
        "move": move_table,
    }

    @staticmethod
    def make_oracle(**options: Any) -> MovingOracle:
        return MovingOracle(**options)

    def check_results(self, results: Mapping[Id, set[Id]]) -> None:
        rows = self.engine.current_table()
        pairs = list(zip(rows["subscription_id"].to_pylist(), rows["message_id"].to_pylist(), strict=True))
        if len(set(pairs)) < len(pairs):
            raise AssertionError("a message stands twice in a result")
        current: dict[Id, set[Id]] = {id: set() for id in results}
        for id, message in pairs:
            current.setdefault(id, set()).add(message)
        for id, result in current.items():
            expected = results.get(id, set())
            if result != expected:
                raise AssertionError(f"the result of {id!r} lacks {expected - result!r} and has {result - expected!r} too many")
        for id in list(results)[:_ASKED_ALONE]:
            if self.engine.current(id) != results[id]:
                raise AssertionError(f"the result of {id!r} is {self.engine.current(id)!r} when asked for alone")


class MovingComparison(Comparison["MovingMatcher", MovingOracle, Step]):
    """A moving matcher and its oracle."""

    run_class = MovingRun

    @property
    def matcher(self) -> MovingMatcher:
        return self.run.engine

    def move(self, moves: Mapping[Id, Region | None]) -> set[Step]:
        return self.do("move", moves)

    def advance(self, now: float) -> set[Step]:
        return self.do("advance", now)


def run_moving_worlds(
    make_matchers: MakeMovingMatcher | Sequence[MakeMovingMatcher], n_worlds: int, seed: int = 0, first: int = 0
) -> Counter[str]:
    """`run_worlds` of `write_moving_scenario`."""
    return run_worlds(write_moving_scenario, make_matchers, n_worlds, seed, first)


def write_moving_scenario(seed: Sequence[int]) -> Scenario:
    """The same scenario for the same seed."""
    return _Writer(np.random.default_rng(seed)).write()


class _Writer(ScenarioWriter):
    def __init__(self, rng: np.random.Generator) -> None:
        space = SPACES[int(rng.integers(2))]
        super().__init__(MovingRun, {"space": space})
        self.maker = WorldMaker(rng, space)
        self._ids: list[Id] = []
        self._sent: list[Id] = []
        self._time = float(self.maker.below(5))

    def write(self) -> Scenario:
        steps: list[Callable[[], None]] = [self._subscribe, self._publish, self._publish, self._move, self._move]
        steps += [self._move, self._advance, self._replace, self._unsubscribe]
        self._subscribe()
        for choice in self.maker.rng.integers(0, len(steps), _STEPS).tolist():
            steps[choice]()
            if self.maker.chance(_SHARE_SAVED / _STEPS):
                self.add(SAVE_AND_OPEN)
        return self.scenario()

    def _subscribe(self) -> None:
        new = self.maker.subscriptions(self.maker.below(_LARGEST))
        self._ids += [s.id for s in new]
        self.add("subscribe", new)

    def _replace(self) -> None:
        self.add("subscribe", [self.maker.subscription(id) for id in self.maker.some(self._ids, 0.2)])

    def _unsubscribe(self) -> None:
        self.add("unsubscribe", [*self.maker.some(self._ids, 0.15), self.maker.new_id("unknown")])

    def _publish(self) -> None:
        messages = [self._message() for _ in range(self.maker.below(_LARGEST // 2))]
        self._sent += [m.id for m in messages]
        self.add("publish", messages)

    def _message(self) -> Message:
        maker = self.maker
        repeats = self._sent and maker.chance(0.1)
        id = self._sent[maker.below(len(self._sent))] if repeats else maker.new_id("m")
        drawn = maker.message(id)
        # Some are late, and some have expired when they arrive.
        time = None if maker.chance(0.2) else self._time + float(maker.rng.integers(-2, 3))
        self._time = max(self._time, time or self._time)
        expires = None if maker.chance(0.2) else (self._time if time is None else time) + float(maker.rng.integers(1, 8))
        return Message(id, keywords=drawn.keywords, location=drawn.location, time=time, expires=expires)

    def _move(self) -> None:
        subscriptions = self.oracle.subscriptions
        moves: dict[Id, Region | None] = {}
        for id in self.maker.some(self._ids, 0.4):
            region = subscriptions[id].region if id in subscriptions else None
            moves[id] = self.maker.region() if region is None or self.maker.chance(0.3) else self._shifted(region)
        self.add("move", moves)

    def _shifted(self, region: Region) -> Region:
        dx, dy = (float(d) * self.maker.step for d in self.maker.rng.integers(-2, 3, 2).tolist())
        if self.maker.chance(0.2):
            dx, dy = dx / 2, dy / 2
        return translated(region, dx, dy)

    def _advance(self) -> None:
        now = self._time + float(self.maker.rng.integers(-1, 4))
        self._time = max(self._time, now)
        self.add("advance", now)


def translated(region: Region, dx: float, dy: float) -> Region:
    """The same shape at another location."""
    if isinstance(region, Box):
        return Box(region.x0 + dx, region.y0 + dy, region.x1 + dx, region.y1 + dy)
    if isinstance(region, Circle):
        return Circle(region.x + dx, region.y + dy, region.radius)
    if isinstance(region, Polygon):
        return Polygon([[(x + dx, y + dy) for x, y in ring] for ring in region.rings])
    assert isinstance(region, MultiPolygon)
    return MultiPolygon([[[(x + dx, y + dy) for x, y in ring] for ring in rings] for rings in region.polygons])
