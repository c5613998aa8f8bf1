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
# What is over is cleared away when it outnumbers the living, but not before there is this much.
_LEAST_OVER = 1024
_NO_MESSAGE = -1
# Room is given for what a window will have in the end, but for so many times what it has at most. It is not touched before.
_MOST_AHEAD = 64


class ArrivingMessages(NamedTuple):
    """Messages at points, in the order of their arrival; `time` is 0 in a window that counts."""

    ids: pa.Array
    time: NDArray[np.float64]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    keyword_start: NDArray[np.int64]
    keyword: NDArray[np.int32]
    n_times: NDArray[np.int32]

    def take(self, rows: NDArray[np.int64]) -> ArrivingMessages:
        """Some of them, in this order."""
        length = np.diff(self.keyword_start)[rows]
        start = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
        at = np.repeat(self.keyword_start[rows] - start[:-1], length) + np.arange(int(start[-1]))
        sides = (self.time[rows], self.x[rows], self.y[rows])
        return ArrivingMessages(self.ids.take(pa.array(rows)), *sides, start, self.keyword[at], self.n_times[at])


def window_arrays(head: NDArray[np.int64], record: NDArray[np.float64], others: Mapping[str, NDArray[Any]]) -> WindowArrays:
    """What kernels read, made of records and the columns that are not of them."""
    of_place = record[:-MESSAGE_RECORD]
    return WindowArrays(
        head,
        record=record,
        x=of_place[MESSAGE_X::MESSAGE_RECORD],
        y=of_place[MESSAGE_Y::MESSAGE_RECORD],
        length=of_place[MESSAGE_LENGTH::MESSAGE_RECORD],
        keyword_start=record.view(np.int64)[MESSAGE_START::MESSAGE_RECORD],
        **others,
    )


def copied_part(window: WindowArrays, first: int, last: int) -> WindowArrays:
    """The messages at places `first` … `last - 1`, whatever becomes of the window."""
    begin, end = window.keyword_start[first], window.keyword_start[last]
    others = {name: getattr(window, name)[first:last].copy() for name in _BY_PLACE}
    others |= {name: getattr(window, name)[begin:end].copy() for name in _BY_KEYWORD}
    record = window.record[MESSAGE_RECORD * first : MESSAGE_RECORD * (last + 1)].copy()
    part = window_arrays(window.head + first, record, others)
    part.keyword_start[:] -= begin
    return part


class _Names:
    """The ids of all messages from sequence number `first` on, and of each id its latest message."""

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
        """Forget which ids the first messages had; the ids themselves are known on."""
        self.number.drop(first - self.first)
        self.first = first

    @property
    def n_bytes(self) -> int:
        return self.number.n_bytes + self.latest.n_bytes + self.ids.n_bytes


