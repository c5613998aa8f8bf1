"""Messages with an area, in no hurry: their clauses, and the messages of clauses. Tests are exact and one by one."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.boxes import meets
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.hashing import find, home
from nearcast.moving.kernels.live_messages import has_words
from nearcast.moving.moving_grid.kernels.keys import fine_column, list_key
from nearcast.moving.moving_grid.kernels.lists import entry_place
from nearcast.moving.moving_grid.layout import (
    AREA_CLASS,
    CLASSES_MASK,
    CLAUSE_BITS,
    CLAUSES,
    FINE,
    LEVEL_BITS,
    LEVEL_MASK,
    MESSAGE_BITS,
    MESSAGES,
    NO_ROOM,
    OWNER,
    RECORD,
    SIZE_MASK,
)


@inline_kernel
def reached_cells(span, bounds, own, x0, y0, x1, y1):
    """The cells of class `own` with the corners of what may meet a box: columns first to last, rows first to last."""
    shift = FINE - own
    column0 = max(fine_column(x0, bounds, 0) - span[2 * own], 0) >> shift
    row0 = max(fine_column(y0, bounds, 3) - span[2 * own + 1], 0) >> shift
    return column0, fine_column(x1, bounds, 0) >> shift, row0, fine_column(y1, bounds, 3) >> shift


@inline_kernel
def list_in_cell(slot, owner, kind, own, column, row):
    """The list of a class in one of its cells; 0 if there is none."""
    key = list_key(owner, kind, own, column << (FINE - own), row << (FINE - own))
    at = find(slot, key, home(key, slot.size // 2))
    return slot[2 * at + 1] if slot[2 * at] == key else np.int64(0)


@kernel
def append_areas(pool, value, live, box, besides, words, out, n_out, room):
    """Append the messages with an area of a list that live, meet `box`, do not meet `besides` and have the words of a clause.

    Returns the new end, or NO_ROOM.
    """
    x0, y0, x1, y1, is_alive = live.x0, live.y0, live.x1, live.y1, live.is_alive
    keyword, start, stop = words
    for entry in range(value & SIZE_MASK):
        m = pool[entry_place(value, MESSAGE_BITS, entry) + MESSAGES]
        if is_alive[m] == 0 or (x0[m] == x1[m] and y0[m] == y1[m]):
            continue
        if not meets(box[0], box[1], box[2], box[3], x0[m], y0[m], x1[m], y1[m]):
            continue
        if meets(besides[0], besides[1], besides[2], besides[3], x0[m], y0[m], x1[m], y1[m]):
            continue
        if has_words(keyword, start, stop, live.keyword, live.keyword_first[m], live.n_keywords[m]):
            if n_out == room:
                return np.int64(NO_ROOM)
            out[n_out] = m
            n_out += 1
    return np.int64(n_out)


@kernel
def look_for_areas(side, bounds, clauses, live, record, clause, box, besides, out, n_out, room):
    """Append the messages with an area of one clause that meet `box` and not `besides`; the new end, or NO_ROOM, and tests."""
    door, slot, pool = side.door, side.slot, side.pool
    owner, n_tested = np.int64(record[RECORD * np.int64(clause) + OWNER]), 0
    words = (clauses.keyword, clauses.keyword_start[clause], clauses.keyword_start[clause + 1])
    end = np.int64(n_out)
    if box[0] > box[2]:
        return end, n_tested
    level, classes = door[2 * owner + 1] & LEVEL_MASK, (door[2 * owner + 1] >> LEVEL_BITS) & CLASSES_MASK
    if classes & 1:
        n_tested += door[2 * owner] & SIZE_MASK
        end = append_areas(pool, door[2 * owner], live, box, besides, words, out, end, room)
    for own in range(1, level + 1):
        if (classes >> own) & 1 == 0:
            continue
        column0, column1, row0, row1 = reached_cells(side.span, bounds, own, box[0], box[1], box[2], box[3])
        for column in range(column0, column1 + 1):
            for row in range(row0, row1 + 1):
                if end == NO_ROOM:
                    return end, n_tested
                value = list_in_cell(slot, owner, own + AREA_CLASS, own, column, row)
                n_tested += value & SIZE_MASK
                end = append_areas(pool, value, live, box, besides, words, out, end, room)
    return end, n_tested


@kernel
def append_clauses(pool, value, clauses, messages, message, out, n_out, room):
    """Append the clauses of a list that a message matches; returns the new end, or NO_ROOM."""
    x0, y0, x1, y1 = messages.x0[message], messages.y0[message], messages.x1[message], messages.y1[message]
    begin, end = messages.keyword_start[message], messages.keyword_start[message + 1]
    for entry in range(value & SIZE_MASK):
        c = pool[entry_place(value, CLAUSE_BITS, entry) + CLAUSES]
        if not meets(clauses.x0[c], clauses.y0[c], clauses.x1[c], clauses.y1[c], x0, y0, x1, y1):
            continue
        start, stop = clauses.keyword_start[c], clauses.keyword_start[c + 1]
        if has_words(clauses.keyword, start, stop, messages.keyword, begin, end - begin):
            if n_out == room:
                return np.int64(NO_ROOM)
            out[n_out] = c
            n_out += 1
    return np.int64(n_out)


@kernel
def match_area(side, bounds, clauses, messages, message, out, n_out, room):
    """Append the clauses of a message with an area; returns the new end (or NO_ROOM), lists visited and clauses tested."""
    door, slot, pool = side.door, side.slot, side.pool
    x0, y0, x1, y1 = messages.x0[message], messages.y0[message], messages.x1[message], messages.y1[message]
    begin, n_owners, end = messages.keyword_start[message], door.size // 2, np.int64(n_out)
    n_visited, n_tested = 0, 0
    for at in range(begin - 1, messages.keyword_start[message + 1]):
        owner = np.int64(0) if at < begin else 1 + np.int64(messages.keyword[at])
        if owner >= n_owners:
            continue
        level, classes = door[2 * owner + 1] & LEVEL_MASK, (door[2 * owner + 1] >> LEVEL_BITS) & CLASSES_MASK
        n_visited += 1
        n_tested += door[2 * owner] & SIZE_MASK
        end = append_clauses(pool, door[2 * owner], clauses, messages, message, out, end, room)
        for own in range(1, level + 1):
            if (classes >> own) & 1 == 0:
                continue
            column0, column1, row0, row1 = reached_cells(side.span, bounds, own, x0, y0, x1, y1)
            for column in range(column0, column1 + 1):
                for row in range(row0, row1 + 1):
                    if end == NO_ROOM:
                        return end, n_visited, n_tested
                    value = list_in_cell(slot, owner, own, own, column, row)
                    n_visited += 1
                    n_tested += value & SIZE_MASK
                    end = append_clauses(pool, value, clauses, messages, message, out, end, room)
        if end == NO_ROOM:
            return end, n_visited, n_tested
    return end, n_visited, n_tested
