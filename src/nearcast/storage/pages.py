"""A page of the log: messages as they are delivered, and the events of every subscription it reaches.

Sequences of a page are `first`..`last`. Its messages have a run of them from `message_first` on; events that no message of the
page caused (moves, expiry) have others. Of one subscription, no two events have the same sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from msgspec import Struct, msgpack
from numpy.typing import NDArray
from pyroaring import BitMap

MATCHED, ENTERED, LEFT, RANKED_IN, RANKED_OUT, ENDED, DWELLED = range(7)
"""What an event is."""


class Span(NamedTuple):
    """The sequences of a page, and the first that is a message's."""

    first: int
    message_first: int
    last: int


class Events(NamedTuple):
    """Events in any order; all arrays of one length. `message` is the sequence of the message, 0 for none."""

    subscription: NDArray[np.int64]
    sequence: NDArray[np.int64]
    message: NDArray[np.int64]
    kind: NDArray[np.int8]
    score: NDArray[np.float64]
    rank: NDArray[np.int32]


class Details(NamedTuple):
    """What only events have that are not matches of boolean subscriptions; see `Events`."""

    message: NDArray[np.int64]
    kind: NDArray[np.int8]
    score: NDArray[np.float64]
    rank: NDArray[np.int32]


def match_events(subscription: NDArray[np.int64], message: NDArray[np.int64]) -> Events:
    """Events of boolean subscriptions: the message is its own cause."""
    n = len(subscription)
    return Events(subscription, message, message, np.zeros(n, np.int8), np.zeros(n), np.zeros(n, np.int32))