class MessageWindow:
    """Messages from arrival until they are cleared away after their end; who sets `is_alive` is the engine.

    The message with sequence number q stands at place q - `base`. Places before the oldest living message are freed. With
    `n_alive_at_most` all that live have room from early on, and as many that are over: no message waits until others are moved.
    """

    def __init__(self, n_alive_at_most: int = 0) -> None:
        self.base = 0
        self._n_expected = 2 * n_alive_at_most
        self._columns = {name: GrowingArray(dtype) for name, dtype in _BY_PLACE.items()}
        self._record = GrowingArray(np.float64, np.zeros(MESSAGE_RECORD))
        self._words = {name: GrowingArray(dtype) for name, dtype in _BY_KEYWORD.items()}
        self._names = _Names(0, None)
        # The same without what came before the window was cleared the last time: ready when all that is over.
        self._later_names = _Names(0, None)

    @property
    def ids(self) -> Identifiers:
        """All that are known, also of some messages that are gone."""
        return self._names.ids

    @property
    def n(self) -> int:
        """Places in use."""
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
        return sum(array.n_bytes for array in grown) + self._names.n_bytes + self._later_names.n_bytes

    def layout(self) -> WindowArrays:
        others = {name: column.used for name, column in (*self._columns.items(), *self._words.items())}
        return window_arrays(np.array([self.base], np.int64), self._record.used, others)

    def ids_of(self, numbers: NDArray[np.int64]) -> pa.Array:
        """The ids of messages, by sequence number."""
        return self.ids.take(self.id_numbers(numbers))

    def id_numbers(self, numbers: NDArray[np.int64]) -> NDArray[np.int32]:
        """The numbers of the ids of messages: equal for messages of the same id."""
        found = used_again(len(numbers), np.int32)
        look_up_ids(self._names.number.used, numbers, self._names.first, found)
        return found

    def numbers_of(self, ids: pa.Array) -> NDArray[np.int64]:
        """The sequence number of the living message with each id; -1 where there is none."""
        known = self.ids.find(ids)
        found = np.full(len(known), _NO_MESSAGE, np.int64)
        found[known >= 0] = self._names.latest.used[known[known >= 0]]
        places = found - self.base
        is_here = places >= 0
        is_here[is_here] = self._columns["is_alive"].used[places[is_here]] != 0
        return np.where(is_here, found, _NO_MESSAGE)

    def append(self, messages: ArrivingMessages, weights: NDArray[np.float64]) -> None:
        """Give messages their places; they are not alive yet."""
        n = len(messages.x)
        if n == 0:
            return
        first = self.n
        for names in (self._names, self._later_names):
            names.append(messages.ids)
        self._give_room(n, len(messages.keyword))
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

    def _give_room(self, n_more: int, n_more_words: int) -> None:
        """Room for so many more messages and words, or for as many as are expected."""
        n, n_words = self.n + n_more, self._words["keyword"].n + n_more_words
        if n > len(self._columns["time"].memory):
            for column in self._columns.values():
                column.reserve(self.expected(n, n))
            self._record.reserve(MESSAGE_RECORD * (self.expected(n, n) + 1))
        if n_words > len(self._words["keyword"].memory):
            for column in self._words.values():
                column.reserve(self.expected(n_words, n))

    def expected(self, n_values: int, n_messages: int) -> int:
        """How many values to give room for, if so many messages have so many."""
        n_expected = max(n_messages, min(self._n_expected, _MOST_AHEAD * n_messages))
        return n_values * n_expected // max(1, n_messages)

    def weigh(self, weights: NDArray[np.float64]) -> None:
        """Take over new weights of words."""
        weigh_messages(self.layout(), 0, self.n, weights)

    def clear_over(self) -> int:
        """Free the places before the oldest living message, if they are many; returns how many were freed."""
        alive = self._columns["is_alive"].used.view(np.bool_)
        # The first that is alive: found without looking at all of them.
        n_over = int(alive.argmax()) if self.n else 0
        n_over = n_over if self.n and alive[n_over] else self.n
        if n_over <= max(_LEAST_OVER, self.n - n_over):
            return 0
        n_words = int(self.layout().keyword_start[n_over])
        # As many will come again: their memory stays.
        for column in self._columns.values():
            column.drop(n_over)
        self._record.drop(MESSAGE_RECORD * n_over)
        for column in self._words.values():
            column.drop(n_words)
        self.layout().keyword_start[:] -= n_words
        self.base += n_over
        if self._later_names.first <= self.base:
            self._names, self._later_names = self._later_names, _Names(self.next_number, self.ids.kind)
        self._names.drop_before(self.base)
        return n_over

    # --- on disk -----------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        own: dict[str, NDArray[Any]] = {name: column.used for name, column in (*self._columns.items(), *self._words.items())}
        own |= {"record": self._record.used, "head": np.array([self.base])}
        own |= {"id_number": self._names.number.used, "latest": self._names.latest.used}
        return own | {f"ids.{name}": array for name, array in self.ids.arrays().items()}

    @classmethod
    def from_arrays(cls, n_alive_at_most: int, id_kind: str | None, arrays: Mapping[str, NDArray[Any]]) -> MessageWindow:
        window = cls(n_alive_at_most)
        window.base = int(arrays["head"][BASE])
        window._columns = {name: GrowingArray(dtype, arrays[name]) for name, dtype in _BY_PLACE.items()}
        window._words = {name: GrowingArray(dtype, arrays[name]) for name, dtype in _BY_KEYWORD.items()}
        window._record = GrowingArray(np.float64, arrays["record"])
        own = {name.removeprefix("ids."): array for name, array in arrays.items() if name.startswith("ids.")}
        window._names, window._later_names = _Names(window.base, id_kind), _Names(window.next_number, id_kind)
        window._names.ids = Identifiers.from_arrays(id_kind, own)
        window._names.number = GrowingArray(np.int32, arrays["id_number"])
        window._names.latest = GrowingArray(np.int64, arrays["latest"])
        return window
