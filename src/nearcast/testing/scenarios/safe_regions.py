"""Safe-region scenarios: clients report a move only when they leave their safe region, and must never miss or keep a message.

The scenario says where each client really is. The clients decide by their safe regions which moves they report, and keep a view
of their result from the changes they get. After each action every view is compared with the oracle, which sees all moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from nearcast.model.inputs import Id
from nearcast.model.message import Message
from nearcast.model.regions import Box, Circle, Region
from nearcast.model.subscription import Subscription
from nearcast.testing.budget import TALLY
from nearcast.testing.scenarios.moving import MovingRun
from nearcast.testing.scenarios.scenario import Action, Scenario, ScenarioWriter, Tables, run_worlds

if TYPE_CHECKING:
    from nearcast.moving.engine import MovingMatcher

_WORDS = "abcdef"
_CLIENTS = 12
_STEPS = 15
_METRES = 20_000.0  # of a unit of these worlds in lonlat

MakeSafeRegionMatcher = Callable[[str, Callable[[list[Id]], Mapping[Id, object]]], "MovingMatcher"]


class SafeRegionRun(MovingRun):
    """A matcher with safe regions, and its clients."""

    kind = "safe regions"
    tables: ClassVar[Tables] = {}
    space = "plane"

    def __init__(self, engine: MovingMatcher) -> None:
        super().__init__(engine)
        self._regions: dict[Id, Region] = {}
        self._safe: dict[Id, Region] = {}
        self._views: dict[Id, set[Id]] = {}

    @classmethod
    def begin(cls, make_engine: Callable[..., MovingMatcher], options: Mapping[str, Any]) -> Self:
        # The matcher is made with the function that asks clients, and the clients with the matcher.
        runs: list[Self] = []
        engine = make_engine(options["space"], lambda ids: runs[0].positions(ids))
        runs.append(cls(engine))
        runs[0].space = options["space"]
        return runs[0]

    def positions(self, ids: list[Id]) -> Mapping[Id, object]:
        """The answer of clients that are asked where they are. It ends their safe regions."""
        for id in ids:
            del self._safe[id]
        return {id: self._regions[id] for id in ids}

    def call(self, action: Action) -> None:
        argument = action.arguments[0]
        if action.name == "safe_regions":
            self._safe.update(self.engine.safe_regions(argument))
            return
        if action.name == "subscribe":
            for subscription in argument:
                self._regions[subscription.id] = subscription.region
                self._safe.pop(subscription.id, None)
                self._views.setdefault(subscription.id, set())
        elif action.name == "unsubscribe":
            self._views.update((id, set()) for id in argument)
        elif action.name == "move":
            argument = self._reports(argument)
        self._apply(self.changes_of(self.engine_method(action)(argument)))

    def _reports(self, moves: Mapping[Id, Region]) -> dict[Id, Region]:
        """The moves that clients report: of those whose safe region does not hold the middle of the new region."""
        self._regions.update(moves)
        reports = {id: region for id, region in moves.items() if not self._is_safe(id, region)}
        for id in reports:
            self._safe.pop(id, None)
        counts = {"moves": len(moves), "moves not reported": len(moves) - len(reports)}
        self.counts.update(counts)
        TALLY.add(self.kind, **counts)
        return reports

    def _is_safe(self, id: Id, region: Region) -> bool:
        x, y = _middle(region).tolist()
        return id in self._safe and self._safe[id].meets(Box(x, y, x, y), self.space)

    def _apply(self, changes: Sequence[Any]) -> None:
        for change in changes:
            view = self._views[change.subscription_id]
            if (change.message_id in view) != (change.change < 0):
                raise AssertionError(f"{change!r} does not fit what the client has: {view!r}")
            view ^= {change.message_id}

    def check_results(self, results: Mapping[Id, set[Id]]) -> None:
        for id, expected in results.items():
            if self._views[id] != expected:
                raise AssertionError(f"client {id!r} has {self._views[id]!r}; where it is now, {expected!r} is right")


def run_safe_region_worlds(space: str, make_matcher: MakeSafeRegionMatcher, n_worlds: int, seed: int = 0) -> Counter[str]:
    """`run_worlds` of `write_safe_region_scenario`; also counts "moves" and "moves not reported"."""
    return run_worlds(partial(write_safe_region_scenario, space=space), make_matcher, n_worlds, seed)


def write_safe_region_scenario(seed: Sequence[int], space: str) -> Scenario:
    """The same scenario for the same seed and space."""
    return _Writer(np.random.default_rng(seed), space).write()


class _Writer(ScenarioWriter):
    def __init__(self, rng: np.random.Generator, space: str) -> None:
        super().__init__(SafeRegionRun, {"space": space})
        self._rng = rng
        self._space = space
        self._regions: dict[Id, Region] = {}
        self._n_messages = 0

    def write(self) -> Scenario:
        self.add("subscribe", [self._subscription(id) for id in range(_CLIENTS)])
        for step in range(_STEPS):
            self._publish(float(step))
            if self._rng.random() < 0.7:
                self.add("safe_regions", [id for id in self._regions if self._rng.random() < 0.9])
            self._travel()
            if step % 7 == 6:
                self.add("advance", step + 1.0)
            if step % 5 == 4:
                self._replace()
        return self.scenario()

    def _subscription(self, id: int) -> Subscription:
        x, y = (float(value) for value in self._rng.uniform(-5, 5, 2))
        self._regions[id] = self._region(id, x, y)
        if id % 4 == 3:
            return Subscription(id, interest="(a AND b) OR (c AND NOT d)", region=self._regions[id])
        return Subscription(id, self._words(2, 0), self._regions[id])

    def _region(self, id: Id, x: float, y: float) -> Region:
        number = int(id)
        if number % 3 == 1:
            return Box(x - 1, y - 0.5, x + 1, y + 0.5)
        unit = 1.0 if self._space == "plane" else _METRES
        return Circle(x, y, unit * (1 + number % 2) / (1 + number % 3))

    def _words(self, most: int, least: int = 1) -> list[str]:
        return [_WORDS[i] for i in self._rng.choice(len(_WORDS), int(self._rng.integers(least, most + 1)), replace=False)]

    def _publish(self, now: float) -> None:
        batch = []
        for _ in range(int(self._rng.integers(4))):
            x, y = (float(value) for value in np.round(self._rng.uniform(-7, 7, 2), 1))
            location: Any = (x, y) if self._rng.random() < 0.8 else Box(x, y, x + 1, y + 0.5)
            lifetime = float(self._rng.integers(2, 9))
            batch.append(Message(self._n_messages, self._words(5), location, time=now, expires=now + lifetime))
            self._n_messages += 1
        self.add("publish", batch)

    def _travel(self) -> None:
        moves: dict[Id, Region] = {}
        for id, region in self._regions.items():
            if self._rng.random() < 0.3:
                continue
            step = self._rng.normal(size=2) * self._rng.choice([0.05, 0.3, 1.0])
            x, y = (float(value) for value in _middle(region) + step)
            moves[id] = self._region(id, x, y)
        self._regions.update(moves)
        self.add("move", moves)

    def _replace(self) -> None:
        """One unsubscribes and subscribes again, another one replaces its subscription."""
        gone, replaced = (int(id) for id in self._rng.choice(_CLIENTS, 2, replace=False))
        self.add("unsubscribe", [gone])
        self.add("subscribe", [self._subscription(gone), self._subscription(replaced)])


def _middle(region: Region) -> Any:
    if isinstance(region, Circle):
        return np.array([region.x, region.y])
    x0, y0, x1, y1 = region.bounding_box("plane").bounds
    return np.array([(x0 + x1) / 2, (y0 + y1) / 2])
