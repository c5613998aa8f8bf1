"""Follow a clause from the root to its leaves, as it was filed, without making or counting anything.

The same nodes as `adaptive_tree/way/maintain.py:visit_nodes`, in the same order; arrays are handed over one by one, because
this is done for every move.
"""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel
from nearcast.kernels.sorting import sort_few, sort_many
from nearcast.papers.boolean.adaptive_tree.kernels.by_keyword import find_cut, proven_in, step_in
from nearcast.papers.boolean.adaptive_tree.kernels.by_space import strip_of
from nearcast.papers.boolean.adaptive_tree.kernels.nodes import narrow_region
from nearcast.papers.boolean.adaptive_tree.layout import (
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
def covers_region(box, region, own):
    return box[0] <= region[own] and box[1] <= region[own + 1] and region[own + 2] <= box[2] and region[own + 3] <= box[3]


@inline_kernel
def follow(structure, box, other, rank, n_ranks, is_refining, queue, offset, proven, region):
    """Write every node on the way of a clause with a box; returns how many, and two facts about this way.

    Whether some child on it is missing; and whether the same clause with the `other` box would go the same way.
    `structure` is node, block, bound and the region of the root; a box is four numbers. Of each node `offset` gets the keywords
    used up, `proven` the bits of those proven, `region` four numbers.
    """
    node, block, bound, whole = structure
    x0, y0, x1, y1 = box
    queue[0], offset[0], proven[0] = ROOT, 0, 0
    for side in range(4):
        region[side] = whole[side]
    n, number, is_missing, is_same = 1, 0, False, True
    while number < n:
        record, at, own = NODE_FIELDS * queue[number], offset[number], 4 * number
        number += 1
        kind, first, size = node[record + KIND], node[record + FIRST], node[record + SIZE]
        if kind == LEAF:
            continue
        child, column0, column1, row0, row1, n_columns, bounds = node[record + EXTRA], 0, 0, 0, 0, 1, 0
        is_cells, proves = False, proven[number - 1]
        if kind == KEYWORD:
            if at < n_ranks:
                cuts = first + BLOCK_FIELDS + size
                cut = find_cut(block, cuts, size, rank[at], 0)
                child = block[first + BLOCK_FIELDS + cut]
                proves = proven_in(block, cuts, cut, size, proves, at)
                at += step_in(block, cuts, cut, size, is_refining)
        else:
            is_cells = not covers_region(box, region, own)
            is_same = is_same and is_cells != covers_region(other, region, own)
        if is_cells:
            bounds, n_columns, n_rows = block[first + BOUNDS], size // ROWS, size % ROWS
            rows_at = bounds + n_columns
            column0, column1 = strip_of(bound, bounds + 1, n_columns, x0), strip_of(bound, bounds + 1, n_columns, x1)
            row0, row1 = strip_of(bound, rows_at, n_rows, y0), strip_of(bound, rows_at, n_rows, y1)
            is_same = (
                is_same
                and column0 == strip_of(bound, bounds + 1, n_columns, other[0])
                and column1 == strip_of(bound, bounds + 1, n_columns, other[2])
                and row0 == strip_of(bound, rows_at, n_rows, other[1])
                and row1 == strip_of(bound, rows_at, n_rows, other[3])
            )
        for row in range(row0, row1 + 1):
            for column in range(column0, column1 + 1):
                if is_cells:
                    child = block[first + BLOCK_FIELDS + row * n_columns + column]
                if child == NO_NODE:
                    is_missing = True
                    continue
                queue[n], offset[n], proven[n] = child, at, proves
                for side in range(4):
                    region[4 * n + side] = region[own + side]
                if is_cells:
                    narrow_region(region, 4 * n, bound, bounds, n_columns, size % ROWS, column, row)
                n += 1
    return n, is_missing, is_same
