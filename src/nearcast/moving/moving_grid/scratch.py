"""The memory that kernels of a moving grid write to. It is reused from call to call; each thread has its own."""

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
from nearcast.moving.moving_grid.kernels.move_diff import find_move_changes
from nearcast.moving.moving_grid.layout import GROUP, SLACK, KeywordGridArrays, MatchOutput, MessageRuns
from nearcast.moving.moving_grid.layout import MoveOutput as MoveOutput

_FIRST_CAPACITY = 1 << 14
_FIRST_LISTS = 1 << 12


class Scratch(threading.local):
    """Output arrays of the kernels; they grow when a kernel stops because they are full."""

    def __init__(self) -> None:
        none = np.empty(0, np.int64)
        lists = np.empty(_FIRST_LISTS, np.int64)
        capacity = np.empty(_FIRST_CAPACITY + SLACK, np.int32)
        self._moves = MoveOutput(_empty_runs(), _empty_runs(), lists, lists.copy(), np.zeros(2, np.int64))
        self._matches = MatchOutput(
            capacity.copy(), none, none, capacity.copy(), lists.copy(), lists.copy(), np.zeros(2, np.int64)
        )
        self._n_left = self._n_entered = self._n = 0

    def match(
        self,
        grid: KeywordGridArrays,
        frame: NDArray[np.float64],
        clauses: ClauseArrays,
        record: NDArray[np.int32],
        batch: MessageBatch,
    ) -> MatchOutput:
        """The clauses of each message of the batch. The next match reuses the memory."""
        output = self._matches
        output = output._replace(begin=np.empty(len(batch), np.int64), end=np.empty(len(batch), np.int64))
        output.counters[:] = 0
        first, n_out = 0, 0
        while True:
            first, n_out = match_messages(grid, frame, clauses, record, batch.arrays, first, n_out, output)
            if first == len(batch):
                break
            output = output._replace(
                clause=doubled(output.clause, n_out),
                pending=doubled(output.pending, 0),
                key=doubled(output.key, 0),
                lists=doubled(output.lists, 0),
            )
        self._matches = output
        return output

    def prepare(self, n: int) -> Scratch:
        """Prepare for a search of `n` clauses."""
        left, entered = (
            runs._replace(begin=np.empty(n, np.int64), end=np.empty(n, np.int64))
            for runs in (self._moves.left, self._moves.entered)
        )
        self._moves = self._moves._replace(left=left, entered=entered)
        self._moves.counters[:] = 0
        self._n, self._n_left, self._n_entered = n, 0, 0
        return self

    def find(
        self,
        grid: KeywordGridArrays,
        frame: NDArray[np.float64],
        clauses: ClauseArrays,
        live: LiveArrays,
        keyword_lines: NDArray[np.int32],
        masks: NDArray[np.int32],
        record: NDArray[np.int32],
        slots: NDArray[np.int32],
        boxes: Boxes,
        is_move: bool,
        first: int = 0,
        last: int | None = None,
    ) -> None:
        """Search clauses `first` to `last`; see `find_move_changes`."""
        last = self._n if last is None else last
        n_left, n_entered = self._n_left, self._n_entered
        while True:
            first, n_left, n_entered = find_move_changes(
                grid,
                frame,
                clauses,
                live,
                keyword_lines,
                masks,
                record,
                slots,
                tuple(boxes),
                is_move,
                first,
                last,
                n_left,
                n_entered,
                self._moves,
            )
            if first == last:
                break
            output = self._moves
            self._moves = output._replace(
                left=_grown(output.left, n_left),
                entered=_grown(output.entered, n_entered),
                key=doubled(output.key, 0),
                lists=doubled(output.lists, 0),
            )
        self._n_left, self._n_entered = n_left, n_entered

    def groups(self, slots: NDArray[np.int32]) -> tuple[Groups, Groups, Work]:
        """The messages that leave and enter each clause. The next search reuses the memory."""
        output = self._moves
        left, entered = (Groups(slots, runs.message, runs.begin, runs.end) for runs in (output.left, output.entered))
        return left, entered, Work(int(output.counters[NODES]), int(output.counters[CANDIDATES]))


def _empty_runs() -> MessageRuns:
    capacity, none, group = np.empty(_FIRST_CAPACITY + SLACK, np.int32), np.empty(0, np.int64), np.empty(GROUP, np.int64)
    return MessageRuns(
        message=capacity,
        begin=none,
        end=none,
        pending=capacity.copy(),
        pending_end=group,
        unsure=capacity.copy(),
        unsure_end=group.copy(),
    )


def _grown(runs: MessageRuns, n_used: int) -> MessageRuns:
    scratch = {name: doubled(getattr(runs, name), 0) for name in ("pending", "unsure")}
    return runs._replace(message=doubled(runs.message, n_used), **scratch)
