"""Match points, many messages at once: each step asks for the memory of the next ahead of its use.

Steps for a group of messages: doors of their keywords; lists, or slots of the table; slots; entries; records of the clauses
with several keywords whose signatures fit. A message's matches are written one after the other, with a gap for those whose
records are on the way.
"""

from __future__ import annotations

import numpy as np

from nearcast.boolean.frequency_grid.kernels.areas import match_area
from nearcast.boolean.frequency_grid.kernels.delta import HAS_WIDE, LATE_LEVEL_MASK, WIDE_CELL, may_hold
from nearcast.boolean.frequency_grid.kernels.keys import fold_of, list_key
from nearcast.boolean.frequency_grid.kernels.scan import check_pending, scan_late, scan_points
from nearcast.boolean.frequency_grid.layout import (
    BLOCK_SIZE,
    LEVEL_BITS,
    LEVEL_MASK,
    LINE,
    LINES_BITS,
    LINES_MASK,
    MAX_LEVEL,
    N_LATE,
    SLACK,
)
from nearcast.kernels.compile import borrow, kernel
from nearcast.kernels.hashing import home
from nearcast.kernels.keyword_sets import fill_filters, prefetch_directory
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.kernels.quadtree import column_of
from nearcast.kernels.simd import LANES, prefetch

GROUP = 16


@kernel
def find_lists(door, slot, run, frame, max_level, message_start, keyword, mx, my, first, last, width, list_at, keys, n_lists):
    """Doors, then slots: the lists each point of a group has to scan, asked for. `keys` is scratch."""
    n_owners, n_slots = door.size // 2, slot.size // 2
    has_catch_all = door[0] != 0
    n_columns = 1 << max_level
    for message in range(first, last):
        j = message - first
        begin, end = message_start[message], message_start[message + 1]
        column = column_of(mx[message], frame[0], frame[1], frame[2], n_columns)
        row = column_of(my[message], frame[3], frame[4], frame[5], n_columns)
        fold = fold_of(column, row, max_level)
        base = 2 * width * j
        n_found, n_keys = 0, 0
        for at in range(begin - 1 if has_catch_all else begin, end):
            owner = 0 if at < begin else 1 + np.int64(keyword[at])
            if owner >= n_owners:
                continue
            here = door[2 * owner]
            place = here >> LEVEL_BITS
            if place != 0 and (door[2 * owner + 1] >> fold) & 1:
                for line in range((place & LINES_MASK) + 1):
                    prefetch(run, (place >> LINES_BITS) + LINE * line)
                list_at[base + n_found] = place >> LINES_BITS
                n_found += 1
            level = here & LEVEL_MASK
            if level != 0:
                shift = max_level - level
                key = list_key(owner, ((column >> shift) << level) | (row >> shift))
                at = home(key, n_slots)
                prefetch(slot, 2 * at)
                keys[base + 2 * n_keys], keys[base + 2 * n_keys + 1] = key, at
                n_keys += 1
        n_lists[2 * j], n_lists[2 * j + 1] = n_found, n_keys
    for j in range(last - first):
        base = 2 * width * j
        n_found = n_lists[2 * j]
        for i in range(n_lists[2 * j + 1]):
            key, at = keys[base + 2 * i], keys[base + 2 * i + 1]
            while slot[2 * at] != 0 and slot[2 * at] != key:
                at = at + 1 if at + 1 < n_slots else 0
            if slot[2 * at] == key:
                place = slot[2 * at + 1]
                for line in range((place & LINES_MASK) + 1):
                    prefetch(run, (place >> LINES_BITS) + LINE * line)
                list_at[base + n_found] = place >> LINES_BITS
                n_found += 1
        n_lists[2 * j] = n_found


@kernel
def ask_for_late(level, slot, sieve, frame, max_level, message_start, keyword, mx, my, first, last, width, keys, n_keys):
    """The keys of the chains of late clauses that each point of a group may have to scan, and their slots asked for."""
    n_owners, n_slots, n_columns = level.size, slot.size // 2, 1 << max_level
    for message in range(first, last):
        j = message - first
        begin, end = message_start[message], message_start[message + 1]
        column = column_of(mx[message], frame[0], frame[1], frame[2], n_columns)
        row = column_of(my[message], frame[3], frame[4], frame[5], n_columns)
        to = 4 * width * j
        for at in range(begin - 1, end):
            owner = 0 if at < begin else 1 + np.int64(keyword[at])
            if owner >= n_owners:
                continue
            # Without a late grid it is as good as level 0, where nothing is filed.
            own_level = max(0, np.int64(level[owner] & LATE_LEVEL_MASK) - 1)
            shift = max_level - own_level
            key = list_key(owner, ((column >> shift) << own_level) | (row >> shift))
            # Written in any case, and written over if it is not there: whether it is cannot be foreseen.
            keys[to], keys[to + 1] = key, home(key, n_slots)
            to += 2 * may_hold(sieve, key)
            if level[owner] & HAS_WIDE:
                key = list_key(owner, WIDE_CELL)
                keys[to], keys[to + 1] = key, home(key, n_slots)
                to += 2
        n_keys[j] = (to - 4 * width * j) // 2
        for i in range(n_keys[j]):
            prefetch(slot, 2 * keys[4 * width * j + 2 * i + 1])


