"""What a move changes: the living messages in the one of two boxes and not in the other, many clauses at once.

Steps for a group of clauses: records, boxes and doors; slots of the table; blocks; keywords of the messages that have to be
checked. Each step asks for the memory of the next ahead of its use.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.hashing import find, home
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.kernels.simd import prefetch
from nearcast.moving.moving_grid.kernels.candidates import add_areas, check_words, keep_fitting, scan_lists
from nearcast.moving.moving_grid.kernels.keys import fine_column, list_key
from nearcast.moving.moving_grid.kernels.lists import blocks_of
from nearcast.moving.moving_grid.layout import (
    ALL_CLASSES,
    BLOCK,
    CLASSES_MASK,
    FINE,
    GROUP,
    LEVEL_BITS,
    LEVEL_MASK,
    MESSAGE_BITS,
    NO_ROOM,
    OWNER,
    PLACE_SHIFT,
    RECORD,
    SLACK,
)

# Lines of a list that are asked for ahead.
_LINES_AHEAD = 8


@kernel
def ask_for_clauses(record, x0, y0, x1, y1, slots, first, last):
    """Ask for the records and boxes of some clauses."""
    for i in range(first, last):
        clause = slots[i]
        prefetch(record, RECORD * np.int64(clause))
        prefetch(x0, clause)
        prefetch(y0, clause)
        prefetch(x1, clause)
        prefetch(y1, clause)


@kernel
def write_boxes(x0, y0, x1, y1, given, is_move, slots, first, n, old, new):
    """The old and the new boxes of a group, side by side."""
    gx0, gy0, gx1, gy1 = given
    own, other = (old, new) if is_move else (new, old)
    for j in range(n):
        clause, i = slots[first + j], first + j
        own[4 * j], own[4 * j + 1], own[4 * j + 2], own[4 * j + 3] = x0[clause], y0[clause], x1[clause], y1[clause]
        other[4 * j], other[4 * j + 1], other[4 * j + 2], other[4 * j + 3] = gx0[i], gy0[i], gx1[i], gy1[i]


@inline_kernel
def cells_of(frame, shift, box, j):
    """The columns and rows of a level that box j reaches, first and last; of nothing, nothing."""
    if box[4 * j] > box[4 * j + 2]:
        return np.int64(1 << FINE), np.int64(-1), np.int64(1 << FINE), np.int64(-1)
    return (
        fine_column(box[4 * j], frame, 0) >> shift,
        fine_column(box[4 * j + 2], frame, 0) >> shift,
        fine_column(box[4 * j + 1], frame, 3) >> shift,
        fine_column(box[4 * j + 3], frame, 3) >> shift,
    )


@kernel
def find_cells(door, slot, frame, record, slots, first, n, old, new, key, lists, list_end, has_areas):
    """The keys and lists that may hold points in one box of a clause and not in the other; returns how many, or NO_ROOM.

    A cell between the outermost columns and rows of both boxes has only points in both. `has_areas` tells for which clauses
    there are messages with an area.
    """
    door, slot, record, slots = borrow(door), borrow(slot), borrow(record), borrow(slots)
    old, new, key, lists = borrow(old), borrow(new), borrow(key), borrow(lists)
    list_end, has_areas, frame = borrow(list_end), borrow(has_areas), borrow(frame)
    n_slots, n_lists = slot.size // 2, np.int64(0)
    for j in range(n):
        at = RECORD * np.int64(slots[first + j])
        prefetch(door, 2 * np.int64(record[at + OWNER]))
    for j in range(n):
        at = RECORD * np.int64(slots[first + j])
        owner = np.int64(record[at + OWNER])
        here = door[2 * owner + 1]
        level = here & LEVEL_MASK
        has_areas[j] = (here >> LEVEL_BITS) & CLASSES_MASK != 0
        if level == 0:
            if n_lists == key.size:
                return np.int64(NO_ROOM)
            key[n_lists], lists[n_lists] = 0, door[2 * owner]
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
                        return np.int64(NO_ROOM)
                    wanted = list_key(owner, level, level, column << shift, row << shift)
                    first_slot = home(wanted, n_slots)
                    prefetch(slot, 2 * first_slot)
                    key[n_lists], lists[n_lists] = wanted, first_slot
                    n_lists += 1
                row += 1
        list_end[j] = n_lists
    return n_lists


@kernel
def find_lists(slot, pool, key, lists, n_lists):
    """Replace slots by the lists they lead to, and ask for these."""
    slot, pool, key, lists = borrow(slot), borrow(pool), borrow(key), borrow(lists)
    for i in range(n_lists):
        value = lists[i]
        if key[i] != 0:
            at = find(slot, key[i], lists[i])
            value = slot[2 * at + 1] if slot[2 * at] == key[i] else np.int64(0)
            lists[i] = value
        at = (value >> PLACE_SHIFT) * BLOCK
        for line in range(min(_LINES_AHEAD, blocks_of(value, MESSAGE_BITS))):
            prefetch(pool, at + BLOCK * line)


@kernel
def find_differences(
    side, frame, clauses, live, words, masks, record, slots, given, is_move, first, last, n_left, n_entered, found
):
    """Fill the runs of clauses `first` to `last`: messages of the old box only (left), of the new box only (entered).

    With `is_move` the new boxes are `given` and the old ones those of the clauses; else the new ones are those of the clauses
    and the old ones `given`. Messages are written from `n_left` and `n_entered` on. Stops before a group whose results do not
    fit; returns the clause it stopped before and the ends of what is written.
    """
    side, clauses, live, found = borrow(side), borrow(clauses), borrow(live), borrow(found)
    words, masks, record, slots = borrow(words), borrow(masks), borrow(record), borrow(slots)
    given, frame = borrow(given), borrow(frame)
    door, slot, pool = side.door, side.slot, side.pool
    x0, y0, x1, y1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    clause_words = (clauses.keyword_start, clauses.keyword)
    messages = (live.keyword_first, live.n_keywords, live.keyword)
    left, entered = found.left, found.entered
    key, lists, counters = found.key, found.lists, found.counters
    room = min(left.message.size, entered.message.size) - SLACK
    has_any_area, alive_bits = side.head[ALL_CLASSES] != 0, live.alive_bits
    list_end, has_areas = np.empty(GROUP, np.int64), np.empty(GROUP, np.uint8)
    old, new = np.empty(4 * GROUP), np.empty(4 * GROUP)
    ask_for_clauses(record, x0, y0, x1, y1, slots, first, min(first + GROUP, last))
    for group in range(first, last, GROUP):
        n = min(GROUP, last - group)
        ask_for_clauses(record, x0, y0, x1, y1, slots, group + n, min(group + n + GROUP, last))
        write_boxes(x0, y0, x1, y1, given, is_move, slots, group, n, old, new)
        n_lists = find_cells(door, slot, frame, record, slots, group, n, old, new, key, lists, list_end, has_areas)
        if n_lists == NO_ROOM:
            return group, n_left, n_entered
        find_lists(slot, pool, key, lists, n_lists)
        room_left = room - max(n_left, n_entered)
        n_tested = scan_lists(pool, frame, key, lists, list_end, n, old, new, live, left, entered, room_left)
        if n_tested == NO_ROOM:
            return group, n_left, n_entered
        to_left = keep_fitting(record, slots, group, n, alive_bits, masks, words, left, n_left)
        to_entered = keep_fitting(record, slots, group, n, alive_bits, masks, words, entered, n_entered)
        to_left = check_words(record, slots, group, n, clause_words, messages, words, left, to_left)
        to_entered = check_words(record, slots, group, n, clause_words, messages, words, entered, to_entered)
        if has_any_area:
            to_left, n_more = add_areas(
                side, frame, clauses, live, record, slots, group, n, has_areas, new, old, left, to_left, room
            )
            n_tested += n_more
            if to_left == NO_ROOM:
                return group, n_left, n_entered
            to_entered, n_more = add_areas(
                side, frame, clauses, live, record, slots, group, n, has_areas, old, new, entered, to_entered, room
            )
            n_tested += n_more
            if to_entered == NO_ROOM:
                return group, n_left, n_entered
        n_left, n_entered = to_left, to_entered
        counters[NODES] += n_lists
        counters[CANDIDATES] += n_tested
    return last, n_left, n_entered