def joined_events(parts: Sequence[Events]) -> Events:
    return Events(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


class _StoredMessages(Struct, array_like=True):
    """`start` int32[n + 1] into `text`; `tenant` int32[n] into `tenants`."""

    first: int
    start: bytes
    text: bytes
    tenant: bytes
    tenants: list[str]


class _StoredEvents(Struct, array_like=True):
    """Sorted by subscription, then sequence. `count` of each subscription; `offset` of each event is its sequence less `first`.

    The others are empty when every event is a match.
    """

    count: tuple[str, bytes]
    offset: tuple[str, bytes]
    message: bytes
    kind: bytes
    score: bytes
    rank: bytes


@dataclass(slots=True, eq=False)
class Page:
    """One page in memory; made from what is to be kept, or read back."""

    first: int
    last: int
    time: float
    reached: BitMap
    message_first: int
    n_messages: int
    _message_start: NDArray[np.int32]
    _text: bytes
    _tenant: NDArray[np.int32]
    _tenants: list[str]
    _start: NDArray[np.int32]
    _offset: NDArray[np.int32]
    _details: Details | None

    @classmethod
    def of(cls, span: Span, time: float, texts: Sequence[bytes], tenants: Sequence[str], events: Events) -> Page:
        """A new page; `texts[i]` is the message of sequence `span.message_first + i`, of `tenants[i]`."""
        details = None
        if not events.kind.any() and np.array_equal(events.message, events.sequence):
            # Plain form: lexsort by subscription, then sequence. Both fit one number, which sorts several times faster.
            key = np.sort((events.subscription << 32) | (events.sequence - span.first))
            subscription, offset = key >> 32, (key & 0xFFFFFFFF).astype(np.int32)
        else:
            order = np.lexsort((events.sequence, events.subscription))
            subscription, offset = events.subscription[order], (events.sequence[order] - span.first).astype(np.int32)
            details = Details(events.message[order], events.kind[order], events.score[order], events.rank[order])
        is_first = np.ones(len(offset), bool)
        is_first[1:] = subscription[1:] != subscription[:-1]
        message_start = np.zeros(len(texts) + 1, np.int32)
        np.cumsum([len(text) for text in texts], out=message_start[1:])
        code = {tenant: at for at, tenant in enumerate(dict.fromkeys(tenants))}
        return cls(
            span.first,
            span.last,
            time,
            BitMap(subscription[is_first].astype(np.uint32)),
            span.message_first,
            len(texts),
            message_start,
            b"".join(texts),
            np.array([code[tenant] for tenant in tenants], np.int32),
            [*code],
            np.append(np.flatnonzero(is_first), len(offset)).astype(np.int32),
            offset,
            details,
        )

    @classmethod
    def read(cls, first: int, last: int, time: float, messages: bytes, reached: bytes, events: bytes) -> Page:
        """A page from the store."""
        stored, told = msgpack.decode(messages, type=_StoredMessages), msgpack.decode(events, type=_StoredEvents)
        message_start = np.frombuffer(stored.start, np.int32)
        details = None
        if told.kind:
            details = Details(
                np.frombuffer(told.message, np.int64),
                np.frombuffer(told.kind, np.int8),
                np.frombuffer(told.score, np.float64),
                np.frombuffer(told.rank, np.int32),
            )
        return cls(
            first,
            last,
            time,
            BitMap.deserialize(bytes(reached)),
            stored.first,
            len(message_start) - 1,
            message_start,
            stored.text,
            np.frombuffer(stored.tenant, np.int32),
            stored.tenants,
            np.concatenate(([0], np.cumsum(_widened(told.count)))).astype(np.int32),
            _widened(told.offset),
            details,
        )

    def stored(self) -> tuple[bytes, bytes, bytes]:
        """Messages, bitmap and events as the store keeps them."""
        start, tenant = self._message_start.tobytes(), self._tenant.tobytes()
        messages = _StoredMessages(self.message_first, start, self._text, tenant, self._tenants)
        rest = [b""] * 4 if self._details is None else [array.tobytes() for array in self._details]
        events = _StoredEvents(_narrowed(np.diff(self._start)), _narrowed(self._offset), *rest)
        return msgpack.encode(messages), self.reached.serialize(), msgpack.encode(events)

    @property
    def n_bytes(self) -> int:
        """About what it takes in memory."""
        return len(self._text) + 4 * (len(self._offset) + len(self._start)) + 4 * self.n_messages + 500

    @property
    def n_events(self) -> int:
        return len(self._offset)

    def message(self, sequence: int) -> tuple[bytes, str] | None:
        """The text and tenant of a message, or None if this page does not hold it."""
        at = sequence - self.message_first
        if not 0 <= at < self.n_messages:
            return None
        return self._text[self._message_start[at] : self._message_start[at + 1]], self._tenants[self._tenant[at]]

    def events_of(self, subscription: int, after: int) -> list[tuple[int, int, int, float, int]]:
        """(sequence, message, kind, score, rank) of its events after a sequence, in order."""
        if subscription not in self.reached:
            return []
        at = self.reached.rank(subscription) - 1
        start, end = int(self._start[at]), int(self._start[at + 1])
        offset = self._offset[start:end]
        if after >= self.first:
            start += int(np.searchsorted(offset, after - self.first, side="right"))
            offset = self._offset[start:end]
        sequences = (offset.astype(np.int64) + self.first).tolist()
        if self._details is None:
            return [(sequence, sequence, MATCHED, 0.0, 0) for sequence in sequences]
        message, kind, score, rank = (array[start:end].tolist() for array in self._details)
        return list(zip(sequences, message, kind, score, rank, strict=True))

    def pairs(self, first: int, end: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Subscription and message of all events whose message has a sequence from `first` on and before `end`."""
        of = self._offset.astype(np.int64) + self.first if self._details is None else self._details.message
        rows = np.flatnonzero((of >= first) & (of < end))
        at = np.searchsorted(self._start, rows, side="right") - 1
        return np.array(self.reached, np.int64)[at], of[rows]

    def reached_by(self, message: int) -> list[int]:
        """The subscriptions that have events of a message, by number."""
        of = self._offset + self.first if self._details is None else self._details.message
        at = np.searchsorted(self._start, np.flatnonzero(of == message), side="right") - 1
        return [int(self.reached[int(place)]) for place in np.unique(at)]


def _narrowed(numbers: NDArray[np.int32]) -> tuple[str, bytes]:
    """As few bytes as the largest needs: most subscriptions have one event of a page, and most pages are short."""
    kind = np.min_scalar_type(int(numbers.max(initial=0))).str
    return kind, numbers.astype(kind).tobytes()


def _widened(stored: tuple[str, bytes]) -> NDArray[np.int32]:
    return np.frombuffer(stored[1], stored[0]).astype(np.int32)
