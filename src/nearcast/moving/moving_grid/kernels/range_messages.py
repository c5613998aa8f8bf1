"""Range messages, which have an area instead of a point: their clauses, and those that clauses match.

They are rare, so tests are exact and one by one.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.boxes import meets
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.hashing import find, home
from nearcast.moving.kernels.live_messages import has_keywords
from nearcast.moving.moving_grid.kernels.keys import fine_column, list_key
from nearcast.moving.moving_grid.kernels.lists import entry_position
from nearcast.moving.moving_grid.layout import (
    ANCHOR,
    CLASSES_MASK,
    CLAUSE_BITS,
    CLAUSES,
    FINE,
    LEVEL_BITS,
    LEVEL_MASK,
    MESSAGE_BITS,
    MESSAGES,
    NO_CAPACITY,
    RANGE_CLASS,
    RECORD,
    SIZE_MASK,
)


@inline_kernel
def reached_cells(span, frame, fit, x0, y0, x1, y1):
    """The cells of class `fit` whose entries may meet a box: first and last column, first and last row."""
    shift = FINE - fit
    column0 = max(fine_column(x0, frame, 0) - span[2 * fit], 0) >> shift
    row0 = max(fine_column(y0, frame, 3) - span[2 * fit + 1], 0) >> shift
    return column0, fine_column(x1, frame, 0) >> shift, row0, fine_column(y1, frame, 3) >> shift


@inline_kernel
def list_in_cell(slot, anchor, kind, fit, column, row):
    """The list of a class in a cell; 0 if there is none."""
    key = list_key(anchor, kind, fit, column << (FINE - fit), row << (FINE - fit))
    at = find(slot, key, home(key, slot.size // 2))
    return slot[2 * at + 1] if slot[2 * at] == key else np.int64(0)


@kernel
def append_range_messages(pool, value, live, box, excluded, required, out, n_out, capacity):
    """Append the live range messages of a list that meet `box`, do not meet `excluded` and have the required keywords.

    Returns the new end, or NO_CAPACITY.
    """
    x0, y0, x1, y1, is_alive = live.x0, live.y0, live.x1, live.y1, live.is_alive
    keyword, start, stop = required
    for entry in range(value & SIZE_MASK):
        m = pool[entry_position(value, MESSAGE_BITS, entry) + MESSAGES]
        if is_alive[m] == 0 or (x0[m] == x1[m] and y0[m] == y1[m]):
            continue
        if not meets(box[0], box[1], box[2], box[3], x0[m], y0[m], x1[m], y1[m]):
            continue
        if meets(excluded[0], excluded[1], excluded[2], excluded[3], x0[m], y0[m], x1[m], y1[m]):
            continue
        if has_keywords(keyword, start, stop, live.keyword, live.keyword_first[m], live.n_keywords[m]):
            if n_out == capacity:
                return np.int64(NO_CAPACITY)
            out[n_out] = m
            n_out += 1
    return np.int64(n_out)


@kernel
def find_range_messages(grid, frame, clauses, live, record, clause, box, excluded, out, n_out, capacity):
    """Append the range messages of a clause that meet `box` and not `excluded`; returns the new end (or NO_CAPACITY), tests."""
    directory, slot, pool = grid.directory, grid.slot, grid.pool
    anchor, n_tested = np.int64(record[RECORD * np.int64(clause) + ANCHOR]), 0
    required = (clauses.keyword, clauses.keyword_start[clause], clauses.keyword_start[clause + 1])
    end = np.int64(n_out)
    if box[0] > box[2]:
        return end, n_tested
    level, classes = directory[2 * anchor + 1] & LEVEL_MASK, (directory[2 * anchor + 1] >> LEVEL_BITS) & CLASSES_MASK
    if classes & 1:
        n_tested += directory[2 * anchor] & SIZE_MASK
        end = append_range_messages(pool, directory[2 * anchor], live, box, excluded, required, out, end, capacity)
    for fit in range(1, level + 1):
        if (classes >> fit) & 1 == 0:
            continue
        column0, column1, row0, row1 = reached_cells(grid.span, frame, fit, box[0], box[1], box[2], box[3])
        for column in range(column0, column1 + 1):
            for row in range(row0, row1 + 1):
                if end == NO_CAPACITY:
                    return end, n_tested
                value = list_in_cell(slot, anchor, fit + RANGE_CLASS, fit, column, row)
                n_tested += value & SIZE_MASK
                end = append_range_messages(pool, value, live, box, excluded, required, out, end, capacity)
    return end, n_tested


@kernel
def append_clauses(pool, value, clauses, messages, message, out, n_out, capacity):
    """Append the clauses of a list that a message matches; returns the new end, or NO_CAPACITY."""
    x0, y0, x1, y1 = messages.x0[message], messages.y0[message], messages.x1[message], messages.y1[message]
    begin, end = messages.keyword_start[message], messages.keyword_start[message + 1]
    for entry in range(value & SIZE_MASK):
        c = pool[entry_position(value, CLAUSE_BITS, entry) + CLAUSES]
        if not meets(clauses.x0[c], clauses.y0[c], clauses.x1[c], clauses.y1[c], x0, y0, x1, y1):
            continue
        start, stop = clauses.keyword_start[c], clauses.keyword_start[c + 1]
        if has_keywords(clauses.keyword, start, stop, messages.keyword, begin, end - begin):
            if n_out == capacity:
                return np.int64(NO_CAPACITY)
            out[n_out] = c
            n_out += 1
    return np.int64(n_out)


@kernel
def match_range_message(grid, frame, clauses, messages, message, out, n_out, capacity):
    """Append the clauses of a range message; returns the new end (or NO_CAPACITY), lists visited, clauses tested."""
    directory, slot, pool = grid.directory, grid.slot, grid.pool
    x0, y0, x1, y1 = messages.x0[message], messages.y0[message], messages.x1[message], messages.y1[message]
    begin, n_anchors, end = messages.keyword_start[message], directory.size // 2, np.int64(n_out)
    n_visited, n_tested = 0, 0
    for at in range(begin - 1, messages.keyword_start[message + 1]):
        anchor = np.int64(0) if at < begin else 1 + np.int64(messages.keyword[at])
        if anchor >= n_anchors:
            continue
        level, classes = directory[2 * anchor + 1] & LEVEL_MASK, (directory[2 * anchor + 1] >> LEVEL_BITS) & CLASSES_MASK
        n_visited += 1
        n_tested += directory[2 * anchor] & SIZE_MASK
        end = append_clauses(pool, directory[2 * anchor], clauses, messages, message, out, end, capacity)
        for fit in range(1, level + 1):
            if (classes >> fit) & 1 == 0:
                continue
            column0, column1, row0, row1 = reached_cells(grid.span, frame, fit, x0, y0, x1, y1)
            for column in range(column0, column1 + 1):
                for row in range(row0, row1 + 1):
                    if end == NO_CAPACITY:
                        return end, n_visited, n_tested
                    value = list_in_cell(slot, anchor, fit, fit, column, row)
                    n_visited += 1
                    n_tested += value & SIZE_MASK
                    end = append_clauses(pool, value, clauses, messages, message, out, end, capacity)
        if end == NO_CAPACITY:
            return end, n_visited, n_tested
    return end, n_visited, n_tested
