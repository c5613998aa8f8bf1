"""The grid level of each keyword: the one with the least expected work, where copies have a cost too.

A list without a cell costs its whole length whenever a message has the keyword. A grid of 2^L columns and rows costs a look-up
and the clauses that meet the cell of the message. Every further copy of a clause costs memory; `copy_cost` puts that in the
same unit, tests of a candidate.
"""

from __future__ import annotations

import numpy as np

from nearcast.boolean.frequency_grid.layout import LEAST_LEVEL, MOST_LEVELS
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.quadtree import column_of

_SAMPLE = 4000
_LEAST_CELL_LIMIT = 64.0
_COLUMN_MASK = (1 << 16) - 1


@inline_kernel
def first_column(cells):
    return cells & _COLUMN_MASK


@inline_kernel
def first_row(cells):
    return (cells >> 16) & _COLUMN_MASK


@inline_kernel
def last_column(cells):
    return (cells >> 32) & _COLUMN_MASK


@inline_kernel
def last_row(cells):
    return cells >> 48


@inline_kernel
def cells_of(frame, n_columns, x0, y0, x1, y1):
    """The first and last column and row of a box at the finest level, in one integer."""
    a = column_of(x0, frame[0], frame[1], frame[2], n_columns)
    b = column_of(y0, frame[3], frame[4], frame[5], n_columns)
    c = column_of(x1, frame[0], frame[1], frame[2], n_columns)
    d = column_of(y1, frame[3], frame[4], frame[5], n_columns)
    return np.int64(a) | (np.int64(b) << 16) | (np.int64(c) << 32) | (np.int64(d) << 48)


@kernel
def fill_cells(clauses, frame, max_level, order, cells):
    """The cells of the clauses, in the order of their anchors."""
    x0, y0, x1, y1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    n_columns = 1 << max_level
    for i in range(order.size):
        c = order[i]
        cells[i] = cells_of(frame, n_columns, x0[c], y0[c], x1[c], y1[c])


@inline_kernel
def share_before(share_below, n, i, j):
    """The share of messages left of and below a location given in columns and rows, with fractions."""
    column, row = min(int(i), n - 1), min(int(j), n - 1)
    u, v = i - column, j - row
    at = column * (n + 1) + row
    before = share_below[at] * (1.0 - v) + share_below[at + 1] * v
    after = share_below[at + n + 1] * (1.0 - v) + share_below[at + n + 2] * v
    return before * (1.0 - u) + after * u


@inline_kernel
def n_cells_at(cells, shift):
    """How many cells a box meets, `shift` levels above the finest."""
    n_columns = (last_column(cells) >> shift) - (first_column(cells) >> shift) + 1
    n_rows = (last_row(cells) >> shift) - (first_row(cells) >> shift) + 1
    return n_columns * n_rows


@inline_kernel
def cell_limit_of(keyword_share, copy_cost):
    """A clause over more cells than this is cheaper in the list without a cell."""
    return max(_LEAST_CELL_LIMIT, keyword_share / copy_cost)


@kernel
def fill_cell_limits(keyword_share, copy_cost, cell_limit):
    for anchor in range(cell_limit.size):
        cell_limit[anchor] = cell_limit_of(np.float64(keyword_share[anchor]), copy_cost)


@kernel
def choose_levels(anchor_start, cells, estimate, max_level, probe_cost, copy_cost, level):
    """Fill `level`: 0 for a plain list, else the level of the anchor's grid. Long lists are estimated from a sample."""
    keyword_share, share_below = estimate.keyword_share, estimate.share_below
    n = int(np.sqrt(np.float64(share_below.size))) - 1
    copies, tests = np.zeros(MOST_LEVELS + 1), np.zeros(MOST_LEVELS + 1)
    for anchor in range(anchor_start.size - 1):
        begin, end = anchor_start[anchor], anchor_start[anchor + 1]
        size, share = end - begin, np.float64(keyword_share[anchor])
        level[anchor] = 0
        best = share * size + copy_cost * size
        if best <= share * probe_cost + copy_cost * size:
            continue
        step = max(1, size // _SAMPLE)
        widest = cell_limit_of(share, copy_cost)
        copies[:] = 0.0
        tests[:] = 0.0
        n_seen = 0
        for i in range(begin, end, step):
            n_seen += 1
            for at in range(LEAST_LEVEL, max_level + 1):
                shift = max_level - at
                n_cells = n_cells_at(cells[i], shift)
                if n_cells > widest:
                    copies[at] += 1.0
                    tests[at] += 1.0
                    continue
                copies[at] += n_cells
                unit = n / (1 << at)
                left, right = (first_column(cells[i]) >> shift) * unit, ((last_column(cells[i]) >> shift) + 1) * unit
                low, high = (first_row(cells[i]) >> shift) * unit, ((last_row(cells[i]) >> shift) + 1) * unit
                tests[at] += (
                    share_before(share_below, n, right, high)
                    - share_before(share_below, n, left, high)
                    - share_before(share_below, n, right, low)
                    + share_before(share_below, n, left, low)
                )
        scale = size / n_seen
        for at in range(LEAST_LEVEL, max_level + 1):
            cost = share * (probe_cost + tests[at] * scale) + copy_cost * copies[at] * scale
            if cost < best:
                best = cost
                level[anchor] = at
