"""`window_grid`: messages of the window in lists by keyword; long lists are ordered by location too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nearcast.ranked.index import DistanceScale
from nearcast.ranked.kernels.bounds import CURVE_BITS, N_FIGURES, Frame, curve_positions, locate_messages
from nearcast.ranked.kernels.layouts import WindowArrays
from nearcast.ranked.kernels.search_queues import queue_for
from nearcast.ranked.kernels.window_search import END, FIRST, SearchLimits
from nearcast.ranked.subscriptions import RankedSubscriptions
from nearcast.ranked.window import MessageWindow
from nearcast.ranked.window_grid.kernels.build import (
    BLOCK,
    ENTRY,
    GROUP,
    RUN,
    WORDS,
    WindowGridArrays,
    count_keywords,
    describe_words,
    fill_blocks,
    fill_groups,
    fill_lists,
    sort_by_class,
    write_records,
)
from nearcast.ranked.window_grid.kernels.search import LINE, find_best, words_for
from nearcast.ranked.window_index import BestMessages
from nearcast.ranked.window_segments import Segment, SegmentedWindow

# Shares of a segment at which the classes of records begin.
_RECORD_BORDERS = (1 / 64, 1 / 16, 1 / 4)
# Lines of a record that are prefetched at most.
_MOST_LINES = 8


class WindowGrid(SegmentedWindow):
    """Paper: after S2I (Rocha-Junior et al., SSTD 2011): frequent keywords by location too, others in plain lists."""

    name = "window_grid"
    paper = "after Rocha-Junior et al. 2011 (S2I)"
    summary = "lists by keyword, long ones in blocks of neighbours"
    groups: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "coarse": {"coarse": np.int32},
        "lists": {"keyword": np.int32},
        "borders": {"entry_start": np.int32, "block_start": np.int32, "group_start": np.int32},
        "entries": {"entry": np.int32},
        "blocks": {"block": np.float32},
        "groups": {"group": np.float32},
        "records": {"record": np.float64},
    }
    n_figures = 2

    def __init__(self, distances: DistanceScale) -> None:
        super().__init__(distances)
        # Capacity for everything there is; a search touches only the beginning.
        self._queue = queue_for(0)

    def make_segment(self, window: WindowArrays, first: int, last: int) -> Segment:
        assert self.frame is not None
        return _make_segment(window, first, last, self.frame)

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
        n_words = int(subscriptions.layout().n_words[numbers].max())
        search = self.search_arrays(subscriptions, window, limits, best, n_words)
        arrays = {name: column.used for name, column in self.columns.items()}
        figure, as_number = arrays["entry"].view(np.float32), arrays["record"].view(np.int64)
        grid = WindowGridArrays(self.table, **arrays, figure=figure, as_number=as_number)
        # No entry, block or group is met twice, not even through equal words.
        n_parts = len(grid.group) // RUN + len(grid.block) // RUN + len(grid.entry) // ENTRY
        if n_parts > len(self._queue.part):
            self._queue = queue_for(n_parts + n_parts // 8)
        n_messages = int((self.table[:, END] - self.table[:, FIRST]).sum())
        n_lines = min(_MOST_LINES, 2 + len(grid.record) // (LINE * max(1, n_messages)))
        words = words_for(len(self.table), n_words, self._queue)
        find_best(grid, self.frame, search, words, n_lines, numbers, turns, n_best, best.start, best.n)


def _make_segment(window: WindowArrays, first: int, last: int, frame: Frame) -> Segment:
    """Index the messages at positions `first` … `last - 1`."""
    n = last - first
    location = np.empty((3, n), np.float32)
    locate_messages(window, first, frame, location)
    curve = curve_positions(location)
    share, signature = np.empty((2, n), np.float32), np.empty((2, n), np.int32)
    describe_words(window, first, share, signature)
    begin, end = int(window.keyword_start[first]), int(window.keyword_start[last])
    count = np.zeros(int(window.keyword[begin:end].max(initial=-1)) + 1, np.int32)
    distinct = np.empty(end - begin, np.int32)
    n_lists = count_keywords(window.keyword, begin, end, count, distinct)
    keyword = np.sort(distinct[:n_lists])
    entry_start = np.concatenate([[0], np.cumsum(count[keyword])]).astype(np.int32)
    entry_message, entry_weight = np.empty(end - begin, np.int32), np.empty(end - begin, np.float32)
    list_of = np.zeros(len(count), np.int32)
    list_of[keyword] = np.arange(n_lists)
    repeated = np.empty(N_FIGURES * int(np.diff(window.keyword_start[first : last + 1]).max(initial=0)))
    fill_lists(
        window, first, np.argsort(curve, kind="stable"), list_of, entry_start, count, repeated, entry_message, entry_weight
    )
    sort_by_class(entry_start, entry_message, entry_weight)
    length = np.diff(entry_start)
    n_blocks = np.where(length > BLOCK, -(-length // BLOCK), 0)
    block_start = np.concatenate([[0], np.cumsum(n_blocks)]).astype(np.int32)
    n_groups = np.where(n_blocks > GROUP, -(-n_blocks // GROUP), 0)
    group_start = np.concatenate([[0], np.cumsum(n_groups)]).astype(np.int32)
    # Records of heavy messages, which are read most, are together.
    order = np.argsort(_classes(share.sum(axis=0)) << (3 * CURVE_BITS) | curve, kind="stable")
    record_start, record = np.empty(n, np.int32), np.empty(WORDS * n + end - begin)
    write_records(window, first, order, record_start, record, record.view(np.int64))
    entry = np.empty(ENTRY * len(entry_message), np.int32)
    block, group = np.empty((int(block_start[-1]), RUN), np.float32), np.empty((int(group_start[-1]), RUN), np.float32)
    described = (location, share, record_start, signature)
    fill_blocks(entry_start, block_start, entry_message, entry_weight, described, entry, entry.view(np.float32), block)
    fill_groups(block_start, group_start, block, group)
    shift = _shift_of(keyword)
    n_coarse = (int(keyword[-1]) >> shift) + 2 if n_lists else 1
    coarse = np.searchsorted(keyword, np.arange(n_coarse, dtype=np.int64) << shift).astype(np.int32)
    lists = {"coarse": coarse, "keyword": keyword}
    borders = {"entry_start": entry_start, "block_start": block_start, "group_start": group_start}
    runs = {"entry": entry, "block": block.reshape(-1), "group": group.reshape(-1)}
    return Segment({**lists, **borders, **runs, "record": record}, (shift, n_coarse))


def _classes(message_weight: NDArray[np.float32]) -> NDArray[np.int64]:
    """0 for the messages of the largest weight, and so on."""
    falling = np.sort(message_weight)[::-1]
    borders = falling[[int(share * len(falling)) for share in _RECORD_BORDERS]] if len(message_weight) else falling
    return np.searchsorted(-borders, -message_weight, side="left").astype(np.int64)


def _shift_of(keyword: NDArray[np.int32]) -> int:
    """The shift at which each step of the coarse directory has a few lists."""
    shift = 0
    while len(keyword) and int(keyword[-1]) >> shift > max(16, len(keyword) // 4):
        shift += 1
    return shift