@kernel
def find_late(slot, block, n_messages, width, keys, n_keys, late_at, n_late):
    """The chains of late clauses each point of a group has to scan, asked for."""
    n_slots = slot.size // 2
    for j in range(n_messages):
        n_found = 0
        for i in range(n_keys[j]):
            key, at = keys[4 * width * j + 2 * i], keys[4 * width * j + 2 * i + 1]
            while slot[2 * at] != 0 and slot[2 * at] != key:
                at = at + 1 if at + 1 < n_slots else 0
            newest = slot[2 * at + 1] if slot[2 * at] == key else 0
            if newest != 0:
                prefetch(block, newest * BLOCK_SIZE)
                prefetch(block, newest * BLOCK_SIZE + LINE)
                late_at[2 * width * j + n_found] = newest
                n_found += 1
        n_late[j] = n_found


@kernel
def match_messages(grid, late, clauses, messages, width, first, n_out, scratch):
    """Fill the runs of every message from `first` on, writing clauses from `n_out` on.

    `width` is one more than the most keywords of a message. Stops before a group whose matches do not fit; returns the message
    it stopped before and the end of what is written.
    """
    door, slot, run = borrow(grid.door), borrow(grid.slot), borrow(grid.run)
    frame, max_level = borrow(grid.frame), grid.head[MAX_LEVEL]
    has_late = late.head[N_LATE] > 0
    late_level, late_slot, sieve, block = borrow(late.level), borrow(late.slot), borrow(late.sieve), borrow(late.block)
    message_start, keyword = borrow(messages.keyword_start), borrow(messages.keyword)
    mx, my, mx1, my1 = borrow(messages.x0), borrow(messages.y0), borrow(messages.x1), borrow(messages.y1)
    x0, y0, x1, y1 = borrow(clauses.x0), borrow(clauses.y0), borrow(clauses.x1), borrow(clauses.y1)
    sides, words = (x0, y0, x1, y1), (borrow(clauses.keyword_start), borrow(clauses.keyword))
    out, begins, ends, counters = borrow(scratch.clause), borrow(scratch.begin), borrow(scratch.end), scratch.counters
    pending = borrow(scratch.pending)
    room = min(out.size, pending.size) - SLACK
    n_messages = mx.size
    list_at, keys = np.empty(2 * width * GROUP, np.int64), np.empty(2 * width * GROUP, np.int64)
    n_lists, filters = np.empty(2 * GROUP, np.int64), np.zeros(LANES * GROUP, np.int32)
    found, marks, n_late = np.empty(room if has_late else 0, np.int32), np.zeros(GROUP, np.int64), np.zeros(GROUP, np.int64)
    late_at = np.empty(2 * width * GROUP if has_late else 0, np.int64)
    late_keys, n_late_keys = np.empty(4 * width * GROUP + 2 if has_late else 0, np.int64), np.empty(GROUP, np.int64)
    prefetch_directory(door, message_start, keyword, first, min(first + GROUP, n_messages))
    group = first
    while group < n_messages:
        if mx[group] != mx1[group] or my[group] != my1[group]:
            begins[group] = n_out
            end, n_visited, n_tested = match_area(grid, late, clauses, messages, group, out, n_out, room)
            if end < 0:
                return group, n_out
            ends[group] = end
            counters[NODES] += n_visited
            counters[CANDIDATES] += n_tested
            group, n_out = group + 1, end
            continue
        last = group + 1
        while last < n_messages and last - group < GROUP and mx[last] == mx1[last] and my[last] == my1[last]:
            last += 1
        if has_late:
            ask_for_late(
                late_level,
                late_slot,
                sieve,
                frame,
                max_level,
                message_start,
                keyword,
                mx,
                my,
                group,
                last,
                width,
                late_keys,
                n_late_keys,
            )
        fill_filters(message_start, keyword, group, last, filters)
        find_lists(
            door, slot, run, frame, max_level, message_start, keyword, mx, my, group, last, width, list_at, keys, n_lists
        )
        prefetch_directory(door, message_start, keyword, last, min(last + GROUP, n_messages))
        marks[:] = 0
        n_candidates = 0
        if has_late:
            find_late(late_slot, block, last - group, width, late_keys, n_late_keys, late_at, n_late)
            n_candidates = scan_late(
                block,
                late_at,
                n_late,
                width,
                mx,
                my,
                group,
                last,
                filters,
                x0,
                y0,
                x1,
                y1,
                words,
                message_start,
                keyword,
                found,
                marks,
            )
            if n_candidates < 0:
                return group, n_out
        end, n_pending, n_tested = scan_points(
            run,
            mx,
            my,
            group,
            last,
            list_at,
            n_lists,
            width,
            filters,
            x0,
            y0,
            x1,
            y1,
            found,
            marks,
            out,
            n_out,
            begins,
            ends,
            pending,
            room,
        )
        if end < 0:
            return group, n_out
        if n_pending > 0:
            check_pending(run, pending, marks, mx, my, group, last, sides, words, message_start, keyword, out, ends)
        for j in range(last - group):
            counters[NODES] += n_lists[2 * j] + n_late[j]
        counters[CANDIDATES] += n_candidates + n_tested
        group, n_out = last, end
    return n_messages, n_out
