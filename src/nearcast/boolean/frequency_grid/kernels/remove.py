"""Remove clauses from built lists. What follows an entry moves up, so that matching never sees a dead clause."""

from __future__ import annotations

import numpy as np

from nearcast.boolean.frequency_grid.kernels.keys import list_key
from nearcast.boolean.frequency_grid.kernels.levels import cells_of, first_column, first_row, last_column, last_row, n_cells_at
from nearcast.boolean.frequency_grid.layout import (
    HEADER,
    LEVEL_BITS,
    LEVEL_MASK,
    LINES_BITS,
    MAX_LEVEL,
    MULTIPLE_SIZE,
    NO_LIST,
    RECORD_FIELDS,
    SINGLE_FIELDS,
)
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.hashing import find_value, home
from nearcast.kernels.keyword_sets import rarest_anchor


@inline_kernel
def close_gap(run, source, size, gap, width, to):
    """Move `size` int32 from `source` down to `to`, except for `width` of them at `gap`; returns both ends."""
    for i in range(size):
        if not gap <= i < gap + width:
            run[to] = run[source + i]
            to += 1
    return source + size, to


@kernel
def remove_from_list(run, at, clause):
    """Remove a clause from the list at `at`; returns whether it was there."""
    n_covering, n_single, n_multiple = np.int64(run[at]), np.int64(run[at + 1]), np.int64(run[at + 2])
    covering = at + HEADER
    single = covering + n_covering
    multiple = single + SINGLE_FIELDS * n_single
    records = multiple + n_multiple
    end = multiple + MULTIPLE_SIZE * n_multiple
    for i in range(n_covering):
        if run[covering + i] == clause:
            run[at] = n_covering - 1
            close_gap(run, covering, end - covering, i, 1, covering)
            return True
    for i in range(n_single):
        if run[single + 4 * n_single + i] == clause:
            run[at + 1] = n_single - 1
            source, to = single, single
            for _ in range(SINGLE_FIELDS):
                source, to = close_gap(run, source, n_single, i, 1, to)
            close_gap(run, source, end - source, 0, 0, to)
            return True
    for i in range(n_multiple):
        if run[records + RECORD_FIELDS * i] == clause:
            run[at + 2] = n_multiple - 1
            source, to = close_gap(run, multiple, n_multiple, i, 1, multiple)
            close_gap(run, source, end - source, RECORD_FIELDS * i, RECORD_FIELDS, to)
            return True
    return False


@kernel
def remove_from_lists(grid, clauses, slots):
    """Remove clauses from every list they are in, if any; returns how many copies and clauses were removed."""
    directory, slot, run, cell_limit = grid.directory, grid.slot, grid.run, grid.cell_limit
    frequency, frame, max_level = grid.frequency, grid.frame, grid.head[MAX_LEVEL]
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    x0, y0, x1, y1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    n_slots, n_copies, n_clauses = slot.size // 2, 0, 0
    for i in range(slots.size):
        clause = slots[i]
        anchor = rarest_anchor(keyword_start, keyword, frequency, clause)
        if 2 * anchor >= directory.size or directory[2 * anchor] == 0:
            continue
        before = n_copies
        level = directory[2 * anchor] & LEVEL_MASK
        shift = max_level - level
        cells = cells_of(frame, 1 << max_level, x0[clause], y0[clause], x1[clause], y1[clause])
        if level == 0 or n_cells_at(cells, shift) > cell_limit[anchor]:
            root = directory[2 * anchor] >> (LEVEL_BITS + LINES_BITS)
            if root != 0:
                n_copies += remove_from_list(run, root, clause)
            n_clauses += n_copies > before
            continue
        for column in range(first_column(cells) >> shift, (last_column(cells) >> shift) + 1):
            for row in range(first_row(cells) >> shift, (last_row(cells) >> shift) + 1):
                key = list_key(anchor, (column << level) | row)
                span = find_value(slot, key, home(key, n_slots), NO_LIST)
                if span != NO_LIST:
                    n_copies += remove_from_list(run, span >> LINES_BITS, clause)
        n_clauses += n_copies > before
    return n_copies, n_clauses
