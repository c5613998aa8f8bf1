"""What a live client asks for: which subscriptions, from which cursor; and the reader that gives it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

from nearcast.service.auth.keys import removed_key
from nearcast.service.broker import Broker, Inbox
from nearcast.service.caller import Caller
from nearcast.service.problems import busy, unusable
from nearcast.service.push.stream_reader import Pace, Reader
from nearcast.service.push.throttling import Pusher
from nearcast.storage.errors import StoreError

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


@dataclass(slots=True, eq=False)
class _Stream:
    """One connection; it counts from the moment it is asked for, and has a reader as soon as its inbox is open."""

    reader: Reader | None = None


@dataclass(slots=True)
class LiveStreams:
    """What all live connections of a server share."""

    broker: Broker
    pace: Pace
    max_connections: int
    max_of_key: int = 2_000
    check_key: Callable[[str], Awaitable[None]] | None = None
    """Raises Problem if a key does not count any more; asked for every connection with each heartbeat."""
    _by_key: dict[str, set[_Stream]] = field(default_factory=dict)

    @asynccontextmanager
    async def open(self, caller: Caller, request: LiveRequest) -> AsyncIterator[tuple[Reader, Inbox]]:
        """A reader for one client; raises Problem if the client may not have it."""
        after = _checked_cursor(request.after)
        with self._counted(caller.key_id) as stream:
            inbox = await self.broker.open_inbox(caller, request.subscriber, request.ids())
            try:
                stream.reader = await self._reader(inbox, after)
                if self.check_key is not None:
                    stream.reader.check = partial(self._check, caller.key_id)
                yield stream.reader, inbox
            finally:
                self.broker.close_inbox(inbox)

    def end_of_key(self, key_id: str) -> None:
        """A key was removed: what it has open ends now."""
        for stream in self._by_key.get(key_id, ()):
            if stream.reader is not None:
                stream.reader.end(removed_key())

    @contextmanager
    def _counted(self, key_id: str) -> Iterator[_Stream]:
        if sum(map(len, self._by_key.values())) >= self.max_connections:
            raise busy(f"this server has {self.max_connections} live connections, as many as it takes; try again later", 10)
        stream, of_key = _Stream(), self._by_key.setdefault(key_id, set())
        if len(of_key) >= self.max_of_key:
            raise busy(f"this key has {self.max_of_key} live connections, as many as one may have; close some", 10)
        of_key.add(stream)
        try:
            yield stream
        finally:
            of_key.discard(stream)
            if not of_key:
                self._by_key.pop(key_id, None)

    async def _check(self, key_id: str) -> None:
        assert self.check_key is not None
        # A store that does not answer ends nobody: it is asked again with the next heartbeat.
        with suppress(StoreError):
            await self.check_key(key_id)

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
