"""Where a run of ticks with lists above a floor stands, and the changes it has told."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.arrow import copy_used_again
from nearcast.columns.growing import GrowingArray, aligned_empty, resized
from nearcast.ranked.kernels.expiry_calendar import has_chunks, wait_for_oldest
from nearcast.ranked.kernels.layouts import N_CUT, N_HEAP, N_LACKING, NEWEST, NO_MESSAGE, WindowArrays
from nearcast.ranked.kernels.list_layout import (
    CHUNK,
    LAST_LATE,
    MOST_PUT_OFF,
    N_POSITIONS,
    N_SCARCE,
    N_TAKEN_BACK,
    NO_CHUNK,
    TAKEN_BACK,
    TICK_START,
    TOLD_BEFORE,
    USED,
    EndArrays,
    FloorArrays,
    FloorRunArrays,
)
from nearcast.ranked.rank_changes import RankChanges, net, room_for
from nearcast.ranked.window import MessageWindow

_FIRST_ROOM = 1024
# Room for more changes than this, and for so many times as many as there were, is given back.
_MOST_KEPT, _MOST_SPARE = 1 << 20, 4


class FloorState:
    """Arrays that stay from call to call."""

    def __init__(self, span: float) -> None:
        self.at = np.zeros(N_POSITIONS, np.int64)
        self.at[[NEWEST, LAST_LATE]] = NO_MESSAGE
        self.clock = np.array([-math.inf, span, -math.inf])
        self.heap, self._due = np.empty(0, np.int64), np.empty(0, np.int64)
        self._lacking, self._cut = np.empty(_FIRST_ROOM, np.int32), np.empty(_FIRST_ROOM, np.int32)
        self._scarce = np.empty(_FIRST_ROOM, np.int32)
        self._put_off = np.empty(2 * MOST_PUT_OFF, np.int64)
        self.counters = np.zeros(2, np.int64)
        self.changes = room_for(_FIRST_ROOM)

    def grow(self, n_places: int) -> None:
        if n_places > len(self.heap):
            n_more = max(n_places, 2 * len(self.heap)) - len(self.heap)
            self.heap = np.concatenate([self.heap, np.empty(n_more, np.int64)])
            self._due = np.empty(len(self.heap), np.int64)

    def run(self) -> FloorRunArrays:
        return FloorRunArrays(self.at, self.clock, self.heap, self._due, self._lacking, self._cut, self._scarce, self._put_off)

    def give_room(self, n_changes: int) -> None:
        """Room for so many more changes, and for more subscriptions to look after."""
        self._lacking = resized(self._lacking, 2 * len(self._lacking), None, needed=int(self.at[N_LACKING]) + 2)
        self._cut = resized(self._cut, 2 * len(self._cut), None, needed=int(self.at[N_CUT]) + 2)
        self._scarce = resized(self._scarce, 2 * len(self._scarce), None, needed=int(self.at[N_SCARCE]) + 2)
        n = int(self.changes.n[0])
        if n + n_changes > len(self.changes.tick):
            grown = room_for(2 * n + n_changes)
            for old, new in zip(self.changes[1:], grown[1:], strict=True):
                new[:n] = old[:n]
            grown.n[0] = n
            self.changes = grown

    def take_lacking(self) -> NDArray[np.int32]:
        """Who is to be refilled."""
        taken = self._lacking[: self.at[N_LACKING]].copy()
        self.at[N_LACKING] = 0
        return taken

    def take_cut(self) -> NDArray[np.int32]:
        """Whose floor rose."""
        taken = np.unique(self._cut[: self.at[N_CUT]])
        self.at[N_CUT] = 0
        return taken

    def take_scarce(self) -> NDArray[np.int32]:
        """Who has been left with the best k."""
        taken = self._scarce[: self.at[N_SCARCE]].copy()
        self.at[N_SCARCE] = 0
        return taken

    def tell(self, tick: int, listed: tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]], change: int) -> None:
        """Tell of messages that all enter, or all leave."""
        n, n_more = int(self.changes.n[0]), len(listed[0])
        self.give_room(n_more)
        own = slice(n, n + n_more)
        self.changes.tick[own], self.changes.change[own] = tick, change
        self.changes.subscriber[own], self.changes.number[own], self.changes.score[own] = listed
        self.changes.n[0] = n + n_more

    def begin_tick(self) -> None:
        self.at[TICK_START] = self.at[TOLD_BEFORE] + self.changes.n[0]

    def take_changes(self, window: MessageWindow, tick: int, is_net: bool) -> RankChanges:
        """What was told since the last time, all of it or what is left of it in the end."""
        n = int(self.changes.n[0])
        self.changes.n[0] = 0
        self.at[TOLD_BEFORE] += n
        told: tuple[NDArray[Any], ...] = tuple(column[:n] for column in self.changes[1:])
        if self.at[N_TAKEN_BACK]:
            self.at[N_TAKEN_BACK] = 0
            is_told = told[3] != TAKEN_BACK
            told = tuple(column[is_told] for column in told)
        else:
            told = tuple(copy_used_again(column) for column in told)
        if len(self.changes.tick) > max(_MOST_KEPT, _MOST_SPARE * n):
            self.changes = room_for(_FIRST_ROOM)
        if is_net:
            told = net(told, window.id_numbers(told[2]))
            told[0][:] = tick
        tick_of, subscriber, number, change, score = told
        return RankChanges(tick_of, subscriber, window.ids_of(number), change, score)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"at": self.at, "clock": self.clock, "heap": self.heap[: self.at[N_HEAP]]}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        # Other engines have fewer positions.
        self.at[: len(arrays["at"])], self.clock[:], self.heap = arrays["at"], arrays["clock"], np.array(arrays["heap"])
        self._due = np.empty(len(self.heap), np.int64)
        # Who is scarce is not kept: they are refilled one by one.
        self.at[N_SCARCE] = 0


# -- Who waits for the end of which message: chunks of subscriptions by place of the window.

_FIRST_CHUNKS = 64


class ExpiryCalendar:
    """Lists of chunks by place of the window."""

    def __init__(self, given: Mapping[str, NDArray[Any]] | None = None) -> None:
        self._head = np.array([NO_CHUNK, 0, 0], np.int64) if given is None else given["head"]
        self._first = GrowingArray(np.int32, None if given is None else given["first"])
        self._chunk = aligned_empty(_FIRST_CHUNKS * CHUNK, np.int32) if given is None else given["chunk"]

    def grow(self, n_places: int) -> None:
        if n_places > self._first.n:
            self._first.extend(NO_CHUNK, n_places - self._first.n)

    def give_room(self) -> None:
        """Half as many chunks more, if there are not enough left for all that are let wait together."""
        if has_chunks(self._head, self._chunk, MOST_PUT_OFF + 1):
            return
        n_more = max(_FIRST_CHUNKS, len(self._chunk) // CHUNK // 2)
        grown = aligned_empty(len(self._chunk) + n_more * CHUNK, np.int32)
        grown[: len(self._chunk)] = self._chunk
        self._chunk = grown

    def layout(self) -> EndArrays:
        return EndArrays(self._head, self._first.used, self._chunk)

    def wait(self, numbers: NDArray[np.int32], buffers: FloorArrays, window: WindowArrays, living: tuple[int, bool]) -> None:
        """Let subscriptions wait at the oldest of their best messages."""
        done = 0
        while True:
            done = wait_for_oldest(self.layout(), buffers, window, numbers, done, *living)
            if done == len(numbers):
                return
            self.give_room()

    def clear(self, n_places: int) -> None:
        """Places at the beginning of the window are gone; nobody waits there."""
        self._first.drop(n_places)

    @property
    def n_bytes(self) -> int:
        return self._first.n_bytes + self._chunk.nbytes

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"head": self._head, "first": self._first.used, "chunk": self._chunk[: int(self._head[USED]) * CHUNK]}
