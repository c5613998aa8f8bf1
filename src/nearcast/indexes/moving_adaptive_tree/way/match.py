"""Follow a clause from the root to its leaves, as it was filed, without making or counting anything.

The same nodes as `adaptive_tree/way/maintain.py:visit_nodes`, in the same order; arrays are handed over one by one, because
this is done four times for every move.
"""

from __future__ import annotations

from nearcast.indexes.adaptive_tree.by_keyword.build import find_cut, step_in
from nearcast.indexes.adaptive_tree.by_space.build import strip_of
from nearcast.indexes.adaptive_tree.layout import (
    BLOCK_FIELDS,
    BOUNDS,
    EXTRA,
    FIRST,
    KEYWORD,
    KIND,
    LEAF,
    NO_NODE,
    NODE_FIELDS,
    ROOT,
    ROWS,
    SIZE,
)
from nearcast.indexes.adaptive_tree.nodes.build import narrow_region
from nearcast.kernels.compile import inline_kernel
from nearcast.kernels.keyword_sets import sort_few, sort_many

_FEW = 24


@inline_kernel
def rank_clause(rank_of, keyword, begin, end, rank):
    """Write the places of a clause's keywords in order; returns their number."""
    for at in range(begin, end):
        rank[at - begin] = rank_of[keyword[at]]
    if end - begin <= _FEW:
        sort_few(rank, 0, end - begin)
    else:
        sort_many(rank, 0, end - begin)
    return end - begin


@inline_kernel
def follow(structure, box, rank, n_ranks, is_refining, queue, offset, region):
    """Write every node on the way of a clause; returns how many, and whether some child on the way is missing.

    `structure` is node, block, bound and the region of the root; `box` four numbers; `region` gets four numbers for each node.
    """
    node, block, bound, whole = structure
    x0, y0, x1, y1 = box
    queue[0], offset[0] = ROOT, 0
    for side in range(4):
        region[side] = whole[side]
    n, number, is_missing = 1, 0, False
    while number < n:
        record, at, own = NODE_FIELDS * queue[number], offset[number], 4 * number
        number += 1
        kind, first, size = node[record + KIND], node[record + FIRST], node[record + SIZE]
        if kind == LEAF:
            continue
        child, column0, column1, row0, row1, n_columns, bounds = node[record + EXTRA], 0, 0, 0, 0, 1, 0
        is_cells = False
        if kind == KEYWORD:
            if at < n_ranks:
                cuts = first + BLOCK_FIELDS + size
                cut = find_cut(block, cuts, size, rank[at], 0)
                child = block[first + BLOCK_FIELDS + cut]
                at += step_in(block, cuts, cut, size, is_refining)
        elif not (x0 <= region[own] and y0 <= region[own + 1] and region[own + 2] <= x1 and region[own + 3] <= y1):
            is_cells = True
            bounds, n_columns, n_rows = block[first + BOUNDS], size // ROWS, size % ROWS
            column0, column1 = strip_of(bound, bounds + 1, n_columns, x0), strip_of(bound, bounds + 1, n_columns, x1)
            row0, row1 = strip_of(bound, bounds + n_columns, n_rows, y0), strip_of(bound, bounds + n_columns, n_rows, y1)
        for row in range(row0, row1 + 1):
            for column in range(column0, column1 + 1):
                if is_cells:
                    child = block[first + BLOCK_FIELDS + row * n_columns + column]
                if child == NO_NODE:
                    is_missing = True
                    continue
                queue[n], offset[n] = child, at
                for side in range(4):
                    region[4 * n + side] = region[own + side]
                if is_cells:
                    narrow_region(region, 4 * n, bound, bounds, n_columns, size % ROWS, column, row)
                n += 1
    return n, is_missing
