"""The interface of an index that finds message by message, and the state of its run: ticks run in the kernel of the index."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import GrowingColumns, doubled, resized
from nearcast.papers.ranked.skyband.kernels.buffers import BufferArrays, CalendarArrays
from nearcast.papers.ranked.skyband.kernels.ticks import N_SAVED, SkybandRunArrays, SnapshotArrays
from nearcast.ranked.index import RankedIndex
from nearcast.ranked.kernels.layouts import (
    N_HEAP,
    NEWEST,
    NO_MESSAGE,
    ChangeArrays,
    RankedSubscriptionArrays,
    ScoredMatches,
    TickRules,
    WindowArrays,
)
from nearcast.ranked.rank_changes import RankChanges, cancel_out, change_arrays, with_capacity
from nearcast.ranked.window import MessageWindow


class TickArrays(NamedTuple):
    """Everything a run of ticks reads and writes."""

    subscriptions: RankedSubscriptionArrays
    window: WindowArrays
    buffers: BufferArrays
    calendar: CalendarArrays
    snapshots: SnapshotArrays
    run: SkybandRunArrays
    changes: ChangeArrays


class TickIndex(RankedIndex):
    """A ranked index that finds the subscriptions of a message when it arrives, with the thresholds of that moment."""

    finds_ahead = False

    def find(self, *arguments: Any) -> ScoredMatches:
        raise NotImplementedError(f"{self.name} finds the subscriptions of a message when it arrives, in run_ticks")

    def find_more(self, *arguments: Any) -> ScoredMatches:
        raise NotImplementedError(f"{self.name} finds the subscriptions of a message when it arrives, in run_ticks")

    @abstractmethod
    def run_ticks(self, arrays: TickArrays, last: int, rules: TickRules) -> int:
        """Add messages up to position `last`, or expire what is due; returns why it stopped (`ranked/kernels/layouts.py`)."""


_FIRST_CAPACITY = 1024


class SkybandRunState:
    """Arrays that stay from call to call, so that a call costs what it changes."""

    def __init__(self, span: float) -> None:
        self.at = np.zeros(8, np.int64)
        self.at[NEWEST] = NO_MESSAGE
        self.clock = np.array([-math.inf, span, -math.inf])
        self.heap = np.empty(0, np.int64)
        self.counters = np.zeros(2, np.int64)
        self._rows = GrowingColumns(
            {
                "candidate": (np.int32, 0),
                "candidate_score": (np.float64, 0),
                "needs_refill": (np.int32, 0),
                "is_in_refill": (np.uint8, 0),
                "truncated": (np.int32, 0),
                "is_truncated": (np.uint8, 0),
            }
        )
        self._snapshot_rows = GrowingColumns({"stamp": (np.int64, 0), "touched": (np.int32, 0)})
        self._saved_from = GrowingColumns({"saved_from": (np.int64, 0)})
        self._snapshot_head = np.array([1, 0, 0], np.int64)
        self._saved_score, self._saved_number = np.empty(_FIRST_CAPACITY), np.empty(_FIRST_CAPACITY, np.int64)
        self.changes = change_arrays(_FIRST_CAPACITY)
        self._common = np.empty(0)

    def grow(self, n_subscriptions: int, n_positions: int, n_words: int) -> None:
        self._rows.grow(n_subscriptions)
        self._snapshot_rows.grow(n_subscriptions)
        self._saved_from.grow(n_subscriptions + 1)
        if n_positions > len(self.heap):
            self.heap = resized(self.heap, max(n_positions, 2 * len(self.heap)), None)
        if n_words > len(self._common):
            self._common = np.empty(2 * n_words)

    def run(self, kept_when_full: NDArray[np.int32]) -> SkybandRunArrays:
        rows = self._rows.used()
        return SkybandRunArrays(
            self.at, self.clock, self.heap, **rows, kept_when_full=kept_when_full, scores=self._common, counters=self.counters
        )

    def snapshots(self) -> SnapshotArrays:
        rows = {**self._snapshot_rows.used(), **self._saved_from.used()}
        return SnapshotArrays(self._snapshot_head, **rows, score=self._saved_score, number=self._saved_number)

    def grow_snapshots(self) -> None:
        """Double the memory for snapshots."""
        n = int(self._snapshot_head[N_SAVED])
        self._saved_score, self._saved_number = doubled(self._saved_score, n), doubled(self._saved_number, n)

    def grow_changes(self, n_more: int) -> None:
        """Make space for `n_more` more changes."""
        n = int(self.changes.n[0])
        self.changes = with_capacity(self.changes, max(2 * n, n + n_more))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What must be saved."""
        return {"at": self.at, "clock": self.clock, "heap": self.heap[: self.at[N_HEAP]]}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `arrays` returned."""
        # The other engine has more positions after these.
        self.at[:], self.clock[:], self.heap = arrays["at"][: len(self.at)], arrays["clock"], np.array(arrays["heap"])

    def take_changes(self, window: MessageWindow, is_net: bool) -> RankChanges:
        """The changes recorded since the last call: all of them, or what remains after pairs cancel out."""
        n = int(self.changes.n[0])
        self.changes.n[0] = 0
        columns = tuple(column[:n].copy() for column in self.changes[1:])
        if is_net:
            columns = cancel_out(columns, window.id_numbers(columns[2]))
        tick, subscription, number, change, score = columns
        return RankChanges(tick, subscription, window.ids_of(number), change, score)
