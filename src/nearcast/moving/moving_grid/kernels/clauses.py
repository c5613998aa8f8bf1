"""File clauses at their lower left corner, under their rarest keyword; remove them; move them."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.hashing import find, home, insert, remove
from nearcast.kernels.simd import prefetch
from nearcast.moving.moving_grid.kernels.keys import (
    cell_coordinate,
    fine_column,
    fine_coordinate,
    list_key,
    mask_bit,
    packed_corner,
    rarest_anchor,
    signature_of,
    size_class,
)
from nearcast.moving.moving_grid.kernels.lists import (
    close_gap,
    entry_position,
    first_block,
    free_blocks,
    has_slots,
    is_full,
    next_capacity,
    resize_list,
)
from nearcast.moving.moving_grid.layout import (
    ALL_CLASSES,
    ANCHOR,
    BLOCK,
    CLAUSE_BITS,
    CLAUSES,
    COUNT_SHIFT,
    FINE,
    LEVEL_BITS,
    LEVEL_MASK,
    MASK,
    MORE_KEYWORDS,
    MOST_LEVELS,
    N_ENTRIES,
    N_FILED,
    N_KEYS,
    N_OTHERS,
    N_OUTSIDE,
    NEEDS_KEYWORDS,
    NO_CAPACITY,
    NO_KEYWORD,
    ONE_ENTRY,
    OTHERS,
    POSITION,
    RECORD,
    SIGNATURE,
    SIGNATURES,
    SIZE_MASK,
)

_AHEAD = 16


@kernel
def write_records(keyword_start, keyword, frequency, reserved_bit, slots, record):
    """Choose the anchor of each clause and write its record: what the other keywords require."""
    for i in range(slots.size):
        clause = slots[i]
        anchor = rarest_anchor(keyword_start, keyword, frequency, clause)
        at = RECORD * np.int64(clause)
        record[at + ANCHOR] = anchor
        record[at + SIGNATURE] = signature_of(keyword_start, keyword, anchor, clause)
        mask, n_others = np.int64(0), 0
        for field in range(N_OTHERS):
            record[at + OTHERS + field] = NO_KEYWORD
        for position in range(keyword_start[clause], keyword_start[clause + 1]):
            if 1 + keyword[position] == anchor:
                continue
            mask |= mask_bit(reserved_bit, keyword[position])
            if keyword[position] >= reserved_bit.size or reserved_bit[keyword[position]] == 0:
                mask |= NEEDS_KEYWORDS
            if n_others < N_OTHERS:
                record[at + OTHERS + n_others] = keyword[position]
            else:
                record[at + RECORD - 1] = MORE_KEYWORDS
            n_others += 1
        record[at + MASK] = mask


@inline_kernel
def write_entry(pool, at, frame, x0, y0, x1, y1, fit, column, row):
    """Write the coordinates of the clause at `at`, in the cell of class `fit` that contains a fine column and row."""
    left, below = (column >> (FINE - fit)) << (FINE - fit), (row >> (FINE - fit)) << (FINE - fit)
    low_x = cell_coordinate(fine_coordinate(x0, frame, 0), left, fit)
    low_y = cell_coordinate(fine_coordinate(y0, frame, 3), below, fit)
    high_x = cell_coordinate(fine_coordinate(x1, frame, 0), left, fit)
    high_y = cell_coordinate(fine_coordinate(y1, frame, 3), below, fit)
    pool[at], pool[at + 4] = packed_corner(low_x, low_y), packed_corner(65535 - high_x, 65535 - high_y)


@kernel
def file_clause(grid, frame, x0, y0, x1, y1, record, clause):
    """File one clause; returns the new number of entries of its anchor, or NO_CAPACITY."""
    directory, slot, pool, free, span, head = grid.directory, grid.slot, grid.pool, grid.free, grid.span, grid.head
    at = RECORD * np.int64(clause)
    anchor = np.int64(record[at + ANCHOR])
    column, row = fine_column(x0, frame, 0), fine_column(y0, frame, 3)
    n_columns, n_rows = fine_column(x1, frame, 0) - column, fine_column(y1, frame, 3) - row
    level = directory[2 * anchor + 1] & LEVEL_MASK
    fit = size_class(n_columns, n_rows, level)
    if not has_slots(slot, head, 1):
        return np.int64(NO_CAPACITY)
    holder, index = directory, 2 * anchor
    if fit > 0:
        key = list_key(anchor, fit, fit, column, row)
        at_key, is_new = insert(slot, key, home(key, slot.size // 2))
        head[N_KEYS] += is_new
        holder, index = slot, 2 * at_key + 1
    value = holder[index]
    if is_full(value, CLAUSE_BITS):
        wider = resize_list(pool, free, head, value, next_capacity(value), CLAUSE_BITS)
        if wider == NO_CAPACITY:
            if value == 0 and fit > 0:
                remove(slot, index // 2)
                head[N_KEYS] -= 1
            return np.int64(NO_CAPACITY)
        value = wider
        for entry in range(value & SIZE_MASK):
            entry_at = entry_position(value, CLAUSE_BITS, entry)
            record[RECORD * np.int64(pool[entry_at + CLAUSES]) + POSITION] = entry_at
    entry_at = entry_position(value, CLAUSE_BITS, value & SIZE_MASK)
    write_entry(pool, entry_at, frame, x0, y0, x1, y1, fit, column, row)
    pool[entry_at + SIGNATURES] = record[at + SIGNATURE]
    pool[entry_at + CLAUSES] = clause
    holder[index] = value + 1
    record[at + POSITION] = entry_at
    span[2 * fit], span[2 * fit + 1] = max(span[2 * fit], n_columns), max(span[2 * fit + 1], n_rows)
    directory[2 * anchor + 1] = (directory[2 * anchor + 1] | (1 << (LEVEL_BITS + fit))) + ONE_ENTRY
    head[ALL_CLASSES] |= 1 << fit
    head[N_ENTRIES] += 1
    head[N_FILED] += 1
    head[N_OUTSIDE] += x0 < frame[0] or y0 < frame[3] or x1 > frame[1] or y1 > frame[4]
    return directory[2 * anchor + 1] >> COUNT_SHIFT


@kernel
def unfile_clause(grid, frame, x0, y0, x1, y1, record, clause):
    """Remove a clause that was filed with this box; returns the new number of entries of its anchor."""
    directory, slot, pool, free, head = grid.directory, grid.slot, grid.pool, grid.free, grid.head
    at = RECORD * np.int64(clause)
    anchor = np.int64(record[at + ANCHOR])
    column, row = fine_column(x0, frame, 0), fine_column(y0, frame, 3)
    n_columns, n_rows = fine_column(x1, frame, 0) - column, fine_column(y1, frame, 3) - row
    fit = size_class(n_columns, n_rows, directory[2 * anchor + 1] & LEVEL_MASK)
    holder, index = directory, 2 * anchor
    if fit > 0:
        key = list_key(anchor, fit, fit, column, row)
        holder, index = slot, 2 * find(slot, key, home(key, slot.size // 2)) + 1
    value = holder[index]
    entry_at = np.int64(record[at + POSITION])
    entry = 4 * (entry_at // BLOCK - first_block(value)) + (entry_at & 3)
    if value & SIZE_MASK == 1:
        free_blocks(pool, free, value)
        if fit > 0:
            remove(slot, index // 2)
            head[N_KEYS] -= 1
        else:
            holder[index] = 0
    else:
        holder[index] = close_gap(pool, value, entry)
        # The last entry of the list stands here now; it may be the removed one itself.
        record[RECORD * np.int64(pool[entry_at + CLAUSES]) + POSITION] = entry_at
    directory[2 * anchor + 1] -= ONE_ENTRY
    head[N_ENTRIES] -= 1
    return directory[2 * anchor + 1] >> COUNT_SHIFT


@kernel
def file_clauses(grid, frame, clauses, record, slots, first, to_relevel):
    """File clauses from `first` on; returns the position at which capacity ran out, or the end.

    Anchors whose grid needs another level go to `to_relevel`; `to_relevel[0]` counts them.
    """
    x0, y0, x1, y1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    directory, limit = grid.directory, grid.limit
    for i in range(first, slots.size):
        clause = slots[i]
        count = file_clause(grid, frame, x0[clause], y0[clause], x1[clause], y1[clause], record, clause)
        if count == NO_CAPACITY:
            return i
        anchor = record[RECORD * np.int64(clause) + ANCHOR]
        if count == limit[MOST_LEVELS + 1 + (directory[2 * anchor + 1] & LEVEL_MASK)]:
            to_relevel[0] += 1
            to_relevel[to_relevel[0]] = anchor
    return slots.size


@kernel
def unfile_clauses(grid, frame, clauses, record, slots, to_relevel):
    """Remove clauses."""
    x0, y0, x1, y1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    directory, limit = grid.directory, grid.limit
    for i in range(slots.size):
        clause = slots[i]
        count = unfile_clause(grid, frame, x0[clause], y0[clause], x1[clause], y1[clause], record, clause)
        anchor = record[RECORD * np.int64(clause) + ANCHOR]
        level = directory[2 * anchor + 1] & LEVEL_MASK
        if level > 0 and count == limit[level] >> 3:
            to_relevel[0] += 1
            to_relevel[to_relevel[0]] = anchor


@kernel
def move_clauses(grid, frame, clauses, record, slots, to, first, last):
    """Give clauses new boxes, also in their store; returns the position at which capacity ran out, or `last`.

    Most clauses stay in their cell: then only the entry is overwritten.
    """
    grid, frame, clauses, record = borrow(grid), borrow(frame), borrow(clauses), borrow(record)
    slots, to = borrow(slots), borrow(to)
    x0, y0, x1, y1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    to_x0, to_y0, to_x1, to_y1 = to
    directory, span, pool = grid.directory, grid.span, grid.pool
    for i in range(first, last):
        if i + _AHEAD < last:
            ahead = slots[i + _AHEAD]
            at = RECORD * np.int64(ahead)
            prefetch(pool, record[at + POSITION])
            prefetch(directory, 2 * np.int64(record[at + ANCHOR]))
            prefetch(x0, ahead)
            prefetch(y0, ahead)
            prefetch(x1, ahead)
            prefetch(y1, ahead)
        if i + 2 * _AHEAD < last:
            prefetch(record, RECORD * np.int64(slots[i + 2 * _AHEAD]))
        clause = slots[i]
        at = RECORD * np.int64(clause)
        anchor = np.int64(record[at + ANCHOR])
        level = directory[2 * anchor + 1] & LEVEL_MASK
        ox0, oy0, ox1, oy1 = x0[clause], y0[clause], x1[clause], y1[clause]
        nx0, ny0, nx1, ny1 = to_x0[i], to_y0[i], to_x1[i], to_y1[i]
        is_same, fit, column, row = level == 0, 0, np.int64(0), np.int64(0)
        if not is_same:
            column, row = fine_column(nx0, frame, 0), fine_column(ny0, frame, 3)
            n_columns, n_rows = fine_column(nx1, frame, 0) - column, fine_column(ny1, frame, 3) - row
            was_column, was_row = fine_column(ox0, frame, 0), fine_column(oy0, frame, 3)
            was = size_class(fine_column(ox1, frame, 0) - was_column, fine_column(oy1, frame, 3) - was_row, level)
            fit = size_class(n_columns, n_rows, level)
            is_same = fit == was and (
                fit == 0 or list_key(0, fit, fit, column, row) == list_key(0, was, was, was_column, was_row)
            )
            if is_same:
                span[2 * fit], span[2 * fit + 1] = (
                    max(span[2 * fit], n_columns),
                    max(span[2 * fit + 1], n_rows),
                )
        if is_same:
            write_entry(pool, np.int64(record[at + POSITION]), frame, nx0, ny0, nx1, ny1, fit, column, row)
        else:
            # Filed before it is removed: if capacity is short, nothing has changed yet. The two lists are different ones.
            was_at = record[at + POSITION]
            if file_clause(grid, frame, nx0, ny0, nx1, ny1, record, clause) == NO_CAPACITY:
                return i
            is_at, record[at + POSITION] = record[at + POSITION], was_at
            unfile_clause(grid, frame, ox0, oy0, ox1, oy1, record, clause)
            record[at + POSITION] = is_at
        x0[clause], y0[clause], x1[clause], y1[clause] = nx0, ny0, nx1, ny1
    return last
