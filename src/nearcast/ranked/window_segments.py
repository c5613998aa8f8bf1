"""A window indexed in segments: each is a run of consecutive messages, indexed once and never changed.

New messages wait in a short tail. Once there are enough, they become a segment. Segments of similar size are merged into a
larger one if there are so many searches that it pays, and a segment is dropped when its last message has expired. So a message
is indexed only a few times in its life, and dropping expired messages moves nothing. All segments lie one after the other in
the same arrays: the newest, which are merged, at the end, the oldest, which are dropped, in front. Large segments are merged in
a thread and replace the smaller ones later.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import GrowingArray, resized
from nearcast.engine.threads import BackgroundTask
from nearcast.ranked.index import DistanceScale
from nearcast.ranked.kernels.bounds import Frame, frame_of
from nearcast.ranked.kernels.layouts import WindowArrays
from nearcast.ranked.kernels.window_search import (
    END,
    FIRST,
    NO_POSTING,
    STARTS,
    SearchArrays,
    SearchLimits,
    TailArrays,
    link_postings,
)
from nearcast.ranked.subscriptions import RankedSubscriptions
from nearcast.ranked.window import MessageWindow, copied_part
from nearcast.ranked.window_index import EVERYTHING, BestMessages, WindowIndex

# A tail of this many messages becomes a segment; in a large window, this share of it, but at most _LONGEST_TAIL times as many.
TAIL = 4096
_TAIL_SHARE, _LONGEST_TAIL = 64, 4
# A segment and those after it are merged when those are this many times as large.
_GROWTH = 7
# One segment more costs a search as much as indexing this many words of messages.
_COST_OF_SEGMENT = 16.0
# The largest segment is this share of the window, so that expired messages are dropped soon.
_LARGEST_SHARE = 2
# Merges of at least this many messages run in a thread.
_MIN_IN_THREAD = 20_000
# Many segments and a long tail cost a search about as much as indexing this many messages.
_COST_OF_FRAGMENTS = 64
# A tail of at most this many messages costs a search little.
_SHORT_TAIL = 512
# Searches for at least this many subscriptions are ordered so that neighbours use the same lists.
_MANY = 256


class Segment(NamedTuple):
    """A run of messages as indexed: columns by name, and figures for the table."""

    columns: Mapping[str, NDArray[Any]]
    figures: tuple[int, ...]


class _Merge(NamedTuple):
    """A merge in progress: segments from sequence number `first` to `end`, without expired messages before `begin`."""

    first: int
    begin: int
    end: int
    segment: BackgroundTask[Segment]


class SegmentedWindow(WindowIndex):
    """How segments come and go. What is in them, and how they are searched, is up to the subclass."""

    # Columns of one length, by group.
    groups: ClassVar[Mapping[str, Mapping[str, Any]]]
    n_figures: ClassVar[int]

    def __init__(self, distances: DistanceScale) -> None:
        super().__init__(distances)
        self.counters = np.zeros(3, np.int64)
        self._empty()

    def _empty(self) -> None:
        self.frame: Frame | None = None
        self.columns = {name: GrowingArray(dtype) for group in self.groups.values() for name, dtype in group.items()}
        self.table = np.empty((0, STARTS + len(self.groups) + self.n_figures), np.int64)
        self._begin_tail(0)
        self._oldest = 0
        # The result of a merge in progress is not needed any more.
        self._merge: _Merge | None = None

    def _begin_tail(self, first: int) -> None:
        """Begin a tail without messages."""
        self.tail_first, self.n_tail, self._n_searched = first, 0, 0
        self._last_of = np.full(0, NO_POSTING, np.int32)
        self._before, self._message = GrowingArray(np.int32), GrowingArray(np.int32)

    def _link(self, window: WindowArrays, first: int, first_message: int) -> None:
        """Link the postings of the messages from position `first` on; the first is message `first_message` of the tail."""
        keyword = window.keyword[window.keyword_start[first] : window.keyword_start[len(window.x)]]
        self._last_of = resized(self._last_of, int(keyword.max(initial=-1)) + 1, NO_POSTING)
        before, message = np.empty((2, len(keyword)), np.int32)
        link_postings(window, first, first_message, self._before.n, self._last_of, before, message)
        self._before.extend(before)
        self._message.extend(message)

    # --- indexing ----------------------------------------------------------------------------------------------------

    def add(self, window: MessageWindow, first: int) -> None:
        if window.n == first:
            return
        layout = window.layout()
        if self.frame is None:
            self.frame = frame_of(*self.distances, float(layout.x[first]), float(layout.y[first]))
            self.tail_first = self._oldest = window.base + first
        self.n_tail = window.next_number - self.tail_first
        if self.n_tail >= TAIL * min(_LONGEST_TAIL, max(1, (window.next_number - self._oldest) // _TAIL_SHARE // TAIL)):
            self._drop_expired(window, first)
            if self._merge is not None and self._merge.segment.is_done:
                self._take_over(window, self._merge)
            largest = max(8 * TAIL, (window.next_number - self._oldest) // _LARGEST_SHARE)
            for begin in range(max(self.tail_first, self._oldest), window.next_number, largest):
                self._file(window, begin, min(begin + largest, window.next_number))
            self._merge_newest(window, largest)
            self._begin_tail(window.next_number)
        else:
            self._link(layout, first, window.base + first - self.tail_first)

    def rebuild(self, window: MessageWindow) -> None:
        self._empty()
        alive = window.layout().is_alive.view(np.bool_)
        self.add(window, int(alive.argmax()) if alive.any() else window.n)

    def _drop_expired(self, window: MessageWindow, n_arrived: int) -> None:
        """Drop segments without living messages; their memory is used again when it is a quarter of all."""
        self._oldest = max(self._oldest, window.base)
        arrived = window.layout().is_alive.view(np.bool_)[self._oldest - window.base : n_arrived]
        if len(arrived):
            ahead = int(arrived.argmax())
            self._oldest += ahead if arrived[ahead] else len(arrived)
        self.table = self.table[self.table[:, END] > self._oldest]
        for at, group in enumerate(self.groups.values()):
            n_expired = int(self.table[0, STARTS + at]) if len(self.table) else self.columns[next(iter(group))].n
            if 4 * n_expired > self.columns[next(iter(group))].n:
                for name in group:
                    self.columns[name].drop(n_expired)
                self.table[:, STARTS + at] -= n_expired

    def _merge_newest(self, window: MessageWindow, largest: int) -> None:
        """Merge the newest segments, if they outgrow the first of them and there are enough searches."""
        if self._merge is not None:
            return
        # Expected searches in the life of the new segment, at the rate since the tail began.
        n_searches = self._n_searched * (window.next_number - self._oldest) / self.n_tail
        size = self.table[:, END] - self.table[:, FIRST]
        newer = size[::-1].cumsum()[::-1] - size
        word_start, n_newer = window.layout().keyword_start, np.arange(len(size))[::-1]
        n_words = word_start[window.n] - word_start[np.maximum(self.table[:, FIRST], self._oldest) - window.base]
        is_worth_it = _COST_OF_SEGMENT * n_newer * n_searches >= n_words
        for at in np.flatnonzero((_GROWTH * size <= newer) & (size + newer <= largest) & is_worth_it).tolist()[:1]:
            first, end = int(self.table[at, FIRST]), window.next_number
            begin = max(first, self._oldest)
            if end - begin < _MIN_IN_THREAD:
                self._drop_from(at)
                self._file(window, begin, end)
            else:
                copied = copied_part(window.layout(), begin - window.base, end - window.base)
                self._merge = _Merge(first, begin, end, BackgroundTask(partial(self.make_segment, copied, 0, end - begin)))

    def _take_over(self, window: MessageWindow, merge: _Merge) -> None:
        """Replace segments by the one they were merged into; some of them may be dropped by now."""
        self._merge = None
        try:
            segment = merge.segment.result()
        except Exception as problem:  # noqa: BLE001 - all that is needed is there
            warnings.warn(f"a merge failed ({problem!r}); the old segments stay in use", stacklevel=2)
            return
        at = int(np.count_nonzero(self.table[:, FIRST] < merge.first))
        later = self.table[self.table[:, FIRST] >= merge.end]
        starts = later[0, STARTS:].tolist() if len(later) else []
        groups = list(zip(self.groups.values(), starts, strict=False))
        columns = {name: self.columns[name].used[start:].copy() for group, start in groups for name in group}
        self._drop_from(at)
        self._append(window, segment, merge.begin, merge.end)
        for position, (group, start) in enumerate(groups):
            later[:, STARTS + position] += self.columns[next(iter(group))].n - start
        for name, column in columns.items():
            self.columns[name].extend(column)
        self.table = np.vstack([self.table, later])

    def _drop_from(self, at: int) -> None:
        """Drop the segments from this row of the table on."""
        if at < len(self.table):
            for group, start in zip(self.groups.values(), self.table[at, STARTS:].tolist(), strict=False):
                for name in group:
                    self.columns[name].n = start
            self.table = self.table[:at]

    def _merge_all(self, window: MessageWindow) -> None:
        """Merge everything as far as the largest segment allows, tail included: it pays before many searches."""
        begin = max(int(self.table[0, FIRST]) if len(self.table) else self.tail_first, self._oldest, window.base)
        end = window.next_number
        self._drop_from(0)
        self._merge = None
        largest = max(1, -(-(end - begin) // _LARGEST_SHARE))
        for first in range(begin, end, largest):
            self._file(window, first, min(first + largest, end))
        self._begin_tail(end)

    def _file(self, window: MessageWindow, begin: int, end: int) -> None:
        self._append(window, self.make_segment(window.layout(), begin - window.base, end - window.base), begin, end)

    def _append(self, window: MessageWindow, segment: Segment, begin: int, end: int) -> None:
        starts = [self.columns[next(iter(group))].n for group in self.groups.values()]
        n_filed = end - (int(self.table[0, FIRST]) if len(self.table) else begin)
        for name, values in segment.columns.items():
            column = self.columns[name]
            if column.n + len(values) > len(column.memory):
                column.reserve(window.expected(column.n + len(values), n_filed))
            column.extend(values)
        self.table = np.vstack([self.table, np.array([begin, end, *starts, *segment.figures], np.int64)])

    @abstractmethod
    def make_segment(self, window: WindowArrays, first: int, last: int) -> Segment:
        """Index the messages at positions `first` … `last - 1`; also called in a thread."""

    # --- searching ---------------------------------------------------------------------------------------------------

    def best(
        self,
        subscriptions: RankedSubscriptions,
        window: MessageWindow,
        numbers: NDArray[np.int32],
        n_best: NDArray[np.int32],
        limits: SearchLimits = EVERYTHING,
    ) -> BestMessages:
        start = np.concatenate([[0], np.cumsum(n_best)]).astype(np.int64)
        best = BestMessages(
            start, np.zeros(len(numbers), np.int32), np.empty(int(start[-1]), np.int64), np.empty(int(start[-1]))
        )
        if self.frame is not None and len(numbers):
            self._n_searched += len(numbers)
            is_worth_it = _COST_OF_FRAGMENTS * len(numbers) > window.n
            if is_worth_it and (len(self.table) > _LARGEST_SHARE or self.n_tail > _SHORT_TAIL):
                self._merge_all(window)
            turns = np.arange(len(numbers)) if len(numbers) < _MANY else _by_words(subscriptions, numbers)
            self.search(subscriptions, window, numbers, turns, n_best, limits, best)
        return best

    @abstractmethod
    def search(
        self,
        subscriptions: RankedSubscriptions,
        window: MessageWindow,
        numbers: NDArray[np.int32],
        turns: NDArray[np.int64],
        n_best: NDArray[np.int32],
        limits: SearchLimits,
        best: BestMessages,
    ) -> None:
        """Write what `best` returns, for the positions of `numbers` in the order of `turns`."""

    def search_arrays(
        self, subscriptions: RankedSubscriptions, window: MessageWindow, limits: SearchLimits, best: BestMessages, n_words: int
    ) -> SearchArrays:
        """What a search reads and writes, for subscriptions of at most `n_words` words."""
        seen = np.zeros(self.n_tail, np.int32)
        tail = TailArrays(self.tail_first, self._last_of, self._before.used, self._message.used, seen)
        return SearchArrays(
            subscriptions.layout(),
            window.layout(),
            (self.distances.is_lonlat, self.distances.max_distance),
            limits,
            tail,
            np.empty(n_words, np.int64),
            np.empty(n_words),
            best.number,
            best.score,
            self.counters,
        )

    # --- insight -----------------------------------------------------------------------------------------------------

    def work(self) -> dict[str, int]:
        return dict(zip(("parts", "entries", "scored"), self.counters.tolist(), strict=True))

    @property
    def n_bytes(self) -> int:
        tail = self._last_of.nbytes + self._before.n_bytes + self._message.n_bytes
        return sum(column.n_bytes for column in self.columns.values()) + tail + self.table.nbytes


def _by_words(subscriptions: RankedSubscriptions, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
    """An order by keyword, and within a keyword from west to east: neighbours search the same lists."""
    layout = subscriptions.layout()
    return np.lexsort((layout.x[numbers], layout.keyword[layout.first[numbers]]))
