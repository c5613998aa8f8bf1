"""The clauses of messages, for a group of points at once: each step prefetches the memory of the next one.

Steps for a group of messages: directory entries of their keywords; slots of the table; blocks; records of clauses with
several keywords. The matches of a message are written one after the other. For clauses whose records are still being
fetched, a gap is left.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import borrow, kernel
from nearcast.kernels.hashing import find, home
from nearcast.kernels.keyword_sets import fill_filters, prefetch_directory
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.kernels.simd import LANES, append_four, four_boxes, four_signatures, lowest_lane, prefetch
from nearcast.moving.moving_grid.kernels.candidates import holds
from nearcast.moving.moving_grid.kernels.keys import (
    cell_coordinate,
    cell_of_key,
    fine_column,
    fine_coordinate,
    has_others,
    list_key,
)
from nearcast.moving.moving_grid.kernels.range_messages import match_range_message
from nearcast.moving.moving_grid.layout import (
    ALL_CLASSES,
    BLOCK,
    BLOCK_SHIFT,
    CLASSES_MASK,
    CLAUSES,
    FINE,
    GROUP,
    LEVEL_BITS,
    MOST_LEVELS,
    NO_CAPACITY,
    RECORD,
    SIGNATURES,
    SIZE_MASK,
    SLACK,
)

_FOUR = 15
_LINES_AHEAD = 8
_CELLS_OF_CLASS = 4
# A message has few matches if they are less than one of this many clauses tested.
_SPARSE = 16


@kernel
def check_exact_box(pool, at, lanes, x0, y0, x1, y1, x, y):
    """The boxes of `four_boxes` that contain the point. Those with the point on their rounded border are tested exactly."""
    unsure = lanes & ~(lanes >> 4) & _FOUR
    inside = lanes & _FOUR
    while unsure != 0:
        lane = lowest_lane(unsure)
        unsure &= unsure - 1
        clause = pool[at + CLAUSES + lane]
        if not holds(x0[clause], y0[clause], x1[clause], y1[clause], x, y):
            inside &= ~(1 << lane)
    return inside


@kernel
def find_lists(grid, frame, message_start, keyword, mx, my, first, last, key, lists, list_end):
    """Find and prefetch the lists that each point of a group must scan."""
    grid, message_start, keyword, key = borrow(grid), borrow(message_start), borrow(keyword), borrow(key)
    lists, list_end, mx, my = borrow(lists), borrow(list_end), borrow(mx), borrow(my)
    frame = borrow(frame)
    directory, slot, pool, span = grid.directory, grid.slot, grid.pool, grid.span
    n_anchors, n_slots = directory.size // 2, slot.size // 2
    n_lists = 0
    for message in range(first, last):
        begin, end = message_start[message], message_start[message + 1]
        column, row = fine_column(mx[message], frame, 0), fine_column(my[message], frame, 3)
        for at in range(begin - 1, end):
            anchor = np.int64(0) if at < begin else 1 + np.int64(keyword[at])
            if anchor >= n_anchors:
                continue
            if directory[2 * anchor] != 0:
                key[n_lists], lists[n_lists] = 0, directory[2 * anchor]
                n_lists += 1
            classes, fit = ((directory[2 * anchor + 1] >> LEVEL_BITS) & CLASSES_MASK) >> 1, 1
            while classes != 0:
                if classes & 1:
                    shift = FINE - fit
                    column0, row0 = (
                        max(column - span[2 * fit], 0) >> shift,
                        max(row - span[2 * fit + 1], 0) >> shift,
                    )
                    for across in range(column0, (column >> shift) + 1):
                        for up in range(row0, (row >> shift) + 1):
                            cell_key = list_key(anchor, fit, fit, across << shift, up << shift)
                            first_slot = home(cell_key, n_slots)
                            prefetch(slot, 2 * first_slot)
                            key[n_lists], lists[n_lists] = cell_key, first_slot
                            n_lists += 1
                classes, fit = classes >> 1, fit + 1
        list_end[message - first] = n_lists
    for i in range(n_lists):
        value = lists[i]
        if key[i] != 0:
            at = find(slot, key[i], lists[i])
            value = slot[2 * at + 1] if slot[2 * at] == key[i] else np.int64(0)
            lists[i] = value
        at = (value >> BLOCK_SHIFT) * BLOCK
        for line in range(min(_LINES_AHEAD, ((value & SIZE_MASK) + 3) >> 2)):
            prefetch(pool, at + BLOCK * line)
    return n_lists


@kernel
def scan_points(
    grid,
    frame,
    clauses,
    record,
    mx,
    my,
    first,
    last,
    key,
    lists,
    list_end,
    filters,
    out,
    n_out,
    begins,
    ends,
    pending,
    capacity,
):
    """Write the clauses without other keywords that the points of a group match, and those with others to `pending`.

    Those of message j end at `list_end[j]`. Returns the new end or NO_CAPACITY, the number of pending, clauses tested.
    """
    grid, clauses, record, out = borrow(grid), borrow(clauses), borrow(record), borrow(out)
    pending, lists, key, filters = borrow(pending), borrow(lists), borrow(key), borrow(filters)
    list_end, begins, ends, mx = borrow(list_end), borrow(begins), borrow(ends), borrow(mx)
    my, frame = borrow(my), borrow(frame)
    pool = grid.pool
    x0, y0, x1, y1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    n_pending, n_tested, at_list, n_before = np.int64(0), np.int64(0), np.int64(0), n_out
    for message in range(first, last):
        j = message - first
        # A predictable branch saves work; an unpredictable one costs more than it saves.
        is_sparse = _SPARSE * (n_out - n_before) < n_tested
        x, y = mx[message], my[message]
        fine_x, fine_y = fine_coordinate(x, frame, 0), fine_coordinate(y, frame, 3)
        begins[message], before = n_out, n_pending
        for k in range(at_list, list_end[j]):
            value = lists[k]
            size = value & SIZE_MASK
            n_tested += size
            if n_out + n_pending + size > capacity:
                return np.int64(NO_CAPACITY), n_pending, n_tested
            level, column, row = cell_of_key(key[k])
            short_x, short_y = cell_coordinate(fine_x, column, level), cell_coordinate(fine_y, row, level)
            at = (value >> BLOCK_SHIFT) * BLOCK
            for block in range(at, at + ((size + 3) >> 2) * BLOCK, BLOCK):
                lanes = four_boxes(pool, block, short_x, short_y)
                if is_sparse and lanes == 0:
                    continue
                if lanes & _FOUR != lanes >> 4:
                    lanes = check_exact_box(pool, block, lanes, x0, y0, x1, y1, x, y)
                fitting = four_signatures(pool, block + SIGNATURES, filters, LANES * j)
                lanes &= fitting & _FOUR
                n_out = append_four(pool, block + CLAUSES, lanes & ~(fitting >> 4), out, n_out)
                n_pending = append_four(pool, block + CLAUSES, lanes & (fitting >> 4), pending, n_pending)
        at_list = list_end[j]
        for k in range(before, n_pending):
            prefetch(record, RECORD * np.int64(pending[k]))
        ends[message] = n_out
        n_out += n_pending - before
        list_end[j] = n_pending
    return n_out, n_pending, n_tested


@kernel
def check_pending(record, keyword_start, keyword, message_start, message_keyword, first, last, pending, marks, out, ends):
    """Add the pending clauses whose keywords a message has to its matches. Those of message j end at `marks[j]`."""
    record, keyword_start = borrow(record), borrow(keyword_start)
    keyword, message_keyword = borrow(keyword), borrow(message_keyword)
    message_start, pending, marks, out = borrow(message_start), borrow(pending), borrow(marks), borrow(out)
    ends = borrow(ends)
    checked = 0
    for message in range(first, last):
        to = ends[message]
        begin, end = message_start[message], message_start[message + 1]
        while checked < marks[message - first]:
            clause = pending[checked]
            checked += 1
            at = RECORD * np.int64(clause)
            if has_others(record, at, keyword_start, keyword, clause, message_keyword, begin, end - begin):
                out[to] = clause
                to += 1
        ends[message] = to


@kernel
def match_messages(grid, frame, clauses, record, messages, first, n_out, output):
    """Find the clauses of each message from `first` on and write them from `n_out` on.

    Stops before a group whose matches do not fit; returns the message it stopped before and the end of what is written.
    """
    grid, clauses, messages, output = borrow(grid), borrow(clauses), borrow(messages), borrow(output)
    record, frame = borrow(record), borrow(frame)
    directory = grid.directory
    message_start, keyword = messages.keyword_start, messages.keyword
    mx, my, mx1, my1 = messages.x0, messages.y0, messages.x1, messages.y1
    keyword_start, clause_keyword = clauses.keyword_start, clauses.keyword
    out, begins, ends, pending = output.clause, output.begin, output.end, output.pending
    key, lists, counters = output.key, output.lists, output.counters
    capacity, n_messages = min(out.size, pending.size) - SLACK, mx.size
    n_classes = 0
    for fit in range(MOST_LEVELS + 1):
        n_classes += (grid.head[ALL_CLASSES] >> fit) & 1
    lists_of_anchor = 1 + _CELLS_OF_CLASS * n_classes
    list_end, filters = np.empty(GROUP, np.int64), np.zeros(LANES * GROUP, np.int32)
    prefetch_directory(directory, message_start, keyword, first, min(first + GROUP, n_messages))
    group = first
    while group < n_messages:
        if mx[group] != mx1[group] or my[group] != my1[group]:
            begins[group] = n_out
            end, n_visited, n_tested = match_range_message(grid, frame, clauses, messages, group, out, n_out, capacity)
            if end == NO_CAPACITY:
                return group, n_out
            ends[group] = end
            counters[NODES] += n_visited
            counters[CANDIDATES] += n_tested
            group, n_out = group + 1, end
            continue
        last, n_needed = group, 0
        while last < n_messages and last - group < GROUP and mx[last] == mx1[last] and my[last] == my1[last]:
            n_needed += (message_start[last + 1] - message_start[last] + 1) * lists_of_anchor
            if n_needed > key.size:
                break
            last += 1
        if last == group:
            return group, n_out
        fill_filters(message_start, keyword, group, last, filters)
        n_lists = find_lists(grid, frame, message_start, keyword, mx, my, group, last, key, lists, list_end)
        prefetch_directory(directory, message_start, keyword, last, min(last + GROUP, n_messages))
        end, n_pending, n_tested = scan_points(
            grid,
            frame,
            clauses,
            record,
            mx,
            my,
            group,
            last,
            key,
            lists,
            list_end,
            filters,
            out,
            n_out,
            begins,
            ends,
            pending,
            capacity,
        )
        if end == NO_CAPACITY:
            return group, n_out
        if n_pending > 0:
            check_pending(
                record, keyword_start, clause_keyword, message_start, keyword, group, last, pending, list_end, out, ends
            )
        counters[NODES] += n_lists
        counters[CANDIDATES] += n_tested
        group, n_out = last, end
    return n_messages, n_out
