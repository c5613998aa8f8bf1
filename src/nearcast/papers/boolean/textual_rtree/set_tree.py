"""The tree whose nodes have keyword sets: builds it, and grows it clause by clause. Paper: R^t-tree, R^t+-tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.boolean.index import BooleanIndex
from nearcast.columns.clauses import ClauseStore, take_lists
from nearcast.columns.growing import resized
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work
from nearcast.engine.kernel_calls import Stamps, run_until_it_fits
from nearcast.engine.registry import Parameters
from nearcast.kernels.layouts import ClauseArrays
from nearcast.kernels.pools import ListPool
from nearcast.papers.boolean.kernels.keyword_lists import NO_KEYWORD, distinct_pairs
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
    resized_tree,
)
from nearcast.papers.boolean.textual_rtree.kernels.maintain import file_clauses
from nearcast.papers.boolean.textual_rtree.kernels.match import match_by_sets
from nearcast.papers.boolean.textual_rtree.keyword_order import KeywordOrder
from nearcast.papers.boolean.textual_rtree.layout import SetTreeArrays, TextualRTreeParameters

# Insertions use frequencies of the last build and pack worse, so rebuild when they are the majority.
_LEAST_INSERTED = 64


class SetTree(BooleanIndex):
    """R-tree with a keyword set in each node; a clause lists all of its keywords or one representative."""

    name = "textual_rtree"
    parameters: TextualRTreeParameters

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._stamps = Stamps()
        self._order = self._order_with(np.zeros(0, np.int64))
        self._index = _set_tree(empty_rtree(self.parameters.node_capacity), np.zeros((2, 0), np.int32), np.zeros(0, np.int32))
        self._n_built, self._n_inserted = 0, 0

    @property
    def _has_one(self) -> bool:
        return self.parameters.representatives == "one"

    def _order_with(self, weight: NDArray[np.int64]) -> KeywordOrder:
        return KeywordOrder(self.parameters.selection, self.parameters.seed, weight)

    def build(self, clauses: ClauseStore, history: MessageBatch | None = None) -> None:
        layout = clauses.layout()
        slots = np.flatnonzero(layout.is_alive).astype(np.int32)
        boxes = [layout.x0[slots], layout.y0[slots], layout.x1[slots], layout.y1[slots]]
        tree = pack(boxes, slots, self.parameters.node_capacity)
        representative = np.zeros(0, np.int32)
        if self._has_one:
            selection, seed = self.parameters.selection, self.parameters.seed
            self._order = KeywordOrder.of_clauses(selection, seed, layout, slots, clauses.n_keywords)
            representative = np.full(clauses.n, NO_KEYWORD, np.int32)
            start, keyword = self._order.ordered(layout, slots, clauses.n_keywords, is_local=True)
            representative[slots] = keyword[start[:-1]]
        self._index = _set_tree(tree, _listed_pairs(tree, layout, representative), representative)
        self._n_built, self._n_inserted = len(slots), 0

    def insert(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        self._n_inserted += len(slots)
        if self._n_inserted > max(_LEAST_INSERTED, self._n_built):
            self.build(clauses)
            return
        layout = clauses.layout()
        if self._has_one:
            start, keyword = self._order.ordered(layout, slots, clauses.n_keywords)
            representative = resized(self._index.representative, clauses.n * 9 // 8, NO_KEYWORD, needed=clauses.n)
            representative[slots] = keyword[start[:-1]]
            self._index = self._index._replace(representative=representative)
        first = 0
        while (first := file_clauses(self._index, layout, slots, first)) < len(slots):
            self._index = _with_capacity(self._index)

    def delete(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        """Dead clauses remain in their leaves, and their keywords in the sets, until the next build."""

    def match(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]:
        stamp, mark = self._stamps.take(messages.n_keywords, len(messages))
        layout, index = clauses.layout(), self._index
        # Depth first: at most one node's children are pending per level.
        scratch = (stamp, np.empty((self._height() + 1) * int(index.tree.head[WIDTH]), np.int32))
        return run_until_it_fits(
            len(messages),
            lambda first, n_out, output: match_by_sets(index, layout, messages.arrays, scratch, mark, first, n_out, output),
        )

    def explain(self, clauses: ClauseStore, messages: MessageBatch, slot: int) -> list[str]:
        tree, arrays = self._index.tree, messages.arrays
        lines = []
        for node, entry in path_to_item(tree, slot):
            members = self._set_of(node)
            common = np.intersect1d(members, np.append(arrays.keyword, NO_KEYWORD))
            box = (float(tree.x0[entry]), float(tree.y0[entry]), float(tree.x1[entry]), float(tree.y1[entry]))
            is_met = box[0] <= arrays.x1[0] and arrays.x0[0] <= box[2] and box[1] <= arrays.y1[0] and arrays.y0[0] <= box[3]
            lines.append(
                f"level {int(tree.level[node])}, node {node}: {len(common)} of its {len(members)} keywords are in the message; "
                f"next box {box} {'meets' if is_met else 'misses'} the message"
            )
        return lines

    def _set_of(self, node: int) -> NDArray[np.int32]:
        sets = self._index.sets
        members: NDArray[np.int32] = sets.item[sets.start[node] : sets.start[node] + sets.size[node]]
        return members

    def stats(self) -> dict[str, int | float]:
        n_nodes = int(self._index.tree.head[N_NODES])
        listed = int(self._index.sets.size[:n_nodes].sum())
        return {**super().stats(), "nodes": n_nodes, "depth": self._height() + 1, "listed_keywords": listed}

    def _height(self) -> int:
        tree = self._index.tree
        return int(tree.level[tree.head[ROOT]])

    def arrays(self) -> dict[str, NDArray[Any]]:
        tree = {f"tree_{name}": array for name, array in self._index.tree._asdict().items()}
        sets = {f"sets_{name}": array for name, array in self._index.sets._asdict().items()}
        counts = np.array([self._n_built, self._n_inserted], np.int64)
        return {**tree, **sets, "representative": self._index.representative, "weight": self._order.weight, "counts": counts}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        tree = RTreeArrays(*(arrays[f"tree_{name}"] for name in RTreeArrays._fields))
        sets = ListPool(*(arrays[f"sets_{name}"] for name in ListPool._fields))
        self._index = SetTreeArrays(tree, sets, arrays["representative"])
        self._order = self._order_with(arrays["weight"])
        self._n_built, self._n_inserted = arrays["counts"].tolist()


def _listed_pairs(tree: RTreeArrays, clauses: ClauseArrays, representative: NDArray[np.int32]) -> NDArray[np.int32]:
    """Every pair of node and keyword of its set, sorted: a row of nodes and a row of keywords."""
    entries = entries_of_level(tree, 0)
    node, clause = entries // tree.head[WIDTH], tree.child[entries]
    if len(representative):
        keyword = representative[clause]
    else:
        start, keyword = take_lists(clauses.keyword_start, clauses.keyword, clause)
        is_bare = np.diff(start) == 0
        keyword = np.concatenate([keyword, np.full(np.count_nonzero(is_bare), NO_KEYWORD, np.int32)])
        node = np.concatenate([np.repeat(node, np.diff(start)), node[is_bare]])
    levels = []
    while len(node) and node[0] != NO_NODE:
        node, keyword = distinct_pairs(node, keyword)
        levels.append(np.stack([node.astype(np.int32), keyword]))
        node = tree.parent[node]
    return np.concatenate(levels, axis=1) if levels else np.zeros((2, 0), np.int32)


def _set_tree(tree: RTreeArrays, pairs: NDArray[np.int32], representative: NDArray[np.int32]) -> SetTreeArrays:
    """`pairs` of node and keyword are in the order of the nodes, as leaves are numbered first."""
    size = np.bincount(pairs[0], minlength=len(tree.level)).astype(np.int32)
    start = np.cumsum(size, dtype=np.int64) - size
    n_items = np.array([pairs.shape[1]], np.int64)
    return SetTreeArrays(tree, ListPool(start, size, size.copy(), pairs[1].copy(), n_items), representative)


def _with_capacity(index: SetTreeArrays) -> SetTreeArrays:
    """The same with capacity for more nodes and larger sets; called again if that is not enough."""
    tree = index.tree
    if int(tree.head[N_NODES]) + int(tree.level[tree.head[ROOT]]) + 2 > len(tree.level):
        tree = resized_tree(tree, len(tree.level) + len(tree.level) // 4 + 16)
        per_node = {name: resized(getattr(index.sets, name), len(tree.level)) for name in ("start", "size", "capacity")}
        return index._replace(tree=tree, sets=index.sets._replace(**per_node))
    item = resized(index.sets.item, len(index.sets.item) * 5 // 4 + 1024)
    return index._replace(sets=index.sets._replace(item=item))
