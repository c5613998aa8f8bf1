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
from nearcast.indexes.window_grid.layout import BLOCK, GridArrays
from nearcast.indexes.window_grid.match import WordArrays, find_best
from nearcast.indexes.window_pieces import Piece, PiecedWindow
from nearcast.kernels.ranked_layouts import WindowArrays
from nearcast.kernels.window_search import SearchLimits


class WindowGrid(PiecedWindow):
    """Paper: after S2I (Rocha-Junior et al., SSTD 2011): frequent keywords are filed by place too, others in plain lists."""

    name = "window_grid"
    paper = "after Rocha-Junior et al. 2011 (S2I)"
    summary = "lists by keyword, long ones in blocks of neighbours"
    groups: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "coarse": {"coarse": np.int32},
        "lists": {"keyword": np.int32},
        "borders": {"entry_start": np.int32, "block_start": np.int32, "group_start": np.int32},
        "entries": {"offset": np.int32, "signature": np.int32},
        "figures": {"figures": np.float32},
        "blocks": {"block_heft": np.float32},
        "boxes": {"box": np.float32},
        "groups": {"group_heft": np.float32},
        "group_boxes": {"group_box": np.float32},
        "records": {"record": np.float64},
    }
    n_figures = 2

    def __init__(self, ground: Ground) -> None:
        super().__init__(ground)
        # Room for everything there is; a search touches the beginning only.
        self._bound, self._part = np.empty(0), np.empty(0, np.int64)

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
        grid = GridArrays(self.table, **arrays, as_number=arrays["record"].view(np.int64))
        # No entry, block or group is met twice, not even by equal words.
        n_parts = len(grid.group_heft) + len(grid.block_heft) + len(grid.offset)
        word, rank, n_entries, bit = np.empty((4, n_words), np.int64)
        if n_parts > len(self._bound):
            n_room = n_parts + n_parts // 8
            self._bound, self._part = np.empty(n_room), np.empty(n_room, np.int64)
        words = WordArrays(
            word,
            rank,
            n_entries,
            bit,
            np.empty(n_words + 1),
            np.empty(n_words),
            np.empty((n_words, len(self.table)), np.int64),
            self._bound,
            self._part,
            np.empty(BLOCK),
        )
        find_best(grid, self.frame, search, words, numbers, turns, n_wanted, found.start, found.n)
