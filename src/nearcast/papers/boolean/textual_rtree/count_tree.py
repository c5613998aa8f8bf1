"""The tree whose nodes have inverted files and which counts instead of verifying keywords. Paper: R^t++-tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work
from nearcast.engine.kernel_calls import Stamps, run_until_it_fits
from nearcast.engine.registry import Parameters
from nearcast.papers.boolean.buffered import BufferedIndex
from nearcast.papers.boolean.kernels.keyword_lists import NO_KEYWORD, KeywordListArrays, file_lists
from nearcast.papers.boolean.kernels.rtree import (
    N_NODES,
    ROOT,
    WIDTH,
    RTreeArrays,
    empty_rtree,
    entries_of_level,
    pack,
    path_to_item,
    widen_root,
)
from nearcast.papers.boolean.textual_rtree.kernels.match import match_by_counts
from nearcast.papers.boolean.textual_rtree.keyword_order import KeywordOrder
from nearcast.papers.boolean.textual_rtree.layout import CountTreeArrays, TextualRTreeParameters


class CountTree(BufferedIndex):
    """R-tree that knows one keyword of a clause on each level.

    Built whole: a split of the root would move every keyword of every clause one level down.
    """

    name = "textual_rtree"
    parameters: TextualRTreeParameters

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._stamps, self._occurrences = Stamps(), Stamps()
        nothing = np.zeros(0, np.int32)
        self._index = place_keywords(empty_rtree(self.parameters.node_capacity), np.zeros(1, np.int64), nothing)

    def build_whole(self, clauses: ClauseStore, slots: NDArray[np.int32], history: MessageBatch | None) -> None:
        layout, n_keywords = clauses.layout(), clauses.n_keywords
        boxes = [layout.x0[slots], layout.y0[slots], layout.x1[slots], layout.y1[slots]]
        tree = pack(boxes, slots, self.parameters.node_capacity)
        if self.parameters.root == "wide":
            # With few children of the root, the first keyword would be looked up almost regardless of the location.
            tree = widen_root(tree)
        in_leaves = tree.child[entries_of_level(tree, 0)]
        order = KeywordOrder.of_clauses(self.parameters.selection, self.parameters.seed, layout, in_leaves, n_keywords)
        start, keyword = order.ordered(layout, in_leaves, n_keywords, is_local=True)
        self._index = place_keywords(tree, start, keyword)

    def match_built(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]:
        layout, index = clauses.layout(), self._index
        stamp, keyword_mark = self._stamps.take(messages.n_keywords, len(messages))
        longest = int(np.diff(messages.arrays.keyword_start).max(initial=0))
        # Depth first: at most one node's children are pending per level.
        stack = np.empty(
            self._height() * int(index.tree.head[WIDTH]) + int(index.tree.n_entries[index.tree.head[ROOT]]) + 1, np.int32
        )
        common = np.empty(longest + 1, np.int64)

        def match_from(first: int, n_out: int, output: Any) -> tuple[int, int]:
            # New marks for each try: a message that did not fit has left counts behind.
            occurrence, count_mark = self._occurrences.take(2 * len(index.slot), len(messages))
            scratch, marks = (stamp, occurrence, stack, common), (keyword_mark, count_mark)
            stop: tuple[int, int] = match_by_counts(index, layout, messages.arrays, scratch, marks, first, n_out, output)
            return stop

        return run_until_it_fits(len(messages), match_from)

    def explain_built(self, clauses: ClauseStore, messages: MessageBatch, slot: int) -> list[str]:
        tree, arrays, lists = self._index.tree, messages.arrays, self._index.lists
        rank = int(np.flatnonzero(self._index.slot == slot)[0])
        n_listed, height = int(self._index.n_listed[rank]), self._height()
        lines = []
        for node, entry in path_to_item(tree, slot):
            is_leaf = tree.level[node] == 0
            group = int(tree.head[N_NODES]) + node if is_leaf else int(tree.child[entry])
            keywords = [
                int(lists.keyword[at])
                for at in range(lists.group_start[group], lists.group_start[group + 1])
                if rank in lists.item[lists.list_start[at] : lists.list_start[at + 1]]
            ]
            present = sum(keyword == NO_KEYWORD or keyword in arrays.keyword for keyword in keywords)
            box = (float(tree.x0[entry]), float(tree.y0[entry]), float(tree.x1[entry]), float(tree.y1[entry]))
            is_met = box[0] <= arrays.x1[0] and arrays.x0[0] <= box[2] and box[1] <= arrays.y1[0] and arrays.y0[0] <= box[3]
            lines.append(
                f"depth {height + 1 - int(tree.level[node])}, node {node}: listed under {len(keywords)} of its {n_listed} "
                f"keywords, {present} of them in the message; next box {box} {'meets' if is_met else 'misses'} the message"
            )
        return lines

    def stats(self) -> dict[str, int | float]:
        lists = self._index.lists
        sizes = {"nodes": int(self._index.tree.head[N_NODES]), "depth": self._height() + 1}
        return {**super().stats(), **sizes, "lists": len(lists.keyword), "listed_keywords": len(lists.item)}

    def _height(self) -> int:
        tree = self._index.tree
        return int(tree.level[tree.head[ROOT]])

    def built_arrays(self) -> dict[str, NDArray[Any]]:
        tree = {f"tree_{name}": array for name, array in self._index.tree._asdict().items()}
        lists = {f"lists_{name}": array for name, array in self._index.lists._asdict().items()}
        return {**tree, **lists, "slot": self._index.slot, "n_listed": self._index.n_listed}

    def restore_built(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        tree = RTreeArrays(*(arrays[f"tree_{name}"] for name in RTreeArrays._fields))
        lists = KeywordListArrays(*(arrays[f"lists_{name}"] for name in KeywordListArrays._fields))
        self._index = CountTreeArrays(tree, lists, arrays["slot"], arrays["n_listed"])


def place_keywords(tree: RTreeArrays, start: NDArray[np.int64], keyword: NDArray[np.int32]) -> CountTreeArrays:
    """File each clause under its i-th keyword in the entry, at depth i, that leads to it; under the rest in its leaf.

    `start` and `keyword` are the ordered keywords of the clauses in the order of the leaves.
    """
    entries = entries_of_level(tree, 0)
    n_levels = int(tree.level[tree.head[ROOT]]) + 1
    leaf = entries // tree.head[WIDTH]
    n_listed = np.diff(start)
    rank = np.repeat(np.arange(len(entries)), n_listed)
    position = np.arange(len(keyword)) - start[:-1][rank] + 1
    group = tree.head[N_NODES] + leaf[rank]
    node = leaf
    for depth_of_parent in range(n_levels - 1, 0, -1):
        is_here = position == depth_of_parent
        group[is_here] = node[rank[is_here]]
        node = tree.parent[node]
    lists = file_lists(group, keyword, rank, 2 * int(tree.head[N_NODES]))
    return CountTreeArrays(tree, lists, tree.child[entries], n_listed.astype(np.int32))
