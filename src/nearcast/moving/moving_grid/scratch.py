"""Memory that the kernels of a moving grid write to, kept from call to call; one for each thread."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import doubled
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work
from nearcast.kernels.layouts import CANDIDATES, NODES, ClauseArrays
from nearcast.moving.index import Boxes
from nearcast.moving.kernels.live_messages import LiveArrays
from nearcast.moving.moving_grid.kernels.match import match_messages
from nearcast.moving.moving_grid.kernels.move_diff import find_differences
from nearcast.moving.moving_grid.layout import GROUP, SLACK, MessageMatches, Runs, SideArrays
from nearcast.moving.moving_grid.layout import Differences as DifferenceArrays

_FIRST_ROOM = 1 << 14
_FIRST_LISTS = 1 << 12


class Scratch(threading.local):
    """Grows when a kernel stops for lack of room."""

    def __init__(self) -> None:
        whole = np.empty(0, np.int64)
        lists = np.empty(_FIRST_LISTS, np.int64)
        room = np.empty(_FIRST_ROOM + SLACK, np.int32)
        self._found = DifferenceArrays(_no_runs(), _no_runs(), lists, lists.copy(), np.zeros(2, np.int64))
        self._matches = MessageMatches(
            room.copy(), whole, whole, room.copy(), lists.copy(), lists.copy(), np.zeros(2, np.int64)
        )
        self._n_left = self._n_entered = self._n = 0

    def match(
        self,
        side: SideArrays,
        frame: NDArray[np.float64],
        clauses: ClauseArrays,
        record: NDArray[np.int32],
        batch: MessageBatch,
    ) -> MessageMatches:
        """The clauses of each message of the batch; the next match writes to the same memory."""
        found = self._matches
        found = found._replace(begin=np.empty(len(batch), np.int64), end=np.empty(len(batch), np.int64))
        found.counters[:] = 0
        first, n_out = 0, 0
        while True:
            first, n_out = match_messages(side, frame, clauses, record, batch.arrays, first, n_out, found)
            if first == len(batch):
                break
            found = found._replace(
                clause=doubled(found.clause, n_out),
                pending=doubled(found.pending, 0),
                key=doubled(found.key, 0),
                lists=doubled(found.lists, 0),
            )
        self._matches = found
        return found

    def differences(self, n: int) -> Scratch:
        """Ready for `n` clauses."""
        left, entered = (
            runs._replace(begin=np.empty(n, np.int64), end=np.empty(n, np.int64))
            for runs in (self._found.left, self._found.entered)
        )
        self._found = self._found._replace(left=left, entered=entered)
        self._found.counters[:] = 0
        self._n, self._n_left, self._n_entered = n, 0, 0
        return self

    def find(
        self,
        side: SideArrays,
        frame: NDArray[np.float64],
        clauses: ClauseArrays,
        live: LiveArrays,
        words: NDArray[np.int32],
        masks: NDArray[np.int32],
        record: NDArray[np.int32],
        slots: NDArray[np.int32],
        given: Boxes,
        is_move: bool,
        first: int = 0,
        last: int | None = None,
    ) -> None:
        """Find the differences of some clauses, as `find_differences` does."""
        last = self._n if last is None else last
        n_left, n_entered = self._n_left, self._n_entered
        while True:
            first, n_left, n_entered = find_differences(
                side,
                frame,
                clauses,
                live,
                words,
                masks,
                record,
                slots,
                tuple(given),
                is_move,
                first,
                last,
                n_left,
                n_entered,
                self._found,
            )
            if first == last:
                break
            found = self._found
            self._found = found._replace(
                left=_with_capacity(found.left, n_left),
                entered=_with_capacity(found.entered, n_entered),
                key=doubled(found.key, 0),
                lists=doubled(found.lists, 0),
            )
        self._n_left, self._n_entered = n_left, n_entered

    def groups(self, slots: NDArray[np.int32]) -> tuple[Groups, Groups, Work]:
        """The messages that leave and that enter each clause; the next search writes to the same memory."""
        found = self._found
        left, entered = (Groups(slots, runs.message, runs.begin, runs.end) for runs in (found.left, found.entered))
        return left, entered, Work(int(found.counters[NODES]), int(found.counters[CANDIDATES]))


def _no_runs() -> Runs:
    room, none, group = np.empty(_FIRST_ROOM + SLACK, np.int32), np.empty(0, np.int64), np.empty(GROUP, np.int64)
    return Runs(message=room, begin=none, end=none, pending=room.copy(), mark=group, unsure=room.copy(), kept=group.copy())


def _with_capacity(runs: Runs, n_used: int) -> Runs:
    scratch = {name: doubled(getattr(runs, name), 0) for name in ("pending", "unsure")}
    return runs._replace(message=doubled(runs.message, n_used), **scratch)
