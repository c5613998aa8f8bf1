"""`pivot_quadtree`: the quadtree; new clauses go to a buffer until it is rebuilt."""

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
from nearcast.papers.boolean.pivot_quadtree.build import Growth, build_quadtree, cells_of
from nearcast.papers.boolean.pivot_quadtree.kernels import NO_NODE, MessageCells, QuadtreeArrays, match_messages
from nearcast.papers.boolean.region_trie.build import FREQUENT_FIRST, build_trie, rank_messages
from nearcast.papers.boolean.region_trie.index import NO_CLAUSES, prefixed
from nearcast.papers.boolean.region_trie.kernels import RankedMessages, TrieEntries

LEAVES, MX_CIF = "leaves", "mx_cif"


@dataclass(frozen=True, slots=True)
class PivotQuadtreeParameters(Parameters):
    """`storage`: copies of a clause in every leaf its box meets ("leaves"), or once in the smallest cell around it ("mx_cif").

    `leaf_size`: longest list; `max_depth`: cells are halved at most this often (the paper gives no values for either).
    """

    storage: str = LEAVES
    leaf_size: int = 64
    max_depth: int = 16

    def __post_init__(self) -> None:
        check_choice("storage", self.storage, (LEAVES, MX_CIF))
        check_range("leaf_size", self.leaf_size, 1, 1 << 20)
        check_range("max_depth", self.max_depth, 0, 24)

    @property
    def growth(self) -> Growth:
        return Growth(self.leaf_size, 1 << self.max_depth, self.storage == MX_CIF)


class PivotQuadtree(BufferedIndex):
    """Lists of clauses in quadrants; a message goes where it meets the cell and has one of few pivotal keywords."""

    name = "pivot_quadtree"
    aliases = ("pt-quadtree",)
    paper = "Yu, Li, Feng 2015, A Cost-based Method for Location-Aware Publish/Subscribe Services (PT-Quadtree)"
    summary = "quadtree whose nodes know a few pivotal keywords, one of which each clause below has; both parts are verified"
    parameters_class = PivotQuadtreeParameters
    parameters: PivotQuadtreeParameters

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._stamps = Stamps()
        self._entries, _, frequency = build_trie(NO_CLAUSES, np.empty(0, np.int32), 0, FREQUENT_FIRST)
        self._tree = build_quadtree(self._entries, frequency, self.parameters.growth)

    def build_whole(self, clauses: ClauseStore, slots: NDArray[np.int32], history: MessageBatch | None) -> None:
        # In trie order, clauses of a run share their first keywords, so that it needs few pivots.
        self._entries, _, frequency = build_trie(clauses.layout(), slots, clauses.n_keywords, FREQUENT_FIRST)
        self._tree = build_quadtree(self._entries, frequency, self.parameters.growth)

    def match_built(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]:
        layout, entries, tree = clauses.layout(), self._entries, self._tree
        ranked = rank_messages(entries, messages.arrays)
        cells = message_cells(tree, messages)
        stamp, before = self._stamps.take(int(entries.n_ranks[0]) + 1, len(ranked.rank))
        scratch = (stamp, *search_scratch(tree))
        return run_until_it_fits(
            len(messages),
            lambda first, n_out, output: match_messages(
                tree, entries, layout.is_alive, ranked, cells, messages.arrays, before + 1, scratch, first, n_out, output
            ),
        )

    def explain_built(self, clauses: ClauseStore, messages: MessageBatch, slot: int) -> list[str]:
        ranked = rank_messages(self._entries, messages.arrays)
        return explain_quadtree(self._entries, self._tree, ranked, message_cells(self._tree, messages), slot)

    def stats(self) -> dict[str, int | float]:
        return {**super().stats(), **quadtree_stats(self._tree, len(self._entries.clause))}

    def built_arrays(self) -> dict[str, NDArray[Any]]:
        return {**prefixed("entries", self._entries), **prefixed("tree", self._tree)}

    def restore_built(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._entries = TrieEntries(*(arrays[f"entries_{name}"] for name in TrieEntries._fields))
        self._tree = QuadtreeArrays(*(arrays[f"tree_{name}"] for name in QuadtreeArrays._fields))


def message_cells(tree: QuadtreeArrays, messages: MessageBatch) -> MessageCells:
    """The columns and rows of each message."""
    arrays = messages.arrays
    return cells_of(tree.frame, int(tree.cell_size[0]), (arrays.x0, arrays.y0, arrays.x1, arrays.y1))


def search_scratch(tree: QuadtreeArrays) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """A stack for the search (depth first: at most one node's children are pending per level), and an array for its results."""
    n_levels, n_nodes = len(tree.level_start) - 1, len(tree.parent)
    return np.empty(n_levels * int(tree.widest[0]) + 1, np.int32), np.empty(n_nodes, np.int32)


def quadtree_stats(tree: QuadtreeArrays, n_clauses: int) -> dict[str, int | float]:
    """Sizes worth plotting."""
    n_nodes = len(tree.parent)
    return {
        "nodes": n_nodes,
        "depth": len(tree.level_start) - 1,
        "copies": max(1.0, len(tree.item) / max(1, n_clauses)),
        "words_per_node": (len(tree.cover) + len(tree.other)) / n_nodes,
    }


def explain_quadtree(
    entries: TrieEntries, tree: QuadtreeArrays, ranked: RankedMessages, cells: MessageCells, slot: int
) -> list[str]:
    """One line per node on the path to the copy of the clause that counts for the message, if there is one."""
    position = int(np.flatnonzero(entries.clause == slot)[0])
    copies = np.flatnonzero(tree.item == position)
    nodes = np.searchsorted(tree.item_start, copies, side="right") - 1
    lines = [f"filed in {len(nodes)} lists"]
    met = [int(node) for node in nodes if _is_met(tree, int(node), cells)]
    if not met:
        return [*lines, "the cells of none of them meet the message"]
    path = [met[0]]
    while tree.parent[path[-1]] != NO_NODE:
        path.append(int(tree.parent[path[-1]]))
    message_ranks = set(ranked.rank[: ranked.start[1]].tolist())
    for depth, node in enumerate(path[::-1]):
        n_items = int(tree.item_start[node + 1] - tree.item_start[node])
        name = f"level {depth}, node {node}" + (f" with a list of {n_items} clauses" if n_items else "")
        if message_ranks & set(tree.cover[tree.cover_start[node] : tree.cover_start[node + 1]].tolist()):
            return [*lines, f"{name}: the message has a keyword pivotal in every list below, all that it meets are verified"]
        if not message_ranks & set(tree.other[tree.other_start[node] : tree.other_start[node + 1]].tolist()):
            return [*lines, f"{name}: the message has none of its pivotal keywords"]
        lines.append(f"{name}: entered, the message has a keyword pivotal in some list below")
    raise AssertionError("a list has cover words only")  # pragma: no cover


def _is_met(tree: QuadtreeArrays, node: int, cells: MessageCells) -> bool:
    x, y, size = int(tree.cell_x[node]), int(tree.cell_y[node]), int(tree.cell_size[node])
    return bool(x <= cells.x1[0] and cells.x0[0] < x + size and y <= cells.y1[0] and cells.y0[0] < y + size)
