"""The arrays of the quadtree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NO_NODE = -1
NO_ROOM = -1  # what verifying returns when a message's matches did not fit
BEGINS_X, BEGINS_Y = 1, 2  # bits of `begins`


class QuadtreeArrays(NamedTuple):
    """Nodes level by level from the root; the children of a node stand together, a node without children has a list.

    Space is cut into columns and rows (`columns.py`); a node's cell is the square of `cell_size` columns and rows from
    cell_x, cell_y on. A child is a quadrant that holds anything, or a run of clauses that stay with the node: then its
    cell is the node's own. Items are positions in trie order (`region_trie/layout.py:FiledArrays`), ascending in a list.
    Words are ranks. Paper: cover = CSet, other = NSet, item = the inverted list of a leaf.
    """

    frame: np.ndarray  # float64[6]: low x, high x, columns per half unit, low y, high y, rows per half unit
    parent: np.ndarray  # int32[n_nodes]; NO_NODE for the root
    cell_x: np.ndarray  # int32[n_nodes]
    cell_y: np.ndarray  # int32[n_nodes]
    cell_size: np.ndarray  # int32[n_nodes]
    child_start: np.ndarray  # int32[n_nodes + 1]: children of n are child_start[n] … child_start[n + 1] - 1
    cover_start: np.ndarray  # int64[n_nodes + 1]
    cover: np.ndarray  # int32[]: words that are pivotal in every list below the node, but not below its parent; ascending
    other_start: np.ndarray  # int64[n_nodes + 1]
    other: np.ndarray  # int32[]: words that are pivotal in some list below the node, not in all; ascending
    item_start: np.ndarray  # int64[n_nodes + 1]
    item: np.ndarray  # int32[n_copies]
    rarest: np.ndarray  # int32[n_copies]: the rarest word of the item, looked at first
    begins: np.ndarray  # int8[n_copies]: whether the item's first column (BEGINS_X) and row (BEGINS_Y) are in the cell
    level_start: np.ndarray  # int64[n_levels + 1]: first node of each level
    widest: np.ndarray  # int64[1]: most children of a node


class MessageCells(NamedTuple):
    """The columns and rows that each message of a batch meets, ends included."""

    x0: np.ndarray  # int32[n]
    y0: np.ndarray  # int32[n]
    x1: np.ndarray  # int32[n]
    y1: np.ndarray  # int32[n]
