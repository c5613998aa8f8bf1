"""`trie_quadtree`: the trie and its quadtrees; new clauses go to a buffer until they are rebuilt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work
from nearcast.engine.kernel_calls import Stamps, run_until_it_fits
from nearcast.engine.registry import Parameters, check_choice, check_range
from nearcast.papers.boolean.buffered import BufferedIndex
from nearcast.papers.boolean.pivot_quadtree.build import Growth, cells_of, enclosing_frame, grow
from nearcast.papers.boolean.pivot_quadtree.index import LEAVES, MX_CIF
from nearcast.papers.boolean.pivot_quadtree.kernels import BEGINS_X, BEGINS_Y, MessageCells
from nearcast.papers.boolean.region_trie.build import FREQUENT_FIRST, KEYWORD_ORDERS, build_trie, rank_messages
from nearcast.papers.boolean.region_trie.index import NO_CLAUSES, prefixed, walk_stack
from nearcast.papers.boolean.region_trie.kernels import RankedMessages, TrieArrays, TrieEntries
from nearcast.papers.boolean.trie_quadtree.kernels import NO_TREE, ForestArrays, match_messages


@dataclass(frozen=True, slots=True)
class TrieQuadtreeParameters(Parameters):
    """`keyword_order`: the order of keywords along a path. `leaf_size`: longest list of a quadtree; `max_depth`: cells are
    halved at most this often. `storage`: copies in every leaf ("leaves") or once in the smallest cell around it ("mx_cif").
    """

    keyword_order: str = FREQUENT_FIRST
    storage: str = LEAVES
    leaf_size: int = 40
    max_depth: int = 16

    def __post_init__(self) -> None:
        check_choice("keyword_order", self.keyword_order, KEYWORD_ORDERS)
        check_choice("storage", self.storage, (LEAVES, MX_CIF))
        check_range("leaf_size", self.leaf_size, 1, 1 << 20)
        check_range("max_depth", self.max_depth, 0, 24)

    @property
    def growth(self) -> Growth:
        return Growth(self.leaf_size, 1 << self.max_depth, self.storage == MX_CIF)


class TrieQuadtree(BufferedIndex):
    """Keywords first, by a trie; where more than a few clauses have the same keywords, space, by a quadtree."""

    name = "trie_quadtree"
    aliases = ("trie-qd",)
    paper = "Wang, Zhang, Zhang, Lin, Huang 2017, AP-Tree (Trie-Qd)"
    summary = "trie over the keywords, and a quadtree over the clauses that end in each of its nodes; only boxes are verified"
    parameters_class = TrieQuadtreeParameters
    parameters: TrieQuadtreeParameters

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._stamps = Stamps()
        self._file(*build_trie(NO_CLAUSES, np.empty(0, np.int32), 0, self.parameters.keyword_order)[:2])

    def _file(self, entries: TrieEntries, trie: TrieArrays) -> None:
        self._entries = entries
        # Unlike `region_trie`, this trie has no boxes.
        self._trie = trie._replace(box=np.empty(0, np.float64))
        self._forest = build_forest(entries, trie, self.parameters.growth)

    def build_whole(self, clauses: ClauseStore, slots: NDArray[np.int32], history: MessageBatch | None) -> None:
        self._file(*build_trie(clauses.layout(), slots, clauses.n_keywords, self.parameters.keyword_order)[:2])

    def match_built(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]:
        is_alive, entries, trie, forest = clauses.layout().is_alive, self._entries, self._trie, self._forest
        ranked, cells = rank_messages(entries, messages.arrays), self._cells(messages)
        stamp, before = self._stamps.take(int(entries.n_ranks[0]) + 1, len(ranked.rank))
        # Depth first: at most one node's children are pending per level.
        tree_stack = np.empty(len(forest.level_start) * int(forest.widest[0]) + 1, np.int32)
        scratch = (stamp, walk_stack(trie, ranked), tree_stack)
        return run_until_it_fits(
            len(messages),
            lambda first, n_out, output: match_messages(
                trie, forest, entries, is_alive, ranked, cells, messages.arrays, before + 1, scratch, first, n_out, output
            ),
        )

    def _cells(self, messages: MessageBatch) -> MessageCells:
        arrays = messages.arrays
        return cells_of(self._forest.frame, int(self._forest.n_columns[0]), (arrays.x0, arrays.y0, arrays.x1, arrays.y1))

    def explain_built(self, clauses: ClauseStore, messages: MessageBatch, slot: int) -> list[str]:
        ranked = rank_messages(self._entries, messages.arrays)
        return explain_path(self._entries, self._trie, self._forest, ranked, self._cells(messages), slot)

    def stats(self) -> dict[str, int | float]:
        n_clauses = len(self._entries.clause)
        sizes = {
            "nodes": int(self._trie.level_start[-1]) + len(self._forest.cell_x),
            "depth": len(self._trie.level_start) - 1,
            "quadtree_depth": len(self._forest.level_start) - 1,
            "copies": max(1.0, len(self._forest.item) / max(1, n_clauses)),
        }
        return {**super().stats(), **sizes}

    def built_arrays(self) -> dict[str, NDArray[Any]]:
        return {**prefixed("entries", self._entries), **prefixed("trie", self._trie), **prefixed("forest", self._forest)}

    def restore_built(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._entries = TrieEntries(*(arrays[f"entries_{name}"] for name in TrieEntries._fields))
        self._trie = TrieArrays(*(arrays[f"trie_{name}"] for name in TrieArrays._fields))
        self._forest = ForestArrays(*(arrays[f"forest_{name}"] for name in ForestArrays._fields))


def explain_path(
    entries: TrieEntries, trie: TrieArrays, forest: ForestArrays, ranked: RankedMessages, cells: MessageCells, slot: int
) -> list[str]:
    """One line per keyword on the clause's path up to the one that the message lacks, then one for its cell."""
    position = int(np.flatnonzero(entries.clause == slot)[0])
    keyword_of = {int(rank): keyword for keyword, rank in enumerate(entries.rank)}
    message_ranks = set(ranked.rank[: ranked.start[1]].tolist())
    lines, node = ["root: entered"], 0
    for rank in entries.word[entries.word_start[position] : entries.word_start[position + 1]].tolist():
        if rank not in message_ranks:
            return [*lines, f"keyword {keyword_of[rank]}: not entered, the message lacks it"]
        lines.append(f"keyword {keyword_of[rank]}: entered")
        first, stop = trie.child_start[node], trie.child_start[node + 1]
        node = int(first + np.searchsorted(trie.word[first:stop], rank))
    n_ending = int(trie.ending_stop[node] - trie.first[node])
    copies = np.flatnonzero(forest.item == position)
    lists = np.searchsorted(forest.item_start, copies, side="right") - 1
    lines.append(f"{n_ending} clauses end here; this one is filed in {len(lists)} cells of their quadtree")
    for list_id in lists.tolist():
        x, y, size = int(forest.cell_x[list_id]), int(forest.cell_y[list_id]), int(forest.cell_size[list_id])
        if x <= cells.x1[0] and cells.x0[0] < x + size and y <= cells.y1[0] and cells.y0[0] < y + size:
            n_items = int(forest.item_start[list_id + 1] - forest.item_start[list_id])
            return [
                *lines,
                f"the message meets its cell at column {x}, row {y}: the boxes of the {n_items} clauses there are verified",
            ]
    return [*lines, "the message meets none of them"]


