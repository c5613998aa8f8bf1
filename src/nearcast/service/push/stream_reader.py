"""An inbox as a stream of frames: wake, read, apply policies, gather what comes close together, beat when nothing comes.

Live streams and webhooks read this way. Nothing is queued: what the reader has not taken yet stays in the inbox, on disk.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from nearcast.service.broker import Broker, EventRow, Inbox
from nearcast.service.problems import Problem
from nearcast.service.push.throttling import Pusher
from nearcast.wire.api import Event, EventData


class Frame(NamedTuple):
    """Events that go out together; everything up to `cursor` has been dealt with. Without events: a heartbeat."""

    events: list[bytes]
    cursor: int


@dataclass(slots=True)
class Pace:
    """How frames follow each other; shared by all readers of a kind.

    After a frame a reader waits so long that all readers who got one lately take `frames_per_s` together (about half of what
    one core can send), but at least `shortest_s`. So few busy readers get theirs at once, and many get more in each frame.
    """

    heartbeat_s: float = 15.0
    shortest_s: float = 0.005
    frames_per_s: float = 3_000.0
    frame_events: int = 500
    """Rows read at once, and so the most events of a frame, but for digests."""
    n_readers: int = 0
    _second: int = 0
    _n_busy: int = 0
    _n_busy_before: int = 0

    def gap_s(self, second: int, is_first: bool) -> float:
        """How long to wait after a frame that was sent in a second of the clock; `is_first` of this reader in that second."""
        if second != self._second:
            self._n_busy_before = self._n_busy if second == self._second + 1 else 0
            self._second, self._n_busy = second, 0
        self._n_busy += is_first
        return max(self.shortest_s, max(self._n_busy, self._n_busy_before) / self.frames_per_s)


class Reader:
    """Frames of one inbox from a cursor on, until its feed is closed."""

    def __init__(self, broker: Broker, inbox: Inbox, after: int, pusher: Pusher, pace: Pace) -> None:
        self._broker = broker
        self._inbox = inbox
        self._cursor = after
        self._pusher = pusher
        self._pace = pace
        self.wants: Callable[[EventRow], bool] | None = None
        """Which rows of the inbox concern the reader; None: all."""
        self.check: Callable[[], Awaitable[None]] | None = None
        """Asked with every heartbeat, busy or not; raises Problem if the reader may not go on."""
        self._ending: Problem | None = None

    async def frames(self) -> AsyncGenerator[Frame, None]:
        """The caller takes the next frame when it has dealt with the one before: that is the back-pressure.

        Raises Problem if the reader must end before the server does.
        """
        self._pace.n_readers += 1
        try:
            loop, next_time, second = asyncio.get_running_loop(), 0.0, 0
            next_check = loop.time() + self._pace.heartbeat_s
            # So that the client knows where it stands before anything happens.
            yield Frame([], self._cursor)
            while True:
                wait_s = next_time - loop.time()
                if wait_s > 0:
                    await asyncio.sleep(wait_s)
                if self.check is not None and loop.time() >= next_check:
                    await self.check()
                    next_check = loop.time() + self._pace.heartbeat_s
                if self._inbox.feed.is_closed:
                    break
                events = await self._read()
                if events:
                    yield Frame(events, self._cursor)
                    now, before = loop.time(), second
                    second = int(now)
                    next_time = now + self._pace.gap_s(second, second != before)
                elif not await self._wait():
                    break
                elif self._inbox.feed.latest <= self._cursor and self._pusher.due > time.time():
                    yield Frame([], self._cursor)
            if self._ending is not None:
                raise self._ending
        finally:
            self._pace.n_readers -= 1

    def end(self, cause: Problem) -> None:
        """No more frames: whoever takes them is told the cause."""
        self._ending = cause
        self._inbox.feed.close()

    async def replay(self) -> None:
        """Bring the policies to where they were at the cursor, by what the inbox still has before it."""
        position = 0
        while position < self._cursor:
            page = await self._broker.read_events(self._inbox, position, self._pace.frame_events)
            self._pusher.take(row for row in self._wanted(page.rows) if row.sequence <= self._cursor)
            if not page.has_more:
                break
            position = page.cursor

    async def hold_again(self) -> None:
        """Read anew what the policies were holding at the cursor."""
        first = self._pusher.first_held
        if first is None:
            return
        rows: list[EventRow] = []
        position = first - 1
        while position < self._cursor:
            page = await self._broker.read_events(self._inbox, position, self._pace.frame_events)
            rows += [row for row in self._wanted(page.rows) if self._pusher.is_held(row)]
            if not page.has_more:
                break
            position = page.cursor
        self._pusher.hold_again(rows)

    async def _read(self) -> list[bytes]:
        """The events of the next frame; empty if there is nothing to read."""
        events = self._pusher.advance(time.time())
        while True:
            page = await self._broker.read_events(self._inbox, self._cursor, self._pace.frame_events)
            if page.is_gap:
                events.append(gap_event(self._inbox, self._cursor, page.oldest))
            self._cursor = max(self._cursor, page.cursor)
            events += self._pusher.take(self._wanted(page.rows))
            if events or not page.has_more:
                return events

    def _wanted(self, rows: list[EventRow]) -> list[EventRow]:
        return rows if self.wants is None else [row for row in rows if self.wants(row)]

    async def _wait(self) -> bool:
        """For news, for a digest, at most for a heartbeat; False if the server stops."""
        wait_s = min(self._pace.heartbeat_s, max(0.0, self._pusher.due - time.time()))
        try:
            async with asyncio.timeout(wait_s):
                return await self._inbox.feed.wait(self._cursor)
        except TimeoutError:
            return True


def gap_event(inbox: Inbox, after: int, oldest: int) -> bytes:
    """Tells a reader that what it asked for is gone, in the envelope of every other event."""
    reason = f"events after {after} up to {oldest} may be gone (retention); what follows is complete"
    event = Event(
        id=f"gap-{after}-{oldest}",
        source="/v1/inbox",
        type="io.nearcast.gap",
        subject=inbox.subscriber,
        time=datetime.now(UTC),
        sequence=str(max(after, oldest)),
        data=EventData(subscription="", reason=reason),
    )
    return msgspec.json.encode(event)
