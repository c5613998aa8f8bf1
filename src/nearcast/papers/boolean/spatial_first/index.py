"""`spatial_first`: owns the R-tree and keeps it up to date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.boolean.index import BooleanIndex
from nearcast.columns.clauses import ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work
from nearcast.engine.kernel_calls import Stamps, run_until_it_fits
from nearcast.engine.registry import Parameters
from nearcast.errors import IndexParameterError
from nearcast.papers.boolean.kernels.rtree import N_NODES, NO_NODE, ROOT, WIDTH, RTreeArrays, empty_rtree, pack, resized_tree
from nearcast.papers.boolean.spatial_first.kernels import insert_clauses, match_messages

_INSERT_BLOCK = 1024


@dataclass(frozen=True, slots=True)
class SpatialFirstParameters(Parameters):
    """`node_capacity`: entries per node, at least half used after a split (the papers' B = 50, b = 25)."""

    node_capacity: int = 50

    def __post_init__(self) -> None:
        if not 4 <= self.node_capacity <= 1024:
            raise IndexParameterError(f"node_capacity={self.node_capacity!r} is not possible; expected 4 to 1024")


class SpatialFirst(BooleanIndex):
    """R-tree over the boxes, Sort-Tile-Recursive bulk load; keywords are verified in the leaves."""

    name = "spatial_first"
    aliases = ("r-tree",)
    paper = "baseline of Li et al. 2013 (R^t-tree) and Yu et al. 2015 (LFilter)"
    summary = "R-tree over the regions (bulk loaded, b=25, B=50); keywords are verified"
    parameters_class = SpatialFirstParameters
    parameters: SpatialFirstParameters

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._stamps = Stamps()
        self._tree = empty_rtree(self.parameters.node_capacity)

    def build(self, clauses: ClauseStore, history: MessageBatch | None = None) -> None:
        layout = clauses.layout()
        slots = np.flatnonzero(layout.is_alive).astype(np.int32)
        boxes = [layout.x0[slots], layout.y0[slots], layout.x1[slots], layout.y1[slots]]
        self._tree = pack(boxes, slots, self.parameters.node_capacity)

    def insert(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        layout = clauses.layout()
        for first in range(0, len(slots), _INSERT_BLOCK):
            block = slots[first : first + _INSERT_BLOCK]
            # Half of a node's entries stay at each split, so n insertions make at most this many nodes on each level.
            splits = 2 * len(block) // self.parameters.node_capacity + 2
            self._tree = resized_tree(self._tree, int(self._tree.head[N_NODES]) + splits * (self._height() + 2))
            insert_clauses(self._tree, layout, block)

    def delete(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        """Dead clauses remain in their leaves and are skipped until the next build."""

    def match(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]:
        stamp, mark = self._stamps.take(messages.n_keywords, len(messages))
        layout, tree = clauses.layout(), self._tree
        # Depth first: at most one node's children are pending per level.
        scratch = (stamp, np.empty((self._height() + 1) * int(tree.head[WIDTH]), np.int32))
        return run_until_it_fits(
            len(messages),
            lambda first, n_out, output: match_messages(tree, layout, messages.arrays, scratch, mark, first, n_out, output),
        )

    def explain(self, clauses: ClauseStore, messages: MessageBatch, slot: int) -> list[str]:
        tree, width = self._tree, int(self._tree.head[WIDTH])
        arrays = messages.arrays
        n_nodes = int(tree.head[N_NODES])
        leaves = np.flatnonzero(tree.level[:n_nodes] == 0)
        leaf = next(n for n in leaves if slot in tree.child[n * width : n * width + tree.n_entries[n]])
        path = []
        node, child = int(leaf), slot
        while node != NO_NODE:
            entry = node * width + int(np.flatnonzero(tree.child[node * width : (node + 1) * width] == child)[0])
            box = (float(tree.x0[entry]), float(tree.y0[entry]), float(tree.x1[entry]), float(tree.y1[entry]))
            is_met = box[0] <= arrays.x1[0] and arrays.x0[0] <= box[2] and box[1] <= arrays.y1[0] and arrays.y0[0] <= box[3]
            path.append(f"level {int(tree.level[node])}, node {node}: box {box} {'meets' if is_met else 'misses'} the message")
            node, child = int(tree.parent[node]), node
        return path[::-1]

    def stats(self) -> dict[str, int | float]:
        return {**super().stats(), "nodes": int(self._tree.head[N_NODES]), "depth": self._height() + 1}

    def _height(self) -> int:
        return int(self._tree.level[self._tree.head[ROOT]])

    def arrays(self) -> dict[str, NDArray[Any]]:
        return dict(self._tree._asdict())

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._tree = RTreeArrays(*(arrays[name] for name in RTreeArrays._fields))
