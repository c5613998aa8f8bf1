"""What stays from tick to tick: where a run stands, the changes recorded so far, the calendar of expiries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.arrow import copy_used_again
from nearcast.columns.growing import GrowingArray, aligned_empty, resized
from nearcast.ranked.kernels.expiry_calendar import has_chunks, schedule_at_oldest
from nearcast.ranked.kernels.layouts import N_HEAP, N_NEEDS_REFILL, N_TRUNCATED, NEWEST, NO_MESSAGE, WindowArrays
from nearcast.ranked.kernels.list_layout import (
    CANCELLED,
    CHANGES_BEFORE,
    CHUNK,
    LAST_LATE,
    MAX_DEFERRED,
    N_CANCELLED,
    N_LOW_RESERVE,
    N_POSITIONS,
    NO_CHUNK,
    TICK_START,
    USED,
    ExpiryArrays,
    ResultListArrays,
    RunArrays,
)
from nearcast.ranked.rank_changes import RankChanges, cancel_out, change_arrays, with_capacity
from nearcast.ranked.window import MessageWindow

_FIRST_CAPACITY = 1024
# Memory for more changes than this is given back when it is more than _MOST_SPARE times what was used.
_MOST_KEPT, _MOST_SPARE = 1 << 20, 4


class RunState:
    """Arrays that stay from call to call."""

    def __init__(self, span: float) -> None:
        self.at = np.zeros(N_POSITIONS, np.int64)
        self.at[[NEWEST, LAST_LATE]] = NO_MESSAGE
        self.clock = np.array([-math.inf, span, -math.inf])
        self.heap, self._due = np.empty(0, np.int64), np.empty(0, np.int64)
        self._needs_refill, self._truncated = np.empty(_FIRST_CAPACITY, np.int32), np.empty(_FIRST_CAPACITY, np.int32)
        self._low_reserve = np.empty(_FIRST_CAPACITY, np.int32)
        self._deferred = np.empty(2 * MAX_DEFERRED, np.int64)
        self.counters = np.zeros(2, np.int64)
        self.changes = change_arrays(_FIRST_CAPACITY)

    def grow(self, n_positions: int) -> None:
        if n_positions > len(self.heap):
            self.heap = resized(self.heap, max(n_positions, 2 * len(self.heap)), None)
            self._due = np.empty(len(self.heap), np.int64)

    def run(self) -> RunArrays:
        return RunArrays(
            self.at, self.clock, self.heap, self._due, self._needs_refill, self._truncated, self._low_reserve, self._deferred
        )

    def reserve(self, n_changes: int) -> None:
        """Make space for `n_changes` more changes, and for more subscriptions to look after."""
        self._needs_refill = resized(
            self._needs_refill, 2 * len(self._needs_refill), None, needed=int(self.at[N_NEEDS_REFILL]) + 2
        )
        self._truncated = resized(self._truncated, 2 * len(self._truncated), None, needed=int(self.at[N_TRUNCATED]) + 2)
        self._low_reserve = resized(self._low_reserve, 2 * len(self._low_reserve), None, needed=int(self.at[N_LOW_RESERVE]) + 2)
        n = int(self.changes.n[0])
        if n + n_changes > len(self.changes.tick):
            self.changes = with_capacity(self.changes, 2 * n + n_changes)

    def take_needs_refill(self) -> NDArray[np.int32]:
        """The subscriptions to refill; the list is cleared."""
        numbers = self._needs_refill[: self.at[N_NEEDS_REFILL]].copy()
        self.at[N_NEEDS_REFILL] = 0
        return numbers

    def take_truncated(self) -> NDArray[np.int32]:
        """The subscriptions whose threshold rose; the list is cleared."""
        numbers = np.unique(self._truncated[: self.at[N_TRUNCATED]])
        self.at[N_TRUNCATED] = 0
        return numbers

    def take_low_reserve(self) -> NDArray[np.int32]:
        """The subscriptions that are left with their best k messages; the list is cleared."""
        numbers = self._low_reserve[: self.at[N_LOW_RESERVE]].copy()
        self.at[N_LOW_RESERVE] = 0
        return numbers

    def record(self, tick: int, entries: tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]], change: int) -> None:
        """Record changes of one kind: all entries enter, or all leave."""
        n, n_more = int(self.changes.n[0]), len(entries[0])
        self.reserve(n_more)
        new_rows = slice(n, n + n_more)
        self.changes.tick[new_rows], self.changes.change[new_rows] = tick, change
        self.changes.subscription[new_rows], self.changes.number[new_rows], self.changes.score[new_rows] = entries
        self.changes.n[0] = n + n_more

    def begin_tick(self) -> None:
        self.at[TICK_START] = self.at[CHANGES_BEFORE] + self.changes.n[0]

    def take_changes(self, window: MessageWindow, tick: int, is_net: bool) -> RankChanges:
        """The changes recorded since the last call: all of them, or what remains after pairs cancel out."""
        n = int(self.changes.n[0])
        self.changes.n[0] = 0
        self.at[CHANGES_BEFORE] += n
        columns: tuple[NDArray[Any], ...] = tuple(column[:n] for column in self.changes[1:])
        if self.at[N_CANCELLED]:
            self.at[N_CANCELLED] = 0
            is_reported = columns[3] != CANCELLED
            columns = tuple(column[is_reported] for column in columns)
        else:
            columns = tuple(copy_used_again(column) for column in columns)
        if len(self.changes.tick) > max(_MOST_KEPT, _MOST_SPARE * n):
            self.changes = change_arrays(_FIRST_CAPACITY)
        if is_net:
            columns = cancel_out(columns, window.id_numbers(columns[2]))
            columns[0][:] = tick
        tick_of, subscription, number, change, score = columns
        return RankChanges(tick_of, subscription, window.ids_of(number), change, score)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"at": self.at, "clock": self.clock, "heap": self.heap[: self.at[N_HEAP]]}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        # The engine of the papers has fewer positions.
        self.at[: len(arrays["at"])], self.clock[:], self.heap = arrays["at"], arrays["clock"], np.array(arrays["heap"])
        self._due = np.empty(len(self.heap), np.int64)
        # Lists with a low reserve are not saved: after opening they are refilled one by one.
        self.at[N_LOW_RESERVE] = 0


_FIRST_CHUNKS = 64


class ExpiryCalendar:
    """Which subscriptions to look after when a message expires: chunks of subscriptions for each position of the window."""

    def __init__(self, saved: Mapping[str, NDArray[Any]] | None = None) -> None:
        self._head = np.array([NO_CHUNK, 0, 0], np.int64) if saved is None else saved["head"]
        self._first = GrowingArray(np.int32, None if saved is None else saved["first"])
        self._chunk = aligned_empty(_FIRST_CHUNKS * CHUNK, np.int32) if saved is None else saved["chunk"]

    def grow(self, n_positions: int) -> None:
        if n_positions > self._first.n:
            self._first.extend(NO_CHUNK, n_positions - self._first.n)

    def reserve(self) -> None:
        """Add half as many chunks, if there are not enough for all subscriptions that are scheduled together."""
        if has_chunks(self._head, self._chunk, MAX_DEFERRED + 1):
            return
        n_more = max(_FIRST_CHUNKS, len(self._chunk) // CHUNK // 2)
        self._chunk = resized(self._chunk, len(self._chunk) + n_more * CHUNK, None, is_aligned=True)

    def layout(self) -> ExpiryArrays:
        return ExpiryArrays(self._head, self._first.used, self._chunk)

    def schedule(
        self, numbers: NDArray[np.int32], buffers: ResultListArrays, window: WindowArrays, living: tuple[int, bool]
    ) -> None:
        """Schedule subscriptions at the oldest of their best messages."""
        done = 0
        while True:
            done = schedule_at_oldest(self.layout(), buffers, window, numbers, done, *living)
            if done == len(numbers):
                return
            self.reserve()

    def clear(self, n_positions: int) -> None:
        """Drop positions at the beginning of the window; no subscription is scheduled there any more."""
        self._first.drop(n_positions)

    @property
    def n_bytes(self) -> int:
        return self._first.n_bytes + self._chunk.nbytes

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"head": self._head, "first": self._first.used, "chunk": self._chunk[: int(self._head[USED]) * CHUNK]}