def build_forest(entries: TrieEntries, trie: TrieArrays, growth: Growth) -> ForestArrays:
    """The quadtrees of a trie; nodes where no clause ends have none."""
    boxes = entries.box.reshape(-1, 4)
    frame = enclosing_frame(boxes, growth.n_columns)
    cells = cells_of(frame, growth.n_columns, list(boxes.T))
    n_ending = (trie.ending_stop - trie.first).astype(np.int64)
    ending_nodes = np.flatnonzero(n_ending)
    # What ends in a node is a run of positions; together the runs are all of them.
    ending_nodes = ending_nodes[np.argsort(trie.first[ending_nodes])]
    nodes = grow(cells, growth, n_ending[ending_nodes])
    root = np.full(len(n_ending), NO_TREE, np.int32)
    root[ending_nodes] = np.arange(len(ending_nodes))
    list_id = np.repeat(np.arange(len(nodes.x)), nodes.n_items)
    begins_x, begins_y = cells.x0[nodes.item] >= nodes.x[list_id], cells.y0[nodes.item] >= nodes.y[list_id]
    begins = (np.where(begins_x, BEGINS_X, 0) + np.where(begins_y, BEGINS_Y, 0)).astype(np.int8)
    return ForestArrays(
        frame,
        np.array([growth.n_columns]),
        root,
        nodes.x,
        nodes.y,
        nodes.size,
        (len(ending_nodes) + np.concatenate([[0], np.cumsum(nodes.n_children)])).astype(np.int32),
        np.concatenate([[0], np.cumsum(nodes.n_items)]),
        nodes.item,
        begins,
        nodes.level_start,
        np.array([nodes.n_children.max(initial=0)]),
    )
