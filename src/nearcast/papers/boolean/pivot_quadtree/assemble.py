"""Build a whole quadtree over clauses in trie order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.papers.boolean.pivot_quadtree.frame import cells_of, frame_around
from nearcast.papers.boolean.pivot_quadtree.grow_levels import Growth, grow
from nearcast.papers.boolean.pivot_quadtree.kernels import split
from nearcast.papers.boolean.pivot_quadtree.keyword_sets import node_sets
from nearcast.papers.boolean.pivot_quadtree.layout import QuadtreeArrays
from nearcast.papers.boolean.region_trie.layout import FiledArrays


def build_quadtree(filed: FiledArrays, frequency: NDArray[np.int64], growth: Growth) -> QuadtreeArrays:
    """The quadtree over all filed clauses; `frequency` is the number of clauses by rank."""
    boxes = filed.box.reshape(-1, 4)
    frame = frame_around(boxes, growth.n_columns)
    cells = cells_of(frame, growth.n_columns, list(boxes.T))
    nodes = grow(cells, growth, np.array([len(boxes)]))
    item_start = np.concatenate([[0], np.cumsum(nodes.n_items)])
    n_copies = len(nodes.item)
    pivot_start, pivot = np.empty(len(item_start), np.int64), np.empty(n_copies, np.int32)
    n_ranks = int(filed.n_ranks[0])
    counts, words = np.zeros(n_ranks, np.int64), (filed.word_start, filed.word)
    n_pivots = split.choose_pivots(item_start, nodes.item, *words, n_ranks, frequency, counts, pivot_start, pivot)
    cover, other = node_sets(nodes.parent, nodes.level_start, pivot_start, pivot[:n_pivots])
    rarest, begins = np.empty(n_copies, np.int32), np.empty(n_copies, np.int8)
    split.describe_items(item_start, nodes.item, cells.x0, cells.y0, nodes.x, nodes.y, filed.rarest, rarest, begins)
    # The root is node 0; the children of all nodes follow in order.
    child_start = (1 + np.concatenate([[0], np.cumsum(nodes.n_children)])).astype(np.int32)
    widest = np.array([nodes.n_children.max()], np.int64)
    return QuadtreeArrays(
        frame, nodes.parent, nodes.x, nodes.y, nodes.size, child_start, *cover, *other, item_start, nodes.item, rarest, begins,
        nodes.level_start, widest,
    )  # fmt: skip
