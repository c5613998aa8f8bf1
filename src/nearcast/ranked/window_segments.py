"""A window filed in pieces: each is a run of consecutive messages, filed once and never changed.

New messages wait in a short tail. Once there are enough they become a piece; pieces of like size become one larger piece where
there are so many searches that it pays, and a piece is dropped when its last message is over. So a message is filed anew a few
times in its life at most, and clearing the window moves nothing. All pieces lie one after the other in the same arrays: the
newest, which are put together, at the end, the oldest, which are dropped, in front. Large pieces are put together in a thread,
and take the place of the smaller ones later.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import GrowingArray
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
from nearcast.ranked.window_index import EVERYTHING, Best, WindowIndex

# A tail of so many messages becomes a piece; in a large window, this share of it, but at most so many times as many.
TAIL = 4096
_TAIL_SHARE, _LONGEST_TAIL = 64, 4
# A piece and those after it become one when those are so many times as large.
_GROWTH = 7
# A piece more costs a search as much as filing so many words of messages.
_COST_OF_PIECE = 16.0
# No piece grows beyond this share of the window, so that what is over is dropped soon.
_LARGEST_SHARE = 2
# So many messages are filed in a thread.
_LEAST_BESIDE = 20_000
# A search costs about as much more with many pieces and a long tail as filing so many messages.
_WORTH_SETTLING = 64
# So few messages in no piece cost a search little.
_SHORT_TAIL = 512
# So many subscriptions are searched for in an order that keeps to the same lists.
_MANY = 256


class Piece(NamedTuple):
    """What a run of messages is filed as: columns by name, and figures for the table."""

    columns: Mapping[str, NDArray[Any]]
    figures: tuple[int, ...]


class _Merge(NamedTuple):
    """A piece that is being made of those from sequence number `first` to `end`, without what is over of them."""

    first: int
    begin: int
    end: int
    piece: BackgroundTask[Piece]


class SegmentedWindow(WindowIndex):
    """The life of pieces; what is in them, and how they are searched, is up to the index."""

    # By group, columns of one length.
    groups: ClassVar[Mapping[str, Mapping[str, Any]]]
    n_figures: ClassVar[int]

    def __init__(self, ground: DistanceScale) -> None:
        super().__init__(ground)
        self.counters = np.zeros(3, np.int64)
        self._empty()

    def _empty(self) -> None:
        self.frame: Frame | None = None
        self.columns = {name: GrowingArray(dtype) for group in self.groups.values() for name, dtype in group.items()}
        self.table = np.empty((0, STARTS + len(self.groups) + self.n_figures), np.int64)
        self._begin_tail(0)
        self._oldest = 0
        # Nobody asks any more for what was under way.
        self._merge: _Merge | None = None

    def _begin_tail(self, first: int) -> None:
        """A tail without messages yet."""
        self.tail_first, self.n_tail, self._n_searched = first, 0, 0
        self._last_of = np.full(0, NO_POSTING, np.int32)
        self._before, self._message = GrowingArray(np.int32), GrowingArray(np.int32)

    def _link(self, window: WindowArrays, first: int, first_message: int) -> None:
        """Link the postings of the messages from place `first` on, which are the tail from `first_message` on."""
        keyword = window.keyword[window.keyword_start[first] : window.keyword_start[len(window.x)]]
        n_more = int(keyword.max(initial=-1)) + 1 - len(self._last_of)
        if n_more > 0:
            self._last_of = np.concatenate([self._last_of, np.full(n_more, NO_POSTING, np.int32)])
        before, message = np.empty((2, len(keyword)), np.int32)
        link_postings(window, first, first_message, self._before.n, self._last_of, before, message)
        self._before.extend(before)
        self._message.extend(message)

    # --- filing ------------------------------------------------------------------------------------------------------

    def add(self, window: MessageWindow, first: int) -> None:
        if window.n == first:
            return
        layout = window.layout()
        if self.frame is None:
            self.frame = frame_of(*self.ground, float(layout.x[first]), float(layout.y[first]))
            self.tail_first = self._oldest = window.base + first
        self.n_tail = window.next_number - self.tail_first
        if self.n_tail >= TAIL * min(_LONGEST_TAIL, max(1, (window.next_number - self._oldest) // _TAIL_SHARE // TAIL)):
            self._drop_over(window, first)
            if self._merge is not None and self._merge.piece.is_done:
                self._take_over(window, self._merge)
            largest = max(8 * TAIL, (window.next_number - self._oldest) // _LARGEST_SHARE)
            for begin in range(max(self.tail_first, self._oldest), window.next_number, largest):
                self._file(window, begin, min(begin + largest, window.next_number))
            self._put_together(window, largest)
            self._begin_tail(window.next_number)
        else:
            self._link(layout, first, window.base + first - self.tail_first)

    def rebuild(self, window: MessageWindow) -> None:
        self._empty()
        alive = window.layout().is_alive.view(np.bool_)
        self.add(window, int(alive.argmax()) if alive.any() else window.n)

    def _drop_over(self, window: MessageWindow, n_arrived: int) -> None:
        """Forget pieces without living messages, and use their memory again when it is a quarter of all."""
        self._oldest = max(self._oldest, window.base)
        arrived = window.layout().is_alive.view(np.bool_)[self._oldest - window.base : n_arrived]
        if len(arrived):
            ahead = int(arrived.argmax())
            self._oldest += ahead if arrived[ahead] else len(arrived)
        self.table = self.table[self.table[:, END] > self._oldest]
        for at, group in enumerate(self.groups.values()):
            n_over = int(self.table[0, STARTS + at]) if len(self.table) else self.columns[next(iter(group))].n
            if 4 * n_over > self.columns[next(iter(group))].n:
                for name in group:
                    self.columns[name].drop(n_over)
                self.table[:, STARTS + at] -= n_over

    def _put_together(self, window: MessageWindow, largest: int) -> None:
        """Make one piece of the newest ones, if they outgrow the first of them and there are enough searches."""
        if self._merge is not None:
            return
        # While the new piece lives, by those since the tail began.
        n_searches = self._n_searched * (window.next_number - self._oldest) / self.n_tail
        size = self.table[:, END] - self.table[:, FIRST]
        newer = size[::-1].cumsum()[::-1] - size
        word_start, n_newer = window.layout().keyword_start, np.arange(len(size))[::-1]
        n_words = word_start[window.n] - word_start[np.maximum(self.table[:, FIRST], self._oldest) - window.base]
        is_worth_it = _COST_OF_PIECE * n_newer * n_searches >= n_words
        for at in np.flatnonzero((_GROWTH * size <= newer) & (size + newer <= largest) & is_worth_it).tolist()[:1]:
            first, end = int(self.table[at, FIRST]), window.next_number
            begin = max(first, self._oldest)
            if end - begin < _LEAST_BESIDE:
                self._forget_from(at)
                self._file(window, begin, end)
            else:
                copied = copied_part(window.layout(), begin - window.base, end - window.base)
                self._merge = _Merge(first, begin, end, BackgroundTask(partial(self.piece_of, copied, 0, end - begin)))

    def _take_over(self, window: MessageWindow, merge: _Merge) -> None:
        """Put a piece in the place of those it was made of; some of them may be dropped by now."""
        self._merge = None
        try:
            piece = merge.piece.result()
        except Exception as problem:  # noqa: BLE001 - all that is needed is there
            warnings.warn(f"messages could not be filed anew ({problem!r}); the pieces there are go on", stacklevel=2)
            return
        at = int(np.count_nonzero(self.table[:, FIRST] < merge.first))
        later = self.table[self.table[:, FIRST] >= merge.end]
        starts = later[0, STARTS:].tolist() if len(later) else []
        groups = list(zip(self.groups.values(), starts, strict=False))
        columns = {name: self.columns[name].used[start:].copy() for group, start in groups for name in group}
        self._forget_from(at)
        self._append(window, piece, merge.begin, merge.end)
        for place, (group, start) in enumerate(groups):
            later[:, STARTS + place] += self.columns[next(iter(group))].n - start
        for name, column in columns.items():
            self.columns[name].extend(column)
        self.table = np.vstack([self.table, later])

    def _forget_from(self, at: int) -> None:
        """Forget the pieces from this row of the table on."""
        if at < len(self.table):
            for group, start in zip(self.groups.values(), self.table[at, STARTS:].tolist(), strict=False):
                for name in group:
                    self.columns[name].n = start
            self.table = self.table[:at]

    def _settle(self, window: MessageWindow) -> None:
        """Put everything together, as far as it may be, and leave no tail: worth its time before many searches."""
        begin = max(int(self.table[0, FIRST]) if len(self.table) else self.tail_first, self._oldest, window.base)
        end = window.next_number
        self._forget_from(0)
        self._merge = None
        largest = max(1, -(-(end - begin) // _LARGEST_SHARE))
        for first in range(begin, end, largest):
            self._file(window, first, min(first + largest, end))
        self._begin_tail(end)

    def _file(self, window: MessageWindow, begin: int, end: int) -> None:
        self._append(window, self.piece_of(window.layout(), begin - window.base, end - window.base), begin, end)

    def _append(self, window: MessageWindow, piece: Piece, begin: int, end: int) -> None:
        starts = [self.columns[next(iter(group))].n for group in self.groups.values()]
        n_filed = end - (int(self.table[0, FIRST]) if len(self.table) else begin)
        for name, values in piece.columns.items():
            column = self.columns[name]
            if column.n + len(values) > len(column.memory):
                column.reserve(window.expected(column.n + len(values), n_filed))
            column.extend(values)
        self.table = np.vstack([self.table, np.array([begin, end, *starts, *piece.figures], np.int64)])

    @abstractmethod
    def piece_of(self, window: WindowArrays, first: int, last: int) -> Piece:
        """File the messages at places `first` … `last - 1`; also called in a thread."""

    # --- searching ---------------------------------------------------------------------------------------------------

    def best(
        self,
        subscribers: RankedSubscriptions,
        window: MessageWindow,
        numbers: NDArray[np.int32],
        n_wanted: NDArray[np.int32],
        limits: SearchLimits = EVERYTHING,
    ) -> Best:
        start = np.concatenate([[0], np.cumsum(n_wanted)]).astype(np.int64)
        found = Best(start, np.zeros(len(numbers), np.int32), np.empty(int(start[-1]), np.int64), np.empty(int(start[-1])))
        if self.frame is not None and len(numbers):
            self._n_searched += len(numbers)
            is_worth_it = _WORTH_SETTLING * len(numbers) > window.n
            if is_worth_it and (len(self.table) > _LARGEST_SHARE or self.n_tail > _SHORT_TAIL):
                self._settle(window)
            turns = np.arange(len(numbers)) if len(numbers) < _MANY else _by_words(subscribers, numbers)
            self.search(subscribers, window, numbers, turns, n_wanted, limits, found)
        return found

    @abstractmethod
    def search(
        self,
        subscribers: RankedSubscriptions,
        window: MessageWindow,
        numbers: NDArray[np.int32],
        turns: NDArray[np.int64],
        n_wanted: NDArray[np.int32],
        limits: SearchLimits,
        found: Best,
    ) -> None:
        """Write what `best` gives, for the positions of `numbers` in the order of `turns`."""

    def search_arrays(
        self, subscribers: RankedSubscriptions, window: MessageWindow, limits: SearchLimits, found: Best, n_words: int
    ) -> SearchArrays:
        """What every search for subscriptions of at most so many words reads and writes."""
        seen = np.zeros(self.n_tail, np.int32)
        tail = TailArrays(self.tail_first, self._last_of, self._before.used, self._message.used, seen)
        return SearchArrays(
            subscribers.layout(),
            window.layout(),
            (self.ground.is_lonlat, self.ground.max_distance),
            limits,
            tail,
            np.empty(n_words, np.int64),
            np.empty(n_words),
            found.number,
            found.score,
            self.counters,
        )

    # --- insight -----------------------------------------------------------------------------------------------------

    def work(self) -> dict[str, int]:
        return dict(zip(("parts", "entries", "scored"), self.counters.tolist(), strict=True))

    @property
    def n_bytes(self) -> int:
        tail = self._last_of.nbytes + self._before.n_bytes + self._message.n_bytes
        return sum(column.n_bytes for column in self.columns.values()) + tail + self.table.nbytes


def _by_words(subscribers: RankedSubscriptions, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
    """Keyword by keyword, and for each from west to east: neighbours then search the same lists."""
    layout = subscribers.layout()
    return np.lexsort((layout.x[numbers], layout.keyword[layout.first[numbers]]))
