"""`window_ir_tree`: the window as trees of boxes, each box with the words of its messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nearcast.papers.ranked.window_ir_tree.kernels import FANOUT, BoxTreeArrays, find_best
from nearcast.ranked.kernels.bounds import ROUNDED_UP, Frame, curve_positions, locate_messages
from nearcast.ranked.kernels.layouts import WindowArrays
from nearcast.ranked.kernels.search_queues import queue_for
from nearcast.ranked.kernels.window_search import SearchLimits
from nearcast.ranked.subscriptions import RankedSubscriptions
from nearcast.ranked.window import MessageWindow
from nearcast.ranked.window_index import BestMessages
from nearcast.ranked.window_segments import Segment, SegmentedWindow


class WindowIRTree(SegmentedWindow):
    """Paper: the IR-tree (Cong et al. 2009), which Skype searches to refill buffers; here a packed tree per segment."""

    name = "window_ir_tree"
    paper = "Cong et al. 2009 (IR-tree), as used by Skype"
    summary = "trees of boxes, each with the words in it"
    groups: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "messages": {"offset": np.int32},
        "nodes": {"first_member": np.int32, "end_member": np.int32},
        "boxes": {"box": np.float32},
        "borders": {"word_start": np.int32},
        "words": {"keyword": np.int32, "message_weight": np.float32},
    }
    n_figures = 2

    def make_segment(self, window: WindowArrays, first: int, last: int) -> Segment:
        assert self.frame is not None
        return make_tree(window, first, last, self.frame)

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
        tree = BoxTreeArrays(self.table, **{name: column.used for name, column in self.columns.items()})
        find_best(tree, self.frame, search, queue_for(len(tree.first_member)), numbers, turns, n_best, best.start, best.n)


def make_tree(window: WindowArrays, first: int, last: int, frame: Frame) -> Segment:
    """Make a tree of the messages at positions `first` … `last - 1`, at least one, from the leaves up."""
    n = last - first
    location = np.empty((3, n), np.float32)
    locate_messages(window, first, frame, location)
    order = np.argsort(curve_positions(location), kind="stable")
    begin, end = int(window.keyword_start[first]), int(window.keyword_start[last])
    position = np.empty(n, np.int64)
    position[order] = np.arange(n)
    member = np.repeat(position, np.diff(window.keyword_start[first : last + 1]))
    keyword = window.keyword[begin:end].astype(np.int64)
    length = np.repeat(window.length[first:last], np.diff(window.keyword_start[first : last + 1]))
    weight = (window.n_times[begin:end] / length * ROUNDED_UP).astype(np.float32)
    low = high = location[:, order]
    members, boxes, words = [], [], []
    n_below = 0
    while True:
        starts = np.arange(0, low.shape[1], FANOUT)
        ends = np.minimum(starts + FANOUT, low.shape[1])
        low, high = np.minimum.reduceat(low, starts, axis=1), np.maximum.reduceat(high, starts, axis=1)
        member, keyword, weight = _largest_weights(member // FANOUT, keyword, weight)
        members.append((starts + n_below, ends + n_below))
        boxes.append(np.concatenate([low, high]).T)
        words.append((np.bincount(member, minlength=len(starts)), keyword, weight))
        if len(starts) == 1:
            break
        # Members of leaves are messages; members of other nodes are nodes, counted from the first leaf.
        n_below = 0 if len(members) == 1 else n_below + len(members[-2][0])
    counts, keywords, message_weights = (np.concatenate(column) for column in zip(*words, strict=True))
    n_nodes = len(counts)
    columns = {
        "offset": order,
        "first_member": np.concatenate([starts for starts, _ in members]),
        "end_member": np.concatenate([ends for _, ends in members]),
        "box": np.concatenate(boxes).reshape(-1),
        "word_start": np.concatenate([[0], np.cumsum(counts)]),
        "keyword": keywords,
        "message_weight": message_weights,
    }
    return Segment(columns, (len(members[0][0]), n_nodes))


def _largest_weights(
    node: NDArray[np.int64], keyword: NDArray[np.int64], weight: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """The distinct words of each node, sorted, with the largest weight of each."""
    if len(node) == 0:
        return node, keyword, weight
    key = node * (int(keyword.max()) + 1) + keyword
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    largest = order[starts]
    return node[largest], keyword[largest], np.maximum.reduceat(weight[order], starts)
