"""The index of the window that lists messages by keyword, and frequent keywords by place too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.subscribers import Subscribers
from nearcast.columns.window import MessageWindow
from nearcast.indexes.ranked_base import Ground
from nearcast.indexes.window_base import Best
from nearcast.indexes.window_grid.build import make_piece
from nearcast.indexes.window_grid.layout import ENTRY, RUN, GridArrays
from nearcast.indexes.window_grid.match import LINE, find_best, words_for
from nearcast.indexes.window_pieces import END, FIRST, Piece, PiecedWindow
from nearcast.kernels.bound_queue import queue_for
from nearcast.kernels.ranked_layouts import WindowArrays
from nearcast.kernels.window_search import SearchLimits

# Of a record so many lines are asked for ahead of their use.
_MOST_LINES = 8


class WindowGrid(PiecedWindow):
    """Paper: after S2I (Rocha-Junior et al., SSTD 2011): frequent keywords are filed by place too, others in plain lists."""

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

    def __init__(self, ground: Ground) -> None:
        super().__init__(ground)
        # Room for everything there is; a search touches the beginning only.
        self._queue = queue_for(0)

    def piece_of(self, window: WindowArrays, first: int, last: int) -> Piece:
        assert self.frame is not None
        return make_piece(window, first, last, self.frame)

    def search(
        self,
        subscribers: Subscribers,
        window: MessageWindow,
        numbers: NDArray[np.int32],
        turns: NDArray[np.int64],
        n_wanted: NDArray[np.int32],
        limits: SearchLimits,
        found: Best,
    ) -> None:
        n_words = int(subscribers.layout().n_words[numbers].max())
        search = self.search_arrays(subscribers, window, limits, found, n_words)
        arrays = {name: column.used for name, column in self.columns.items()}
        figure, as_number = arrays["entry"].view(np.float32), arrays["record"].view(np.int64)
        grid = GridArrays(self.table, **arrays, figure=figure, as_number=as_number)
        # No entry, block or group is met twice, not even by equal words.
        n_parts = len(grid.group) // RUN + len(grid.block) // RUN + len(grid.entry) // ENTRY
        if n_parts > len(self._queue.part):
            self._queue = queue_for(n_parts + n_parts // 8)
        n_messages = int((self.table[:, END] - self.table[:, FIRST]).sum())
        n_lines = min(_MOST_LINES, 2 + len(grid.record) // (LINE * max(1, n_messages)))
        words = words_for(len(self.table), n_words, self._queue)
        find_best(grid, self.frame, search, words, n_lines, numbers, turns, n_wanted, found.start, found.n)
