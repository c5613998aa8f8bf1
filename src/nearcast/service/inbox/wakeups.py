"""Wake-ups for readers of the durable inbox: who watches which subscriptions, and up to where there is news."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from pyroaring import BitMap


class Feed:
    """One reader's wake-up. It carries no events: those are read from the inbox, so that none is lost or sent twice."""

    __slots__ = ("_is_closed", "_wake", "latest", "numbers")

    def __init__(self, numbers: BitMap) -> None:
        self.numbers = numbers
        self.latest = 0
        self._wake = asyncio.Event()
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    async def wait(self, after: int) -> bool:
        """Return True as soon as there are events after `after`, False once the feed is closed."""
        while self.latest <= after and not self._is_closed:
            self._wake.clear()
            await self._wake.wait()
        return not self._is_closed

    def tell(self, sequence: int) -> None:
        """There are events up to `sequence`; called on the event loop."""
        if sequence > self.latest:
            self.latest = sequence
            self._wake.set()

    def close(self) -> None:
        self._is_closed = True
        self._wake.set()


class Watchers:
    """All open feeds, by subscription number; only touched on the event loop."""

    def __init__(self) -> None:
        self._feeds: dict[int, set[Feed]] = {}
        self.watched = BitMap()

    def add(self, feed: Feed, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._feeds.setdefault(number, set()).add(feed)
            self.watched.add(number)

    def remove(self, feed: Feed, numbers: Iterable[int]) -> None:
        for number in numbers:
            others = self._feeds.get(number)
            if others is not None:
                others.discard(feed)
                if not others:
                    del self._feeds[number]
                    self.watched.discard(number)

    def tell(self, reached: BitMap, sequence: int) -> None:
        """Wake whoever watches one of the subscriptions that have events up to `sequence`."""
        for number in self.watched & reached:
            for feed in self._feeds[number]:
                feed.tell(sequence)
