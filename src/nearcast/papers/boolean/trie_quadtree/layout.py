"""The arrays of the quadtrees that stand in the nodes of the trie."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NO_TREE = -1  # the root of a trie node where no clause ends


class ForestArrays(NamedTuple):
    """Quadtrees over the same space, all roots first, then level by level; the children of a node stand together.

    A node without children has a list; that of a small tree is its root. Cells and items are those of
    `pivot_quadtree/layout.py:QuadtreeArrays`, without keywords: those were verified on the way through the trie.
    """

    frame: np.ndarray  # float64[6]: low x, high x, columns per half unit, low y, high y, rows per half unit
    n_columns: np.ndarray  # int64[1]
    root: np.ndarray  # int32[n trie nodes]: the root of its quadtree, or NO_TREE
    cell_x: np.ndarray  # int32[n_nodes]
    cell_y: np.ndarray  # int32[n_nodes]
    cell_size: np.ndarray  # int32[n_nodes]
    child_start: np.ndarray  # int32[n_nodes + 1]
    item_start: np.ndarray  # int64[n_nodes + 1]
    item: np.ndarray  # int32[n_copies]: positions in trie order
    begins: np.ndarray  # int8[n_copies]: whether the item's first column (BEGINS_X) and row (BEGINS_Y) are in the cell
    level_start: np.ndarray  # int64[n_levels + 1]
    widest: np.ndarray  # int64[1]: most children of a node
