"""What a move changes: the live messages in only one of two boxes, for a group of clauses at once.

Steps for a group of clauses: records, boxes and directory entries; slots of the table; blocks; keywords of the messages to
check. Each step prefetches the memory of the next one.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.hashing import find, home
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.kernels.simd import prefetch
from nearcast.moving.moving_grid.kernels.candidates import add_range_messages, filter_by_keywords, filter_by_mask, scan_lists
from nearcast.moving.moving_grid.kernels.keys import fine_column, list_key
from nearcast.moving.moving_grid.kernels.lists import blocks_of
from nearcast.moving.moving_grid.layout import (
    ALL_CLASSES,
    ANCHOR,
    BLOCK,
    BLOCK_SHIFT,
    CLASSES_MASK,
    FINE,
    GROUP,
    LEVEL_BITS,
    LEVEL_MASK,
    MESSAGE_BITS,
    NO_CAPACITY,
    RECORD,
    SLACK,
)

# This many cache lines of a list are prefetched.
_LINES_AHEAD = 8


@kernel
def prefetch_clauses(record, x0, y0, x1, y1, slots, first, last):
    """Prefetch the records and boxes of these clauses."""
    for i in range(first, last):
        clause = slots[i]
        prefetch(record, RECORD * np.int64(clause))
        prefetch(x0, clause)
        prefetch(y0, clause)
        prefetch(x1, clause)
        prefetch(y1, clause)


@kernel
def write_box_pairs(x0, y0, x1, y1, boxes, is_move, slots, first, n, old, new):
    """Copy the old and the new boxes of a group."""
    gx0, gy0, gx1, gy1 = boxes
    filed, requested = (old, new) if is_move else (new, old)
    for j in range(n):
        clause, i = slots[first + j], first + j
        filed[4 * j], filed[4 * j + 1], filed[4 * j + 2], filed[4 * j + 3] = x0[clause], y0[clause], x1[clause], y1[clause]
        requested[4 * j], requested[4 * j + 1], requested[4 * j + 2], requested[4 * j + 3] = gx0[i], gy0[i], gx1[i], gy1[i]


@inline_kernel
def cells_of(frame, shift, box, j):
    """The columns and rows of a level that box j covers, first and last; none for an empty box."""
    if box[4 * j] > box[4 * j + 2]:
        return np.int64(1 << FINE), np.int64(-1), np.int64(1 << FINE), np.int64(-1)
    return (
        fine_column(box[4 * j], frame, 0) >> shift,
        fine_column(box[4 * j + 2], frame, 0) >> shift,
        fine_column(box[4 * j + 1], frame, 3) >> shift,
        fine_column(box[4 * j + 3], frame, 3) >> shift,
    )


@kernel
def find_cells(directory, slot, frame, record, slots, first, n, old, new, key, lists, list_end, has_ranges):
    """Find the lists that may have points in only one box of a clause; returns how many, or NO_CAPACITY.

    A cell between the outermost columns and rows of both boxes has only points in both. `has_ranges` is set for clauses with
    range messages.
    """
    directory, slot, record, slots = borrow(directory), borrow(slot), borrow(record), borrow(slots)
    old, new, key, lists = borrow(old), borrow(new), borrow(key), borrow(lists)
    list_end, has_ranges, frame = borrow(list_end), borrow(has_ranges), borrow(frame)
    n_slots, n_lists = slot.size // 2, np.int64(0)
    for j in range(n):
        at = RECORD * np.int64(slots[first + j])
        prefetch(directory, 2 * np.int64(record[at + ANCHOR]))
    for j in range(n):
        at = RECORD * np.int64(slots[first + j])
        anchor = np.int64(record[at + ANCHOR])
        flags = directory[2 * anchor + 1]
        level = flags & LEVEL_MASK
        has_ranges[j] = (flags >> LEVEL_BITS) & CLASSES_MASK != 0
        if level == 0:
            if n_lists == key.size:
                return np.int64(NO_CAPACITY)
            key[n_lists], lists[n_lists] = 0, directory[2 * anchor]
            n_lists += 1
            list_end[j] = n_lists
            continue
        shift = FINE - level
        a0, a1, c0, c1 = cells_of(frame, shift, old, j)
        b0, b1, d0, d1 = cells_of(frame, shift, new, j)
        for column in range(min(a0, b0), max(a1, b1) + 1):
            in_a, in_b = a0 <= column and column <= a1, b0 <= column and column <= b1
            is_inner = a0 < column and column < a1 and b0 < column and column < b1
            low, high = d0, d1
            if in_a:
                low, high = (min(c0, d0), max(c1, d1)) if in_b else (c0, c1)
            row = low
            while row <= high and (in_a or in_b):
                if is_inner and c0 < row and row < c1 and d0 < row and row < d1:
                    row = min(c1, d1)
                if (in_a and c0 <= row and row <= c1) or (in_b and d0 <= row and row <= d1):
                    if n_lists == key.size:
                        return np.int64(NO_CAPACITY)
                    cell_key = list_key(anchor, level, level, column << shift, row << shift)
                    first_slot = home(cell_key, n_slots)
                    prefetch(slot, 2 * first_slot)
                    key[n_lists], lists[n_lists] = cell_key, first_slot
                    n_lists += 1
                row += 1
        list_end[j] = n_lists
    return n_lists


@kernel
def find_lists(slot, pool, key, lists, n_lists):
    """Replace slots by their lists, and prefetch these."""
    slot, pool, key, lists = borrow(slot), borrow(pool), borrow(key), borrow(lists)
    for i in range(n_lists):
        value = lists[i]
        if key[i] != 0:
            at = find(slot, key[i], lists[i])
            value = slot[2 * at + 1] if slot[2 * at] == key[i] else np.int64(0)
            lists[i] = value
        at = (value >> BLOCK_SHIFT) * BLOCK
        for line in range(min(_LINES_AHEAD, blocks_of(value, MESSAGE_BITS))):
            prefetch(pool, at + BLOCK * line)


@kernel
def find_move_changes(
    grid, frame, clauses, live, keyword_lines, masks, record, slots, boxes, is_move, first, last, n_left, n_entered, output
):
    """Find the messages of clauses `first` to `last`: those in the old box only (left), those in the new box only (entered).

    With `is_move` the new boxes are `boxes` and the old ones those of the clauses; else the new ones are those of the clauses
    and the old ones `boxes`. Messages are written from `n_left` and `n_entered` on. Stops before a group whose results do not
    fit; returns the clause it stopped before and the ends of what is written.
    """
    grid, clauses, live, output = borrow(grid), borrow(clauses), borrow(live), borrow(output)
    keyword_lines, masks, record, slots = borrow(keyword_lines), borrow(masks), borrow(record), borrow(slots)
    boxes, frame = borrow(boxes), borrow(frame)
    directory, slot, pool = grid.directory, grid.slot, grid.pool
    x0, y0, x1, y1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    clause_keywords = (clauses.keyword_start, clauses.keyword)
    messages = (live.keyword_first, live.n_keywords, live.keyword)
    left, entered = output.left, output.entered
    key, lists, counters = output.key, output.lists, output.counters
    capacity = min(left.message.size, entered.message.size) - SLACK
    has_any_range, alive_bits = grid.head[ALL_CLASSES] != 0, live.alive_bits
    list_end, has_ranges = np.empty(GROUP, np.int64), np.empty(GROUP, np.uint8)
    old, new = np.empty(4 * GROUP), np.empty(4 * GROUP)
    prefetch_clauses(record, x0, y0, x1, y1, slots, first, min(first + GROUP, last))
    for group in range(first, last, GROUP):
        n = min(GROUP, last - group)
        prefetch_clauses(record, x0, y0, x1, y1, slots, group + n, min(group + n + GROUP, last))
        write_box_pairs(x0, y0, x1, y1, boxes, is_move, slots, group, n, old, new)
        n_lists = find_cells(directory, slot, frame, record, slots, group, n, old, new, key, lists, list_end, has_ranges)
        if n_lists == NO_CAPACITY:
            return group, n_left, n_entered
        find_lists(slot, pool, key, lists, n_lists)
        capacity_left = capacity - max(n_left, n_entered)
        n_tested = scan_lists(pool, frame, key, lists, list_end, n, old, new, live, left, entered, capacity_left)
        if n_tested == NO_CAPACITY:
            return group, n_left, n_entered
        to_left = filter_by_mask(record, slots, group, n, alive_bits, masks, keyword_lines, left, n_left)
        to_entered = filter_by_mask(record, slots, group, n, alive_bits, masks, keyword_lines, entered, n_entered)
        to_left = filter_by_keywords(record, slots, group, n, clause_keywords, messages, keyword_lines, left, to_left)
        to_entered = filter_by_keywords(record, slots, group, n, clause_keywords, messages, keyword_lines, entered, to_entered)
        if has_any_range:
            to_left, n_more = add_range_messages(
                grid, frame, clauses, live, record, slots, group, n, has_ranges, new, old, left, to_left, capacity
            )
            n_tested += n_more
            if to_left == NO_CAPACITY:
                return group, n_left, n_entered
            to_entered, n_more = add_range_messages(
                grid, frame, clauses, live, record, slots, group, n, has_ranges, old, new, entered, to_entered, capacity
            )
            n_tested += n_more
            if to_entered == NO_CAPACITY:
                return group, n_left, n_entered
        n_left, n_entered = to_left, to_entered
        counters[NODES] += n_lists
        counters[CANDIDATES] += n_tested
    return last, n_left, n_entered
