"""`ir_tree`: an R-tree with an inverted file in each node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore, take_lists
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work
from nearcast.engine.kernel_calls import Stamps, run_until_it_fits
from nearcast.engine.registry import Parameters
from nearcast.errors import IndexParameterError
from nearcast.kernels.layouts import ClauseArrays
from nearcast.papers.boolean.buffered import BufferedIndex
from nearcast.papers.boolean.ir_tree.kernels import InvertedTreeArrays, match_messages
from nearcast.papers.boolean.kernels.keyword_lists import NO_KEYWORD, KeywordListArrays, distinct_pairs, file_lists
from nearcast.papers.boolean.kernels.rtree import (
    N_NODES,
    NO_NODE,
    ROOT,
    WIDTH,
    RTreeArrays,
    empty_rtree,
    entries_of_level,
    pack,
    path_to_item,
)


@dataclass(frozen=True, slots=True)
class IRTreeParameters(Parameters):
    """`node_capacity`: entries per node, at least half used (the papers' B = 50, b = 25)."""

    node_capacity: int = 50

    def __post_init__(self) -> None:
        if not 4 <= self.node_capacity <= 1024:
            raise IndexParameterError(f"node_capacity={self.node_capacity!r} is not possible; expected 4 to 1024")


class IRTree(BufferedIndex):
    """R-tree with an inverted file in each node. Built as a whole: a split would change the files on every level."""

    name = "ir_tree"
    aliases = ("ir-tree",)
    paper = "baseline of Li et al. 2013 (R^t-tree) and Yu et al. 2015 (LFilter); Cong, Jensen & Wu 2009"
    summary = "R-tree with an inverted file in each node; clauses are counted in the leaves"
    parameters_class = IRTreeParameters
    parameters: IRTreeParameters

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._stamps = Stamps()
        nothing = KeywordListArrays(np.zeros(2, np.int64), np.zeros(0, np.int32), np.zeros(1, np.int64), np.zeros(0, np.int32))
        self._index = InvertedTreeArrays(empty_rtree(self.parameters.node_capacity), nothing)

    def build_whole(self, clauses: ClauseStore, slots: NDArray[np.int32], history: MessageBatch | None) -> None:
        layout = clauses.layout()
        boxes = [layout.x0[slots], layout.y0[slots], layout.x1[slots], layout.y1[slots]]
        self._index = file_keywords(pack(boxes, slots, self.parameters.node_capacity), layout)

    def match_built(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]:
        stamp, mark = self._stamps.take(messages.n_keywords, len(messages))
        layout, index = clauses.layout(), self._index
        width = int(index.tree.head[WIDTH])
        longest = int(np.diff(messages.arrays.keyword_start).max(initial=0))
        # Depth first: at most one node's children are pending per level.
        stack = np.empty((self._height() + 1) * width, np.int32)
        scratch = (stamp, stack, np.empty(longest + 1, np.int64), np.empty(width, np.int32))
        return run_until_it_fits(
            len(messages),
            lambda first, n_out, output: match_messages(index, layout, messages.arrays, scratch, mark, first, n_out, output),
        )

    def explain_built(self, clauses: ClauseStore, messages: MessageBatch, slot: int) -> list[str]:
        tree, lists, arrays = self._index.tree, self._index.lists, messages.arrays
        width = int(tree.head[WIDTH])
        lines = []
        for node, entry in path_to_item(tree, slot):
            hits = [
                at
                for at in range(lists.group_start[node], lists.group_start[node + 1])
                if lists.keyword[at] == NO_KEYWORD or lists.keyword[at] in arrays.keyword
            ]
            n_hits = sum(entry % width in lists.item[lists.list_start[at] : lists.list_start[at + 1]] for at in hits)
            box = (float(tree.x0[entry]), float(tree.y0[entry]), float(tree.x1[entry]), float(tree.y1[entry]))
            is_met = box[0] <= arrays.x1[0] and arrays.x0[0] <= box[2] and box[1] <= arrays.y1[0] and arrays.y0[0] <= box[3]
            lines.append(
                f"level {int(tree.level[node])}, node {node}: the message hits {len(hits)} lists, {n_hits} of them name the "
                f"next entry; its box {box} {'meets' if is_met else 'misses'} the message"
            )
        return lines

    def stats(self) -> dict[str, int | float]:
        lists = self._index.lists
        sizes = {"nodes": int(self._index.tree.head[N_NODES]), "depth": self._height() + 1}
        return {**super().stats(), **sizes, "lists": len(lists.keyword), "listed_entries": len(lists.item)}

    def _height(self) -> int:
        tree = self._index.tree
        return int(tree.level[tree.head[ROOT]])

    def built_arrays(self) -> dict[str, NDArray[Any]]:
        tree = {f"tree_{name}": array for name, array in self._index.tree._asdict().items()}
        return {**tree, **{f"lists_{name}": array for name, array in self._index.lists._asdict().items()}}

    def restore_built(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        tree = RTreeArrays(*(arrays[f"tree_{name}"] for name in RTreeArrays._fields))
        self._index = InvertedTreeArrays(tree, KeywordListArrays(*(arrays[f"lists_{n}"] for n in KeywordListArrays._fields)))


def file_keywords(tree: RTreeArrays, clauses: ClauseArrays) -> InvertedTreeArrays:
    """File the entries of each node under the keywords below them; a clause without keywords under NO_KEYWORD."""
    width = tree.head[WIDTH]
    entry_of_node = _entry_of_each_node(tree)
    entries = entries_of_level(tree, 0)
    start, keyword = take_lists(clauses.keyword_start, clauses.keyword, tree.child[entries])
    is_bare = np.diff(start) == 0
    entry = np.concatenate([np.repeat(entries, np.diff(start)), entries[is_bare]])
    keyword = np.concatenate([keyword, np.full(np.count_nonzero(is_bare), NO_KEYWORD, np.int32)])
    all_entries, all_keywords = [entry], [keyword]
    for _ in range(int(tree.level[tree.head[ROOT]])):
        node, keyword = distinct_pairs(entry // width, keyword)
        entry = entry_of_node[node]
        all_entries.append(entry)
        all_keywords.append(keyword)
    entry = np.concatenate(all_entries)
    lists = file_lists(entry // width, np.concatenate(all_keywords), entry % width, int(tree.head[N_NODES]))
    return InvertedTreeArrays(tree, lists)


def _entry_of_each_node(tree: RTreeArrays) -> NDArray[np.int64]:
    """The entry of each node in its parent; NO_NODE for the root."""
    entry_of_node = np.full(len(tree.level), NO_NODE, np.int64)
    for level in range(1, int(tree.level[tree.head[ROOT]]) + 1):
        entries = entries_of_level(tree, level)
        entry_of_node[tree.child[entries]] = entries
    return entry_of_node
