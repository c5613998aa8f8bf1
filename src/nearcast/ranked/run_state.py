"""Where a run of ticks with lists above a floor stands, and the changes it has told."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.arrow import copy_used_again
from nearcast.columns.growing import resized
from nearcast.ranked.kernels.list_layout import (
    LAST_LATE,
    MOST_PUT_OFF,
    N_POSITIONS,
    N_SCARCE,
    N_TAKEN_BACK,
    TAKEN_BACK,
    TICK_START,
    TOLD_BEFORE,
    FloorRunArrays,
)
from nearcast.ranked.kernels.run_layout import N_CUT, N_HEAP, N_LACKING, NEWEST, NO_MESSAGE
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
