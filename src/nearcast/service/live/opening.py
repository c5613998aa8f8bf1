"""What a live client asks for: which subscriptions, from which cursor; and the reader that gives it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from nearcast.service.broker import Broker, Inbox
from nearcast.service.callers import Caller
from nearcast.service.problems import busy, unusable
from nearcast.service.pushing import Pusher
from nearcast.service.reading import Pace, Reader

MAX_SUBSCRIPTIONS = 1000
FROM_NOW, FROM_ACK = "now", "ack"
_MAX_CURSOR_DIGITS = 18


@dataclass(frozen=True, slots=True)
class LiveRequest:
    """`after`: a cursor, "now" (the default) or "ack", the cursor that was acknowledged last.

    `subscriptions`: ids separated by commas; None: all of the subscriber's, also those made later.
    """

    after: str | None = None
    subscriptions: str | None = None
    subscriber: str | None = None

    def ids(self) -> list[str] | None:
        if self.subscriptions is None:
            return None
        ids = list(dict.fromkeys(one.strip() for one in self.subscriptions.split(",") if one.strip()))
        if not 1 <= len(ids) <= MAX_SUBSCRIPTIONS:
            raise unusable(
                f"subscriptions names {len(ids)} ids; expected 1 to {MAX_SUBSCRIPTIONS} separated by commas, or none for all",
                "subscriptions",
            )
        return ids


@dataclass(slots=True)
class LiveStreams:
    """What all live connections of a server share."""

    broker: Broker
    pace: Pace
    max_connections: int

    @asynccontextmanager
    async def open(self, caller: Caller, request: LiveRequest) -> AsyncIterator[tuple[Reader, Inbox]]:
        """A reader for one client; raises Problem if the client may not have it."""
        if self.pace.n_readers >= self.max_connections:
            raise busy(f"this server has {self.max_connections} live connections, as many as it takes; try again later", 10)
        after = _checked_cursor(request.after)
        inbox = await self.broker.open_inbox(caller, request.subscriber, request.ids())
        try:
            yield await self._reader(inbox, after), inbox
        finally:
            self.broker.close_inbox(inbox)

    async def _reader(self, inbox: Inbox, after: str) -> Reader:
        # The cursor is taken after the inbox is open, so that nothing falls between the two.
        if after == FROM_NOW:
            cursor = self.broker.latest
        elif after == FROM_ACK:
            cursor = await self.broker.acknowledged(inbox, "default")
        else:
            cursor = int(after)
        reader = Reader(self.broker, inbox, cursor, Pusher(self.broker.policy_of), self.pace)
        if any(self.broker.policy_of(number) is not None for number in inbox.feed.numbers):
            await reader.replay()
        return reader


def _checked_cursor(after: str | None) -> str:
    if after is None:
        return FROM_NOW
    is_number = after.isascii() and after.isdigit() and len(after) <= _MAX_CURSOR_DIGITS
    if not is_number and after not in (FROM_NOW, FROM_ACK):
        raise unusable(f"after is {after[:40]!r}; expected a cursor, {FROM_NOW!r} or {FROM_ACK!r}", "after")
    return after
