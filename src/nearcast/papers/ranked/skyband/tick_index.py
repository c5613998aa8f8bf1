"""What an index is that is driven message by message: the ticks run in its kernel, around its own search for candidates."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import GrowingColumns
from nearcast.papers.ranked.skyband.kernels.buffers import BufferArrays, CalendarArrays
from nearcast.papers.ranked.skyband.kernels.ticks import N_SAVED, JournalArrays, RunArrays
from nearcast.ranked.index import RankedIndex
from nearcast.ranked.kernels.layouts import (
    N_HEAP,
    NEWEST,
    NO_MESSAGE,
    ChangeArrays,
    RankedSubscriptionArrays,
    Rules,
    WindowArrays,
)
from nearcast.ranked.rank_changes import RankChanges, net, room_for
from nearcast.ranked.window import MessageWindow


class Scene(NamedTuple):
    """Everything a run of ticks reads and writes."""

    subscribers: RankedSubscriptionArrays
    window: WindowArrays
    buffers: BufferArrays
    calendar: CalendarArrays
    journal: JournalArrays
    run: RunArrays
    changes: ChangeArrays


class TickIndex(RankedIndex):
    """A ranked index that finds the subscriptions of a message when it arrives, with the thresholds of that moment."""

    @abstractmethod
    def run_ticks(self, scene: Scene, last: int, rules: Rules) -> int:
        """Let messages arrive up to place `last`, or what is due end; returns why it stopped (see `run_layout.py`)."""


# -- What a run of ticks needs besides subscriptions, window and buffers: where it stands, a journal, room for changes.

_FIRST_ROOM = 1024


class TickState:
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
                "lacking": (np.int32, 0),
                "is_lacking": (np.uint8, 0),
                "cut": (np.int32, 0),
                "is_cut": (np.uint8, 0),
            }
        )
        self._journal_rows = GrowingColumns({"stamp": (np.int64, 0), "touched": (np.int32, 0)})
        self._saved_from = GrowingColumns({"saved_from": (np.int64, 0)})
        self._journal_head = np.array([1, 0, 0], np.int64)
        self._saved_score, self._saved_number = np.empty(_FIRST_ROOM), np.empty(_FIRST_ROOM, np.int64)
        self.changes = room_for(_FIRST_ROOM)
        self._common = np.empty(0)

    def grow(self, n_subscribers: int, n_places: int, n_words: int) -> None:
        self._rows.grow(n_subscribers)
        self._journal_rows.grow(n_subscribers)
        self._saved_from.grow(n_subscribers + 1)
        if n_places > len(self.heap):
            self.heap = np.concatenate([self.heap, np.empty(max(n_places, 2 * len(self.heap)) - len(self.heap), np.int64)])
        if n_words > len(self._common):
            self._common = np.empty(2 * n_words)

    def run(self, kept_by_cut: NDArray[np.int32]) -> RunArrays:
        rows = self._rows.used()
        return RunArrays(
            self.at, self.clock, self.heap, **rows, kept_by_cut=kept_by_cut, scores=self._common, counters=self.counters
        )

    def journal(self) -> JournalArrays:
        rows = {**self._journal_rows.used(), **self._saved_from.used()}
        return JournalArrays(self._journal_head, **rows, score=self._saved_score, number=self._saved_number)

    def grow_journal(self) -> None:
        """Twice the room for remembered lists."""
        n = self._journal_head[N_SAVED]
        old = (self._saved_score, self._saved_number)
        self._saved_score, self._saved_number = np.empty(2 * len(old[0])), np.empty(2 * len(old[1]), np.int64)
        self._saved_score[:n], self._saved_number[:n] = old[0][:n], old[1][:n]

    def grow_changes(self, n_more: int) -> None:
        """Room for so many more changes."""
        n = int(self.changes.n[0])
        grown = room_for(max(2 * n, n + n_more))
        for old, new in zip(self.changes[1:], grown[1:], strict=True):
            new[:n] = old[:n]
        grown.n[0] = n
        self.changes = grown

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What must be saved."""
        return {"at": self.at, "clock": self.clock, "heap": self.heap[: self.at[N_HEAP]]}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `arrays` gave."""
        # Other engines have more positions behind these.
        self.at[:], self.clock[:], self.heap = arrays["at"][: len(self.at)], arrays["clock"], np.array(arrays["heap"])

    def take_changes(self, window: MessageWindow, is_net: bool) -> RankChanges:
        """What was told since the last time, all of it or what is left of it in the end."""
        n = int(self.changes.n[0])
        self.changes.n[0] = 0
        told = tuple(column[:n].copy() for column in self.changes[1:])
        if is_net:
            told = net(told, window.id_numbers(told[2]))
        tick, subscriber, number, change, score = told
        return RankChanges(tick, subscriber, window.ids_of(number), change, score)
