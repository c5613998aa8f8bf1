"""The messages of a sliding window, by sequence number, with counted and weighed words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.arrow import used_again
from nearcast.columns.growing import GrowingArray
from nearcast.columns.identifiers import Identifiers
from nearcast.kernels.deliveries import look_up_ids
from nearcast.ranked.kernels.layouts import (
    BASE,
    MESSAGE_LENGTH,
    MESSAGE_RECORD,
    MESSAGE_START,
    MESSAGE_X,
    MESSAGE_Y,
    WindowArrays,
)
from nearcast.ranked.kernels.window import weigh_messages

_BY_PLACE = {"time": np.float64, "is_alive": np.uint8}
_BY_KEYWORD = {"keyword": np.int32, "value": np.float64, "n_times": np.int32}
# Expired messages are dropped when they outnumber the living, and are at least this many.
_MIN_EXPIRED = 1024
_NO_MESSAGE = -1
# A window reserves memory for the messages it will have in the end, but at most this many times those it has. It is not touched
# before.
_MOST_AHEAD = 64


class ArrivingMessages(NamedTuple):
    """Messages at points, in the order of arrival; `time` is 0 in a count window."""

    ids: pa.Array
    time: NDArray[np.float64]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    keyword_start: NDArray[np.int64]
    keyword: NDArray[np.int32]
    n_times: NDArray[np.int32]

    def take(self, rows: NDArray[np.int64]) -> ArrivingMessages:
        """These rows, in this order."""
        length = np.diff(self.keyword_start)[rows]
        start = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
        at = np.repeat(self.keyword_start[rows] - start[:-1], length) + np.arange(int(start[-1]))
        columns = (self.time[rows], self.x[rows], self.y[rows])
        return ArrivingMessages(self.ids.take(pa.array(rows)), *columns, start, self.keyword[at], self.n_times[at])


def window_arrays(head: NDArray[np.int64], record: NDArray[np.float64], others: Mapping[str, NDArray[Any]]) -> WindowArrays:
    """The arrays for kernels: records, and the columns that are not part of them."""
    of_position = record[:-MESSAGE_RECORD]
    return WindowArrays(
        head,
        record=record,
        x=of_position[MESSAGE_X::MESSAGE_RECORD],
        y=of_position[MESSAGE_Y::MESSAGE_RECORD],
        length=of_position[MESSAGE_LENGTH::MESSAGE_RECORD],
        keyword_start=record.view(np.int64)[MESSAGE_START::MESSAGE_RECORD],
        **others,
    )


def copied_part(window: WindowArrays, first: int, last: int) -> WindowArrays:
    """A copy of the messages at positions `first` … `last - 1`, independent of the window."""
    begin, end = window.keyword_start[first], window.keyword_start[last]
    others = {name: getattr(window, name)[first:last].copy() for name in _BY_PLACE}
    others |= {name: getattr(window, name)[begin:end].copy() for name in _BY_KEYWORD}
    record = window.record[MESSAGE_RECORD * first : MESSAGE_RECORD * (last + 1)].copy()
    part = window_arrays(window.head + first, record, others)
    part.keyword_start[:] -= begin
    return part


class _MessageIds:
    """The ids of all messages from sequence number `first` on, and the latest message of each id."""

    def __init__(self, first: int, kind: str | None) -> None:
        self.first = first
        self.ids = Identifiers()
        self.ids.kind = kind
        self.number = GrowingArray(np.int32)
        self.latest = GrowingArray(np.int64)

    def append(self, ids: pa.Array) -> None:
        known = self.ids.add(ids)
        self.latest.extend(_NO_MESSAGE, self.ids.n - self.latest.n)
        self.latest.used[known] = self.first + self.number.n + np.arange(len(known))
        self.number.extend(known)

    def drop_before(self, first: int) -> None:
        """Forget which ids the messages before `first` had; the ids themselves stay known."""
        self.number.drop(first - self.first)
        self.first = first

    @property
    def n_bytes(self) -> int:
        return self.number.n_bytes + self.latest.n_bytes + self.ids.n_bytes


class MessageWindow:
    """Messages from arrival until they are dropped after their expiry. The engine sets `is_alive`.

    The message with sequence number q is at position q - `base`. Positions before the oldest living message are freed. With
    `n_alive_at_most`, memory for all living messages and as many expired ones is reserved early, so that no arrival waits for
    a copy.
    """

    def __init__(self, n_alive_at_most: int = 0) -> None:
        self.base = 0
        self._n_expected = 2 * n_alive_at_most
        self._columns = {name: GrowingArray(dtype) for name, dtype in _BY_PLACE.items()}
        self._record = GrowingArray(np.float64, np.zeros(MESSAGE_RECORD))
        self._words = {name: GrowingArray(dtype) for name, dtype in _BY_KEYWORD.items()}
        self._message_ids = _MessageIds(0, None)
        # The same for messages since the window was last shortened: it replaces the other when all messages before have
        # expired.
        self._next_message_ids = _MessageIds(0, None)

    @property
    def ids(self) -> Identifiers:
        """All known ids; some are of messages that are gone."""
        return self._message_ids.ids

    @property
    def n(self) -> int:
        """Positions in use."""
        return self._columns["time"].n

    @property
    def next_number(self) -> int:
        """The sequence number of the next arrival."""
        return self.base + self.n

    @property
    def n_alive(self) -> int:
        return int(np.count_nonzero(self._columns["is_alive"].used))

    @property
    def n_bytes(self) -> int:
        grown = (*self._columns.values(), self._record, *self._words.values())
        return sum(array.n_bytes for array in grown) + self._message_ids.n_bytes + self._next_message_ids.n_bytes

    def layout(self) -> WindowArrays:
        others = {name: column.used for name, column in (*self._columns.items(), *self._words.items())}
        return window_arrays(np.array([self.base], np.int64), self._record.used, others)

    def ids_of(self, numbers: NDArray[np.int64]) -> pa.Array:
        """The ids of messages, by sequence number."""
        return self.ids.take(self.id_numbers(numbers))

    def id_numbers(self, numbers: NDArray[np.int64]) -> NDArray[np.int32]:
        """The numbers of the ids of messages; equal for messages with the same id."""
        numbers_of_ids = used_again(len(numbers), np.int32)
        look_up_ids(self._message_ids.number.used, numbers, self._message_ids.first, numbers_of_ids)
        return numbers_of_ids

    def numbers_of(self, ids: pa.Array) -> NDArray[np.int64]:
        """The sequence number of the living message with each id; -1 if there is none."""
        known = self.ids.find(ids)
        latest = np.full(len(known), _NO_MESSAGE, np.int64)
        latest[known >= 0] = self._message_ids.latest.used[known[known >= 0]]
        positions = latest - self.base
        is_living = positions >= 0
        is_living[is_living] = self._columns["is_alive"].used[positions[is_living]] != 0
        return np.where(is_living, latest, _NO_MESSAGE)

    def append(self, messages: ArrivingMessages, weights: NDArray[np.float64]) -> None:
        """Give messages their positions; they are not alive yet."""
        n = len(messages.x)
        if n == 0:
            return
        first = self.n
        for names in (self._message_ids, self._next_message_ids):
            names.append(messages.ids)
        self._reserve(n, len(messages.keyword))
        self._columns["time"].extend(messages.time)
        self._columns["is_alive"].extend(0, n)
        self._record.extend(0.0, MESSAGE_RECORD * n)
        layout = self.layout()
        layout.x[first:], layout.y[first:] = messages.x, messages.y
        layout.keyword_start[first + 1 :] = layout.keyword_start[first] + messages.keyword_start[1:]
        self._words["keyword"].extend(messages.keyword)
        self._words["n_times"].extend(messages.n_times)
        self._words["value"].extend(0.0, len(messages.keyword))
        weigh_messages(self.layout(), first, self.n, weights)

    def _reserve(self, n_more: int, n_more_words: int) -> None:
        """Reserve memory for more messages and words, or for as many as are expected."""
        n, n_words = self.n + n_more, self._words["keyword"].n + n_more_words
        if n > len(self._columns["time"].memory):
            for column in self._columns.values():
                column.reserve(self.expected(n, n))
            self._record.reserve(MESSAGE_RECORD * (self.expected(n, n) + 1))
        if n_words > len(self._words["keyword"].memory):
            for column in self._words.values():
                column.reserve(self.expected(n_words, n))

    def expected(self, n_values: int, n_messages: int) -> int:
        """The number of values to reserve memory for, if `n_messages` messages have `n_values`."""
        n_expected = max(n_messages, min(self._n_expected, _MOST_AHEAD * n_messages))
        return n_values * n_expected // max(1, n_messages)

    def apply_word_weights(self, weights: NDArray[np.float64]) -> None:
        """Use new weights of words."""
        weigh_messages(self.layout(), 0, self.n, weights)

    def drop_expired(self) -> int:
        """Free the positions before the oldest living message, if they are many; returns the number of freed positions."""
        alive = self._columns["is_alive"].used.view(np.bool_)
        # The first living message: `argmax` stops there.
        n_expired = int(alive.argmax()) if self.n else 0
        n_expired = n_expired if self.n and alive[n_expired] else self.n
        if n_expired <= max(_MIN_EXPIRED, self.n - n_expired):
            return 0
        n_words = int(self.layout().keyword_start[n_expired])
        # As many messages will come again, so their memory stays.
        for column in self._columns.values():
            column.drop(n_expired)
        self._record.drop(MESSAGE_RECORD * n_expired)
        for column in self._words.values():
            column.drop(n_words)
        self.layout().keyword_start[:] -= n_words
        self.base += n_expired
        if self._next_message_ids.first <= self.base:
            self._message_ids, self._next_message_ids = self._next_message_ids, _MessageIds(self.next_number, self.ids.kind)
        self._message_ids.drop_before(self.base)
        return n_expired

    # --- on disk -----------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {name: column.used for name, column in (*self._columns.items(), *self._words.items())}
        arrays |= {"record": self._record.used, "head": np.array([self.base])}
        arrays |= {"id_number": self._message_ids.number.used, "latest": self._message_ids.latest.used}
        return arrays | {f"ids.{name}": array for name, array in self.ids.arrays().items()}

    @classmethod
    def from_arrays(cls, n_alive_at_most: int, id_kind: str | None, arrays: Mapping[str, NDArray[Any]]) -> MessageWindow:
        window = cls(n_alive_at_most)
        window.base = int(arrays["head"][BASE])
        window._columns = {name: GrowingArray(dtype, arrays[name]) for name, dtype in _BY_PLACE.items()}
        window._words = {name: GrowingArray(dtype, arrays[name]) for name, dtype in _BY_KEYWORD.items()}
        window._record = GrowingArray(np.float64, arrays["record"])
        id_arrays = {name.removeprefix("ids."): array for name, array in arrays.items() if name.startswith("ids.")}
        window._message_ids, window._next_message_ids = (
            _MessageIds(window.base, id_kind),
            _MessageIds(window.next_number, id_kind),
        )
        window._message_ids.ids = Identifiers.from_arrays(id_kind, id_arrays)
        window._message_ids.number = GrowingArray(np.int32, arrays["id_number"])
        window._message_ids.latest = GrowingArray(np.int64, arrays["latest"])
        return window
