"""The definition of the moving answer, in plain Python: every subscription with its current region, every live message."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from nearcast.errors import NearcastError
from nearcast.model.inputs import Id
from nearcast.model.message import Message
from nearcast.model.regions import Region
from nearcast.model.subscription import Subscription
from nearcast.testing.oracles.boolean import Oracle, lies_in


class Step(NamedTuple):
    """A message enters (+1) or leaves (-1) a result."""

    subscription_id: Id
    message_id: Id
    change: int


class MovingOracle:
    """Holds subscriptions and live messages. Every call returns the difference between all results before and after it.

    `rejected` lists the rows of the last call that were left out; `now` is the largest time seen.
    """

    def __init__(self, space: str = "lonlat") -> None:
        self.space = space
        self.now = -math.inf
        self.rejected: list[int] = []
        self.messages: dict[Id, Message] = {}
        self._boolean = Oracle(space)
        # Whether a subscription matches a message, until one of them is replaced.
        self._known: dict[tuple[Id, Id], bool] = {}

    @property
    def subscriptions(self) -> Mapping[Id, Subscription]:
        return self._boolean.subscriptions

    def current(self, subscription_id: Id) -> set[Id]:
        """The live messages that match the subscription in its current region."""
        if subscription_id not in self.subscriptions:
            return set()
        return {id for id, message in self.messages.items() if self._matches(subscription_id, message)}

    def results(self) -> dict[Id, set[Id]]:
        return {id: self.current(id) for id in self.subscriptions}

    def subscribe(self, subscriptions: Iterable[Subscription]) -> list[Step]:
        before = self.results()
        new = list(subscriptions)
        self._boolean.subscribe(new)
        self.rejected = self._boolean.rejected
        self._forget_subscriptions(s.id for s in new)
        return _difference(before, self.results())

    def unsubscribe(self, ids: Iterable[Id]) -> None:
        gone = list(ids)
        self._boolean.unsubscribe(gone)
        self._forget_subscriptions(gone)
        self.rejected = []

    def move(self, moves: Mapping[Id, Region | None]) -> list[Step]:
        """Subscriptions get other regions and keep their keywords or interest."""
        before = self.results()
        self.rejected = []
        for row, (id, region) in enumerate(moves.items()):
            if id not in self.subscriptions or not lies_in(region, self.space):
                self.rejected.append(row)
                continue
            old = self.subscriptions[id]
            words = None if old.interest is not None else old.keywords
            self._boolean.subscribe([Subscription(id, keywords=words, region=region, interest=old.interest)])
            self._forget_subscriptions([id])
        return _difference(before, self.results())

    def publish(self, messages: Iterable[Message]) -> list[Step]:
        """The clock goes to the latest time of the batch. Messages that expire by then leave, those that live longer enter."""
        before = self.results()
        self.rejected = []
        usable = []
        for row, message in enumerate(messages):
            if lies_in(message.box, self.space) and self._has_words(message):
                usable.append((row, message))
            else:
                self.rejected.append(row)
        self._expire(max((m.time for _, m in usable if m.time is not None), default=-math.inf))
        for row, message in usable:
            if message.expires is not None and message.expires <= self.now:
                continue
            if message.id in self.messages:
                self.rejected.append(row)
            else:
                self.messages[message.id] = message
        self.rejected.sort()
        return _difference(before, self.results())

    def advance(self, now: float) -> list[Step]:
        before = self.results()
        self.rejected = []
        self._expire(now)
        return _difference(before, self.results())

    def _expire(self, now: float) -> None:
        self.now = max(self.now, now)
        due = [id for id, message in self.messages.items() if message.expires is not None and message.expires <= self.now]
        for id in due:
            del self.messages[id]
        self._known = {pair: matched for pair, matched in self._known.items() if pair[1] in self.messages}

    def _matches(self, subscription_id: Id, message: Message) -> bool:
        pair = (subscription_id, message.id)
        if pair not in self._known:
            self._known[pair] = self._boolean.matches(subscription_id, message)
        return self._known[pair]

    def _has_words(self, message: Message) -> bool:
        try:
            message.words()
        except NearcastError:
            return False
        return True

    def _forget_subscriptions(self, ids: Iterable[Id]) -> None:
        gone = set(ids)
        self._known = {pair: matched for pair, matched in self._known.items() if pair[0] not in gone}


def _difference(before: Mapping[Id, set[Id]], after: Mapping[Id, set[Id]]) -> list[Step]:
    steps: list[Step] = []
    for id, now in after.items():
        was: set[Any] = before.get(id, set())
        steps += [Step(id, message, -1) for message in was - now]
        steps += [Step(id, message, 1) for message in now - was]
    return steps
