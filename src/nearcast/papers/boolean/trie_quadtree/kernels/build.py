"""Grow a quadtree over the clauses that end in each node of a trie, all of them together."""

from __future__ import annotations

import numpy as np

from nearcast.papers.boolean.pivot_quadtree.frame import cells_of, frame_around
from nearcast.papers.boolean.pivot_quadtree.grow_levels import Growth, grow
from nearcast.papers.boolean.pivot_quadtree.layout import BEGINS_X, BEGINS_Y
from nearcast.papers.boolean.region_trie.layout import FiledArrays, TrieArrays
from nearcast.papers.boolean.trie_quadtree.layout import NO_TREE, ForestArrays


def build_forest(filed: FiledArrays, trie: TrieArrays, growth: Growth) -> ForestArrays:
    """The quadtrees of a trie; nodes where no clause ends have none."""
    boxes = filed.box.reshape(-1, 4)
    frame = frame_around(boxes, growth.n_columns)
    cells = cells_of(frame, growth.n_columns, list(boxes.T))
    n_ending = (trie.ending_stop - trie.first).astype(np.int64)
    owners = np.flatnonzero(n_ending)
    # What ends in a node is a run of positions; together the runs are all of them.
    owners = owners[np.argsort(trie.first[owners])]
    nodes = grow(cells, growth, n_ending[owners])
    root = np.full(len(n_ending), NO_TREE, np.int32)
    root[owners] = np.arange(len(owners))
    owner = np.repeat(np.arange(len(nodes.x)), nodes.n_items)
    begins_x, begins_y = cells.x0[nodes.item] >= nodes.x[owner], cells.y0[nodes.item] >= nodes.y[owner]
    begins = (np.where(begins_x, BEGINS_X, 0) + np.where(begins_y, BEGINS_Y, 0)).astype(np.int8)
    return ForestArrays(
        frame,
        np.array([growth.n_columns]),
        root,
        nodes.x,
        nodes.y,
        nodes.size,
        (len(owners) + np.concatenate([[0], np.cumsum(nodes.n_children)])).astype(np.int32),
        np.concatenate([[0], np.cumsum(nodes.n_items)]),
        nodes.item,
        begins,
        nodes.level_start,
        np.array([nodes.n_children.max(initial=0)]),
    )
