"""The definition of the ranked answer, in plain Python: after each tick every message of the window is scored."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from nearcast.errors import NearcastError
from nearcast.model.inputs import Id
from nearcast.model.message import Message
from nearcast.model.normalise import Keyword, read_keywords
from nearcast.model.relevance import (
    LONLAT_MAX_DISTANCE_M,
    distance,
    idf_weight,
    relevance,
    spatial_proximity,
    text_similarity,
    unit_weight,
)
from nearcast.model.spaces import space_of
from nearcast.model.subscription import RankedSubscription
from nearcast.model.window import CountWindow, TimeWindow


class RankStep(NamedTuple):
    """A message enters (+1) or leaves (-1) a ranked list."""

    tick: int
    subscription_id: Id
    message_id: Id
    change: int
    score: float


class _Arrived(NamedTuple):
    """A message of the window; `rank` puts the newer of two equally relevant ones first."""

    message: Message
    counts: Mapping[Any, int]
    rank: tuple[float, int]


Lists = dict[Id, list[tuple[Id, float]]]


class RankedOracle:
    """Every call returns the changes of all lists: tick by tick, or with `is_net` from its beginning to its end.

    `rejected` lists the rows of the last call that were left out. Where a list keeps a message with another score, the message
    leaves with the old score and enters with the new one.
    """

    def __init__(
        self,
        window: CountWindow | TimeWindow,
        space: str = "lonlat",
        max_distance: float | None = None,
        idf: Mapping[Keyword, int] | None = None,
        n_documents: int = 0,
        is_net: bool = False,
    ) -> None:
        self.window = window
        self.space = space_of(space)
        self.max_distance = LONLAT_MAX_DISTANCE_M if max_distance is None else max_distance
        self.is_net = is_net
        self.now = -math.inf
        self.tick = -1
        self.rejected: list[int] = []
        self.subscriptions: dict[Id, RankedSubscription] = {}
        self._arrived: dict[Id, _Arrived] = {}
        self._scores: dict[tuple[Id, Id], float | None] = {}
        self.refresh_idf(idf, n_documents)

    # --- what happens ------------------------------------------------------------------------------------------------

    def subscribe(self, subscriptions: Iterable[RankedSubscription]) -> list[RankStep]:
        before = self.results()
        self.rejected = []
        seen: set[Id] = set()
        for row, subscription in enumerate(subscriptions):
            if subscription.id in seen or not self._lies_in(*subscription.location):
                self.rejected.append(row)
                continue
            seen.add(subscription.id)
            self.subscriptions[subscription.id] = subscription
        self._scores = {pair: score for pair, score in self._scores.items() if pair[0] not in seen}
        return self._difference(before)

    def unsubscribe(self, ids: Iterable[Id]) -> None:
        gone = set(ids)
        self.rejected = []
        self.subscriptions = {id: s for id, s in self.subscriptions.items() if id not in gone}
        self._scores = {pair: score for pair, score in self._scores.items() if pair[0] not in gone}

    def publish(self, messages: Iterable[Message]) -> list[RankStep]:
        """One tick for each usable message: it enters the window, and expired messages leave."""
        before = self.results()
        self.rejected = []
        steps: list[RankStep] = []
        for row, message in enumerate(messages):
            if not self._is_usable(message):
                self.rejected.append(row)
                continue
            self.tick += 1
            if message.time is not None:
                self.now = max(self.now, message.time)
            is_timed = isinstance(self.window, TimeWindow)
            rank = (message.time if is_timed and message.time is not None else 0.0, self.tick)
            self._arrived[message.id] = _Arrived(message, Counter(message.words()), rank)
            self._drop_expired()
            if not self.is_net:
                steps += self._difference(before)
                before = self.results()
        return self._difference(before) if self.is_net else steps

    def advance(self, now: float) -> list[RankStep]:
        before = self.results()
        self.rejected = []
        self.now = max(self.now, now)
        self._drop_expired()
        return self._difference(before)

    def refresh_idf(self, idf: Mapping[Keyword, int] | None, n_documents: int = 0) -> list[RankStep]:
        """Change the weights of words, in subscriptions and in messages."""
        before = self.results()
        self.rejected = []
        self.weight: Callable[[Keyword], float] = unit_weight
        if idf is not None:
            frequencies: dict[Keyword, int] = dict(zip(read_keywords(idf, "the table"), idf.values(), strict=True))
            self.weight = lambda word: idf_weight(frequencies.get(word, 0), n_documents)
        self._scores = {}
        return self._difference(before)

    # --- what holds now ----------------------------------------------------------------------------------------------

    def results(self) -> Lists:
        return {id: self.top(id) for id in self.subscriptions}

    def top(self, subscription_id: Id) -> list[tuple[Id, float]]:
        """The best messages and their scores, best first; of equally relevant ones the newer first."""
        subscription = self.subscriptions.get(subscription_id)
        if subscription is None:
            return []
        scored = []
        for id, arrived in self._arrived.items():
            score = self._score(subscription, arrived)
            if score is not None:
                scored.append(((score, *arrived.rank), id))
        scored.sort(reverse=True, key=lambda one: one[0])
        return [(id, key[0]) for key, id in scored[: subscription.k]]

    def _score(self, subscription: RankedSubscription, arrived: _Arrived) -> float | None:
        pair = (subscription.id, arrived.message.id)
        if pair not in self._scores:
            self._scores[pair] = self._relevance(subscription, arrived)
        return self._scores[pair]

    def _relevance(self, subscription: RankedSubscription, arrived: _Arrived) -> float | None:
        words: frozenset[Any] = subscription.words()
        if not words & arrived.counts.keys():
            return None
        box = arrived.message.box
        proximity = spatial_proximity(distance(self.space, *subscription.location, box.x0, box.y0), self.max_distance)
        return relevance(subscription.spatial_weight, proximity, text_similarity(arrived.counts, words, self.weight))

    def _drop_expired(self) -> None:
        alive = {id: arrived for id, arrived in self._arrived.items() if self._is_alive(arrived)}
        if len(alive) < len(self._arrived):
            self._arrived = alive
            self._scores = {pair: score for pair, score in self._scores.items() if pair[1] in alive}

    def _is_alive(self, arrived: _Arrived) -> bool:
        time, tick = arrived.rank
        return (
            self.window.is_alive(tick, self.tick)
            if isinstance(self.window, CountWindow)
            else self.window.is_alive(time, self.now)
        )

    def _is_usable(self, message: Message) -> bool:
        x0, y0, x1, y1 = message.box.bounds
        # A box without extent is a point.
        if (x0, y0) != (x1, y1) or message.expires is not None or message.id in self._arrived:
            return False
        if isinstance(self.window, TimeWindow) and message.time is None:
            return False
        try:
            message.words()
        except NearcastError:
            return False
        return self._lies_in(x0, y0)

    def _lies_in(self, x: float, y: float) -> bool:
        return not self.space.is_lonlat or (abs(x) <= 180.0 and abs(y) <= 90.0)

    def _difference(self, before: Lists) -> list[RankStep]:
        steps = []
        for id, now in self.results().items():
            was = before.get(id, [])
            steps += [RankStep(self.tick, id, message, -1, score) for message, score in was if (message, score) not in now]
            steps += [RankStep(self.tick, id, message, 1, score) for message, score in now if (message, score) not in was]
        return steps
