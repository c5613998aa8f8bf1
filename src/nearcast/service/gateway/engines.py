"""The engines of a gateway: boolean subscriptions are matched by a pipeline elsewhere, and its deliveries are told here.

Moving and ranked subscriptions stay with the engines of this process: they need every position and every message at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from pyroaring import BitMap

from nearcast.boolean.engine import Matcher
from nearcast.model.regions import Region
from nearcast.service.engines.engine_events import Told, told_of
from nearcast.service.engines.engines import Engines
from nearcast.service.geometry import Point, is_inside, region_of
from nearcast.service.intake.messages import Posted, message_out
from nearcast.service.intake.subscriptions import Standing, standing_of
from nearcast.storage.pages import MATCHED, Events, Page, match_events
from nearcast.storage.store import Store

_PAGES_AT_ONCE = 64
_MOST_REMEMBERED = 500_000
Pair = tuple[int, int]
"""(number of the subscription, sequence of the message)."""


class GatewayEngines(Engines):
    """As `Engines`, but for boolean subscriptions, of which it knows only who listens."""

    def __init__(self, store: Store, ranked_window: int, middle_of: Callable[[int], Point | None]) -> None:
        super().__init__(Matcher(), ranked_window, middle_of)
        self._store = store
        self._listening = store.listening_numbers("boolean")
        self._told_before = ToldBefore(store)

    def _put_boolean(self, standing: list[Standing]) -> None:
        self._listening.update(one.number for one in standing)

    def remove(self, kind: str, tenant: str, numbers: Sequence[int]) -> None:
        if kind == "boolean":
            self._listening -= BitMap(numbers)
        else:
            super().remove(kind, tenant, numbers)

    def match(self, posted: Sequence[Posted], first: int) -> Events:
        nobody = np.empty(0, np.int64)
        return match_events(nobody, nobody)

    def deliver(self, pairs: Iterable[Pair]) -> Told:
        """What the pipeline found, in the order of the messages: to those who still listen, each pair once."""
        wanted = sorted({pair for pair in pairs if pair[0] in self._listening}, key=lambda pair: pair[::-1])
        audiences = self._audiences_of(message for _, message in wanted)
        there = [pair for pair in wanted if pair[1] in audiences and self._is_addressed(pair[0], audiences[pair[1]])]
        fresh = self._told_before.without_repeats(there)
        return told_of([pair[0] for pair in fresh], [pair[1] for pair in fresh], [MATCHED] * len(fresh))

    def _audiences_of(self, messages: Iterable[int]) -> dict[int, Region | None]:
        """Of the messages that are kept still."""
        found: dict[int, Region | None] = {}
        page: Page | None = None
        for message in messages:
            if message in found:
                continue
            if page is None or page.message(message) is None:
                page = self._store.page_with(message)
            held = None if page is None else page.message(message)
            if held is not None:
                # Most have none, and decoding takes longer than looking.
                audience = message_out(held[0]).audience if b'"audience"' in held[0] else None
                found[message] = None if audience is None else region_of(audience)
        return found

    def _is_addressed(self, number: int, audience: Region | None) -> bool:
        if audience is None:
            return True
        middle = self._middle_of(number)
        return middle is not None and is_inside(audience, middle)

    def matcher_with(self, number: int) -> Matcher:
        matcher = Matcher()
        matcher.subscribe([standing_of(row).boolean() for row in self._store.subscriptions_of([number])])
        return matcher

    def stats(self) -> dict[str, dict[str, float | str]]:
        return super().stats() | {"boolean": {"subscriptions": len(self._listening), "index": "gateway"}}


class ToldBefore:
    """Which pairs have been told. Of messages after a sequence it knows all; of earlier ones it asks the log, once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._since = store.sequence + 1
        self._told: dict[int, BitMap] = {}

    def without_repeats(self, pairs: Sequence[Pair]) -> list[Pair]:
        """Those that are new; they are not from now on."""
        first = min((message for _, message in pairs), default=self._since)
        if first < self._since:
            self._learn(first)
        fresh = []
        for number, message in pairs:
            told = self._told.setdefault(message, BitMap())
            if number not in told:
                told.add(number)
                fresh.append((number, message))
        if len(self._told) > _MOST_REMEMBERED:
            self._since = sorted(self._told)[len(self._told) // 2]
            self._told = {message: told for message, told in self._told.items() if message >= self._since}
        return fresh

    def _learn(self, first: int) -> None:
        home = self._store.page_with(first)
        after = first if home is None else home.first
        while pages := self._store.pages_from(after, _PAGES_AT_ONCE):
            for page in pages:
                subscription, message = page.pairs(first, self._since)
                for number, sequence in zip(subscription.tolist(), message.tolist(), strict=True):
                    self._told.setdefault(sequence, BitMap()).add(number)
            after = pages[-1].last + 1
        self._since = first
