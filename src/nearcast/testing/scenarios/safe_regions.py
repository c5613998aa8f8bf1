"""Small random lives of subscribers who are silent in their safe regions, each checked against the oracle after every step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nearcast.model.delivery import Change
from nearcast.model.inputs import Id
from nearcast.model.message import Message
from nearcast.model.regions import Box, Circle, Region
from nearcast.model.subscription import Subscription
from nearcast.testing.oracles.moving import MovingOracle

if TYPE_CHECKING:
    from nearcast.moving.engine import MovingMatcher

_WORDS = "abcdef"
_SUBSCRIBERS = 12
_STEPS = 15
_METRES = 20_000.0  # of a unit of these worlds in lonlat

MakeSilentMatcher = Callable[[str, Callable[[list[Id]], Mapping[Id, object]]], "MovingMatcher"]


class Clients:
    """Everyone's true place, safe region and view of its result. A client tells where it is when it leaves its region."""

    def __init__(self, seed: Sequence[int], space: str, make_matcher: MakeSilentMatcher) -> None:
        self.rng = np.random.default_rng(seed)
        self.space, self.oracle = space, MovingOracle(space)
        self.place: dict[Id, Region] = {}
        self.safe: dict[Id, Region] = {}
        self.view: dict[Id, set[Id]] = {}
        self.n_moves = self.n_silent = self.n_messages = 0
        self.matcher = make_matcher(space, self.answer)

    def answer(self, ids: list[Id]) -> Mapping[Id, object]:
        """Who is asked gives up the region promised before."""
        for id in ids:
            del self.safe[id]
        return {id: self.place[id] for id in ids}

    def live(self) -> None:
        subscriptions = [self._subscription(i) for i in range(_SUBSCRIBERS)]
        self._apply(self.matcher.subscribe(subscriptions))
        self.oracle.subscribe(subscriptions)
        for step in range(_STEPS):
            self._publish(float(step))
            if self.rng.random() < 0.7:
                self.safe.update(self.matcher.safe_regions([id for id in self.place if self.rng.random() < 0.9]))
            self._travel()
            if step % 7 == 6:
                self._apply(self.matcher.advance(step + 1.0))
                self.oracle.advance(step + 1.0)
                self._check()
            if step % 5 == 4:
                self._replace()

    def _subscription(self, id: int) -> Subscription:
        x, y = (float(value) for value in self.rng.uniform(-5, 5, 2))
        self.place[id], self.view[id] = self._region(id, x, y), self.view.get(id, set())
        if id % 4 == 3:
            return Subscription(id, interest="(a AND b) OR (c AND NOT d)", region=self.place[id])
        return Subscription(id, self._words(2, 0), self.place[id])

    def _region(self, id: Id, x: float, y: float) -> Region:
        number = int(id)
        if number % 3 == 1:
            return Box(x - 1, y - 0.5, x + 1, y + 0.5)
        unit = 1.0 if self.space == "plane" else _METRES
        return Circle(x, y, unit * (1 + number % 2) / (1 + number % 3))

    def _words(self, most: int, least: int = 1) -> list[str]:
        return [_WORDS[i] for i in self.rng.choice(len(_WORDS), int(self.rng.integers(least, most + 1)), replace=False)]

    def _publish(self, now: float) -> None:
        batch = []
        for _ in range(int(self.rng.integers(4))):
            x, y = (float(value) for value in np.round(self.rng.uniform(-7, 7, 2), 1))
            where: Any = (x, y) if self.rng.random() < 0.8 else Box(x, y, x + 1, y + 0.5)
            life = float(self.rng.integers(2, 9))
            batch.append(Message(self.n_messages, self._words(5), where, time=now, expires=now + life))
            self.n_messages += 1
        self._apply(self.matcher.publish(batch))
        self.oracle.publish(batch)
        self._check()

    def _travel(self) -> None:
        reports: dict[Id, Region] = {}
        for id, region in self.place.items():
            if self.rng.random() < 0.3:
                continue
            x, y = (float(value) for value in _middle(region) + self.rng.normal(size=2) * self.rng.choice([0.05, 0.3, 1.0]))
            self.place[id] = self._region(id, x, y)
            self.n_moves += 1
            safe = self.safe.get(id)
            if safe is not None and safe.meets(Box(x, y, x, y), self.space):
                self.n_silent += 1
            else:
                reports[id] = self.place[id]
                self.safe.pop(id, None)
        self.oracle.move(dict(self.place))
        self._apply(self.matcher.move(reports))
        self._check()

    def _replace(self) -> None:
        """Some subscribe anew, one leaves and comes back."""
        gone, anew = (int(id) for id in self.rng.choice(_SUBSCRIBERS, 2, replace=False))
        self.matcher.unsubscribe([gone])
        self.oracle.unsubscribe([gone])
        self.view[gone] = set()
        new = [self._subscription(gone), self._subscription(anew)]
        for id in (gone, anew):
            self.safe.pop(id, None)
        self._apply(self.matcher.subscribe(new))
        self.oracle.subscribe(new)
        self._check()

    def _apply(self, changes: Sequence[Change]) -> None:
        for change in changes:
            view = self.view[change.subscription_id]
            if (change.message_id in view) != (change.change < 0):
                raise AssertionError(f"{change!r} does not fit what the client has: {view!r}")
            view ^= {change.message_id}

    def _check(self) -> None:
        for id, right in self.oracle.results().items():
            if self.view[id] != right:
                raise AssertionError(f"client {id!r} has {self.view[id]!r}; where it is now, {right!r} is right")


def run_silent_worlds(space: str, make_matcher: MakeSilentMatcher, n_worlds: int, seed: int = 0) -> tuple[int, int]:
    """Live through worlds; returns the moves, and how many of them nobody was told of."""
    n_moves = n_silent = 0
    for number in range(n_worlds):
        clients = Clients([seed, number], space, make_matcher)
        try:
            clients.live()
        except AssertionError as error:
            raise AssertionError(f"silent world seed={[seed, number]}, space={space!r}: {error}") from error
        n_moves, n_silent = n_moves + clients.n_moves, n_silent + clients.n_silent
    return n_moves, n_silent


def _middle(region: Region) -> Any:
    if isinstance(region, Circle):
        return np.array([region.x, region.y])
    x0, y0, x1, y1 = region.bounding_box("plane").bounds
    return np.array([(x0 + x1) / 2, (y0 + y1) / 2])
