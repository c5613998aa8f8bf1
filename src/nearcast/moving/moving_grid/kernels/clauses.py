"""File clauses at their lower left corner, under their rarest keyword; take them out; move them."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.hashing import find, home, insert, remove
from nearcast.kernels.simd import prefetch
from nearcast.moving.moving_grid.kernels.keys import (
    fine_column,
    fine_place,
    list_key,
    mask_bit,
    packed_corner,
    place_in_cell,
    rarest_owner,
    signature_of,
    size_class,
)
from nearcast.moving.moving_grid.kernels.lists import (
    close_gap,
    entry_place,
    give_back,
    has_slots,
    is_full,
    place_of,
    resized,
    wider_room,
)
from nearcast.moving.moving_grid.layout import (
    ALL_CLASSES,
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
    NEEDS_WORDS,
    NO_KEYWORD,
    NO_ROOM,
    ONE_ENTRY,
    OTHERS,
    OWNER,
    PLACE,
    RECORD,
    SIGNATURE,
    SIGNATURES,
    SIZE_MASK,
)

_AHEAD = 16


@kernel
def write_records(keyword_start, keyword, frequency, own_bit, slots, record):
    """Choose the owner of each clause and note what is asked of the others."""
    for i in range(slots.size):
        clause = slots[i]
        owner = rarest_owner(keyword_start, keyword, frequency, clause)
        at = RECORD * np.int64(clause)
        record[at + OWNER] = owner
        record[at + SIGNATURE] = signature_of(keyword_start, keyword, owner, clause)
        mask, n_others = np.int64(0), 0
        for field in range(N_OTHERS):
            record[at + OTHERS + field] = NO_KEYWORD
        for word in range(keyword_start[clause], keyword_start[clause + 1]):
            if 1 + keyword[word] == owner:
                continue
            mask |= mask_bit(own_bit, keyword[word])
            if keyword[word] >= own_bit.size or own_bit[keyword[word]] == 0:
                mask |= NEEDS_WORDS
            if n_others < N_OTHERS:
                record[at + OTHERS + n_others] = keyword[word]
            else:
                record[at + RECORD - 1] = MORE_KEYWORDS
            n_others += 1
        record[at + MASK] = mask


@inline_kernel
def write_entry(pool, at, bounds, x0, y0, x1, y1, own, column, row):
    """The coordinates of the clause that stands at `at`, in the cell of class `own` where a fine column and row are."""
    left, below = (column >> (FINE - own)) << (FINE - own), (row >> (FINE - own)) << (FINE - own)
    low_x = place_in_cell(fine_place(x0, bounds, 0), left, own)
    low_y = place_in_cell(fine_place(y0, bounds, 3), below, own)
    high_x = place_in_cell(fine_place(x1, bounds, 0), left, own)
    high_y = place_in_cell(fine_place(y1, bounds, 3), below, own)
    pool[at], pool[at + 4] = packed_corner(low_x, low_y), packed_corner(65535 - high_x, 65535 - high_y)


@kernel
def file_clause(side, bounds, x0, y0, x1, y1, record, clause):
    """File one clause: returns the new count of its owner, or NO_ROOM."""
    door, slot, pool, free, span, head = side.door, side.slot, side.pool, side.free, side.span, side.head
    at = RECORD * np.int64(clause)
    owner = np.int64(record[at + OWNER])
    column, row = fine_column(x0, bounds, 0), fine_column(y0, bounds, 3)
    n_columns, n_rows = fine_column(x1, bounds, 0) - column, fine_column(y1, bounds, 3) - row
    level = door[2 * owner + 1] & LEVEL_MASK
    own = size_class(n_columns, n_rows, level)
    if not has_slots(slot, head, 1):
        return np.int64(NO_ROOM)
    held, place = door, 2 * owner
    if own > 0:
        key = list_key(owner, own, own, column, row)
        at_key, is_new = insert(slot, key, home(key, slot.size // 2))
        head[N_KEYS] += is_new
        held, place = slot, 2 * at_key + 1
    value = held[place]
    if is_full(value, CLAUSE_BITS):
        wider = resized(pool, free, head, value, wider_room(value), CLAUSE_BITS)
        if wider == NO_ROOM:
            if value == 0 and own > 0:
                remove(slot, place // 2)
                head[N_KEYS] -= 1
            return np.int64(NO_ROOM)
        value = wider
        for entry in range(value & SIZE_MASK):
            there = entry_place(value, CLAUSE_BITS, entry)
            record[RECORD * np.int64(pool[there + CLAUSES]) + PLACE] = there
    there = entry_place(value, CLAUSE_BITS, value & SIZE_MASK)
    write_entry(pool, there, bounds, x0, y0, x1, y1, own, column, row)
    pool[there + SIGNATURES] = record[at + SIGNATURE]
    pool[there + CLAUSES] = clause
    held[place] = value + 1
    record[at + PLACE] = there
    span[2 * own], span[2 * own + 1] = max(span[2 * own], n_columns), max(span[2 * own + 1], n_rows)
    door[2 * owner + 1] = (door[2 * owner + 1] | (1 << (LEVEL_BITS + own))) + ONE_ENTRY
    head[ALL_CLASSES] |= 1 << own
    head[N_ENTRIES] += 1
    head[N_FILED] += 1
    head[N_OUTSIDE] += x0 < bounds[0] or y0 < bounds[3] or x1 > bounds[1] or y1 > bounds[4]
    return door[2 * owner + 1] >> COUNT_SHIFT


@kernel
def unfile_clause(side, bounds, x0, y0, x1, y1, record, clause):
    """Take out a clause that was filed with this box: returns the count of its owner now."""
    door, slot, pool, free, head = side.door, side.slot, side.pool, side.free, side.head
    at = RECORD * np.int64(clause)
    owner = np.int64(record[at + OWNER])
    column, row = fine_column(x0, bounds, 0), fine_column(y0, bounds, 3)
    n_columns, n_rows = fine_column(x1, bounds, 0) - column, fine_column(y1, bounds, 3) - row
    own = size_class(n_columns, n_rows, door[2 * owner + 1] & LEVEL_MASK)
    held, place = door, 2 * owner
    if own > 0:
        key = list_key(owner, own, own, column, row)
        held, place = slot, 2 * find(slot, key, home(key, slot.size // 2)) + 1
    value = held[place]
    there = np.int64(record[at + PLACE])
    entry = 4 * (there // BLOCK - place_of(value)) + (there & 3)
    if value & SIZE_MASK == 1:
        give_back(pool, free, value)
        if own > 0:
            remove(slot, place // 2)
            head[N_KEYS] -= 1
        else:
            held[place] = 0
    else:
        held[place] = close_gap(pool, value, entry)
        # The last one of the list, perhaps itself, stands here now.
        record[RECORD * np.int64(pool[there + CLAUSES]) + PLACE] = there
    door[2 * owner + 1] -= ONE_ENTRY
    head[N_ENTRIES] -= 1
    return door[2 * owner + 1] >> COUNT_SHIFT


@kernel
def file_clauses(side, bounds, clauses, record, slots, first, due):
    """File clauses from `first` on; returns where room was short, or the end. Owners that want another level go to `due`.

    `due[0]` counts them.
    """
    x0, y0, x1, y1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    door, limit = side.door, side.limit
    for i in range(first, slots.size):
        clause = slots[i]
        count = file_clause(side, bounds, x0[clause], y0[clause], x1[clause], y1[clause], record, clause)
        if count == NO_ROOM:
            return i
        owner = record[RECORD * np.int64(clause) + OWNER]
        if count == limit[MOST_LEVELS + 1 + (door[2 * owner + 1] & LEVEL_MASK)]:
            due[0] += 1
            due[due[0]] = owner
    return slots.size


@kernel
def unfile_clauses(side, bounds, clauses, record, slots, due):
    """Take clauses out."""
    x0, y0, x1, y1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    door, limit = side.door, side.limit
    for i in range(slots.size):
        clause = slots[i]
        count = unfile_clause(side, bounds, x0[clause], y0[clause], x1[clause], y1[clause], record, clause)
        owner = record[RECORD * np.int64(clause) + OWNER]
        level = door[2 * owner + 1] & LEVEL_MASK
        if level > 0 and count == limit[level] >> 3:
            due[0] += 1
            due[due[0]] = owner


@kernel
def move_clauses(side, bounds, clauses, record, slots, to, first, last):
    """Give clauses new boxes, here and in their store; returns where room was short, or `last`.

    A clause that stays in its cell, which most do, is only written over.
    """
    side, bounds, clauses, record = borrow(side), borrow(bounds), borrow(clauses), borrow(record)
    slots, to = borrow(slots), borrow(to)
    x0, y0, x1, y1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    to_x0, to_y0, to_x1, to_y1 = to
    door, span, pool = side.door, side.span, side.pool
    for i in range(first, last):
        if i + _AHEAD < last:
            ahead = slots[i + _AHEAD]
            at = RECORD * np.int64(ahead)
            prefetch(pool, record[at + PLACE])
            prefetch(door, 2 * np.int64(record[at + OWNER]))
            prefetch(x0, ahead)
            prefetch(y0, ahead)
            prefetch(x1, ahead)
            prefetch(y1, ahead)
        if i + 2 * _AHEAD < last:
            prefetch(record, RECORD * np.int64(slots[i + 2 * _AHEAD]))
        clause = slots[i]
        at = RECORD * np.int64(clause)
        owner = np.int64(record[at + OWNER])
        level = door[2 * owner + 1] & LEVEL_MASK
        ox0, oy0, ox1, oy1 = x0[clause], y0[clause], x1[clause], y1[clause]
        nx0, ny0, nx1, ny1 = to_x0[i], to_y0[i], to_x1[i], to_y1[i]
        is_same, own, column, row = level == 0, 0, np.int64(0), np.int64(0)
        if not is_same:
            column, row = fine_column(nx0, bounds, 0), fine_column(ny0, bounds, 3)
            n_columns, n_rows = fine_column(nx1, bounds, 0) - column, fine_column(ny1, bounds, 3) - row
            was_column, was_row = fine_column(ox0, bounds, 0), fine_column(oy0, bounds, 3)
            was = size_class(fine_column(ox1, bounds, 0) - was_column, fine_column(oy1, bounds, 3) - was_row, level)
            own = size_class(n_columns, n_rows, level)
            is_same = own == was and (
                own == 0 or list_key(0, own, own, column, row) == list_key(0, was, was, was_column, was_row)
            )
            if is_same:
                span[2 * own], span[2 * own + 1] = max(span[2 * own], n_columns), max(span[2 * own + 1], n_rows)
        if is_same:
            write_entry(pool, np.int64(record[at + PLACE]), bounds, nx0, ny0, nx1, ny1, own, column, row)
        else:
            # Filed first: when room is short, nothing has happened yet. The two lists are different ones.
            was_at = record[at + PLACE]
            if file_clause(side, bounds, nx0, ny0, nx1, ny1, record, clause) == NO_ROOM:
                return i
            is_at, record[at + PLACE] = record[at + PLACE], was_at
            unfile_clause(side, bounds, ox0, oy0, ox1, oy1, record, clause)
            record[at + PLACE] = is_at
        x0[clause], y0[clause], x1[clause], y1[clause] = nx0, ny0, nx1, ny1
    return last
