"""The index of the window that is a tree of boxes, each with the words in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nearcast.papers.ranked.window_ir_tree.build import make_tree
from nearcast.papers.ranked.window_ir_tree.kernels.match import find_best
from nearcast.papers.ranked.window_ir_tree.layout import TreeArrays
from nearcast.ranked.kernels.bound_queue import queue_for
from nearcast.ranked.kernels.layouts import WindowArrays
from nearcast.ranked.kernels.window_search import SearchLimits
from nearcast.ranked.subscriptions import RankedSubscriptions
from nearcast.ranked.window import MessageWindow
from nearcast.ranked.window_index import Best
from nearcast.ranked.window_segments import Piece, SegmentedWindow


class WindowIRTree(SegmentedWindow):
    """Paper: the IR-tree (Cong et al. 2009), which Skype searches to refill its buffers; here a packed tree for each piece."""

    name = "window_ir_tree"
    paper = "Cong et al. 2009 (IR-tree), as used by Skype"
    summary = "trees of boxes, each with the words in it"
    groups: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "messages": {"offset": np.int32},
        "nodes": {"first_member": np.int32, "end_member": np.int32},
        "boxes": {"box": np.float32},
        "borders": {"word_start": np.int32},
        "words": {"keyword": np.int32, "heft": np.float32},
    }
    n_figures = 2

    def piece_of(self, window: WindowArrays, first: int, last: int) -> Piece:
        assert self.frame is not None
        return make_tree(window, first, last, self.frame)

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
        n_words = int(subscribers.layout().n_words[numbers].max())
        search = self.search_arrays(subscribers, window, limits, found, n_words)
        tree = TreeArrays(self.table, **{name: column.used for name, column in self.columns.items()})
        find_best(tree, self.frame, search, queue_for(len(tree.first_member)), numbers, turns, n_wanted, found.start, found.n)
