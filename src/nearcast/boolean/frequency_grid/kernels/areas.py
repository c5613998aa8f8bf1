"""Match a message with a box: every cell it meets is visited, and a clause counts only where its overlap begins.

That is the cell of the lower left corner of what message and clause have in common: it is visited, and there is one of it.
"""

from __future__ import annotations

import numpy as np

from nearcast.boolean.frequency_grid.kernels.delta import HAS_WIDE, LATE_LEVEL_MASK, WIDE_CELL
from nearcast.boolean.frequency_grid.kernels.keys import has_clause_keywords, list_key
from nearcast.boolean.frequency_grid.layout import (
    BLOCK_HEADER,
    BLOCK_ROOM,
    BLOCK_SIZE,
    CELL_BITS,
    HEADER,
    LEVEL_BITS,
    LEVEL_MASK,
    LINES_BITS,
    MAX_LEVEL,
    N_LATE,
    NO_LIST,
    RECORD_FIELDS,
    SINGLE_FIELDS,
)
from nearcast.kernels.boxes import meets
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.hashing import find_value, home
from nearcast.kernels.quadtree import column_of

NO_ROOM = -1
_ANY_CELL = -1


@inline_kernel
def begins_here(area, sides, clause, shift, column, row):
    """Whether the overlap of a clause with the message begins in this column and row, `shift` levels above the finest."""
    frame, n_columns, column0, row0 = area[0], area[1], area[2], area[3]
    own_column = column_of(sides[0][clause], frame[0], frame[1], frame[2], n_columns)
    own_row = column_of(sides[1][clause], frame[3], frame[4], frame[5], n_columns)
    return max(own_column, column0) >> shift == column and max(own_row, row0) >> shift == row


@kernel
def take_clause(area, sides, words, message_words, clause, shift, column, row, out, n_out):
    """Append a clause if this is its cell and it matches; returns the new end and whether it was tested."""
    if column != _ANY_CELL and not begins_here(area, sides, clause, shift, column, row):
        return n_out, 0
    x0, y0, x1, y1 = sides
    keyword, begin, end = message_words
    if meets(x0[clause], y0[clause], x1[clause], y1[clause], area[4], area[5], area[6], area[7]) and has_clause_keywords(
        words[0], words[1], clause, keyword, begin, end
    ):
        out[n_out] = clause
        n_out += 1
    return n_out, 1


@kernel
def scan_area_list(run, at, area, sides, words, message_words, shift, column, row, out, n_out, room):
    """Append what a list holds for a box; returns the new end and the clauses tested."""
    n_covering, n_single, n_multiple = np.int64(run[at]), np.int64(run[at + 1]), np.int64(run[at + 2])
    n_tested = 0
    if n_out + n_covering + n_single + n_multiple > room:
        return NO_ROOM, n_tested
    covering = at + HEADER
    single = covering + n_covering + 4 * n_single
    records = covering + n_covering + SINGLE_FIELDS * n_single + n_multiple
    for i in range(n_covering + n_single + n_multiple):
        if i < n_covering:
            clause = run[covering + i]
        elif i < n_covering + n_single:
            clause = run[single + i - n_covering]
        else:
            clause = run[records + RECORD_FIELDS * (i - n_covering - n_single)]
        n_out, tested = take_clause(area, sides, words, message_words, clause, shift, column, row, out, n_out)
        n_tested += tested
    return n_out, n_tested


@kernel
def scan_area_chain(block, newest, area, sides, words, message_words, shift, column, row, out, n_out, room):
    """Append what a chain of late clauses holds for a box; returns the new end and the clauses tested."""
    n_tested = 0
    while newest != 0:
        at = newest * BLOCK_SIZE
        n = np.int64(block[at + 1])
        newest = np.int64(block[at])
        if n_out + n > room:
            return NO_ROOM, n_tested
        for i in range(n):
            clause = block[at + BLOCK_HEADER + 5 * BLOCK_ROOM + i]
            n_out, tested = take_clause(area, sides, words, message_words, clause, shift, column, row, out, n_out)
            n_tested += tested
    return n_out, n_tested


@kernel
def cells_to_visit(slot, owner, level, bounds, found):
    """Write what is filed under the cells of an owner that a box meets, with their columns and rows; returns how many.

    Looks up each cell, or goes through the whole table where that is shorter.
    """
    column0, row0, column1, row1 = bounds
    n_slots = slot.size // 2
    n_found = 0
    if (column1 - column0 + 1) * (row1 - row0 + 1) > n_slots:
        for at in range(n_slots):
            key = slot[2 * at] - 1
            if key >= 0 and key >> CELL_BITS == owner:
                cell = key & ((1 << CELL_BITS) - 1)
                column, row = cell >> level, cell & ((1 << level) - 1)
                if column0 <= column <= column1 and row0 <= row <= row1:
                    found[3 * n_found], found[3 * n_found + 1], found[3 * n_found + 2] = slot[2 * at + 1], column, row
                    n_found += 1
        return n_found
    for column in range(column0, column1 + 1):
        for row in range(row0, row1 + 1):
            key = list_key(owner, (column << level) | row)
            value = find_value(slot, key, home(key, n_slots), NO_LIST)
            if value != NO_LIST:
                found[3 * n_found], found[3 * n_found + 1], found[3 * n_found + 2] = value, column, row
                n_found += 1
    return n_found


@kernel
def match_area(grid, late, clauses, messages, message, out, n_out, room):
    """Append the matches of one message with a box; returns the new end or NO_ROOM, the lists and the clauses tested."""
    door, slot, run, frame, max_level = grid.door, grid.slot, grid.run, grid.frame, grid.head[MAX_LEVEL]
    late_level, late_slot, block = late.level, late.slot, late.block
    sides = (clauses.x0, clauses.y0, clauses.x1, clauses.y1)
    words = (clauses.keyword_start, clauses.keyword)
    keyword, begin, end = messages.keyword, messages.keyword_start[message], messages.keyword_start[message + 1]
    message_words = (keyword, begin, end)
    x0, y0, x1, y1 = messages.x0[message], messages.y0[message], messages.x1[message], messages.y1[message]
    n_columns = 1 << max_level
    column0, column1 = (
        column_of(x0, frame[0], frame[1], frame[2], n_columns),
        column_of(x1, frame[0], frame[1], frame[2], n_columns),
    )
    row0, row1 = column_of(y0, frame[3], frame[4], frame[5], n_columns), column_of(y1, frame[3], frame[4], frame[5], n_columns)
    area = (frame, n_columns, column0, row0, x0, y0, x1, y1)
    found = np.empty(3 * max(slot.size, late_slot.size), np.int64)
    has_late = late.head[N_LATE] > 0
    n_visited, n_candidates = 0, 0
    for at in range(begin - 1, end):
        owner = 0 if at < begin else 1 + np.int64(keyword[at])
        if 2 * owner < door.size and door[2 * owner] != 0:
            root, level = door[2 * owner] >> (LEVEL_BITS + LINES_BITS), door[2 * owner] & LEVEL_MASK
            if root != 0:
                n_out, n_tested = scan_area_list(
                    run, root, area, sides, words, message_words, 0, _ANY_CELL, 0, out, n_out, room
                )
                if n_out < 0:
                    return NO_ROOM, n_visited, n_candidates
                n_candidates += n_tested
                n_visited += 1
            if level != 0:
                shift = max_level - level
                bounds = (column0 >> shift, row0 >> shift, column1 >> shift, row1 >> shift)
                n_found = cells_to_visit(slot, owner, level, bounds, found)
                for i in range(n_found):
                    n_out, n_tested = scan_area_list(
                        run,
                        found[3 * i] >> LINES_BITS,
                        area,
                        sides,
                        words,
                        message_words,
                        shift,
                        found[3 * i + 1],
                        found[3 * i + 2],
                        out,
                        n_out,
                        room,
                    )
                    if n_out < 0:
                        return NO_ROOM, n_visited, n_candidates
                    n_candidates += n_tested
                n_visited += n_found
        if has_late and owner < late_level.size and late_level[owner] != 0:
            level = np.int64(late_level[owner] & LATE_LEVEL_MASK) - 1
            shift = max_level - level
            bounds = (column0 >> shift, row0 >> shift, column1 >> shift, row1 >> shift)
            n_found = cells_to_visit(late_slot, owner, level, bounds, found)
            if late_level[owner] & HAS_WIDE:
                key = list_key(owner, WIDE_CELL)
                found[3 * n_found] = find_value(late_slot, key, home(key, late_slot.size // 2), NO_LIST)
                found[3 * n_found + 1], found[3 * n_found + 2] = _ANY_CELL, 0
                n_found += 1
            for i in range(n_found):
                n_out, n_tested = scan_area_chain(
                    block,
                    found[3 * i],
                    area,
                    sides,
                    words,
                    message_words,
                    shift,
                    found[3 * i + 1],
                    found[3 * i + 2],
                    out,
                    n_out,
                    room,
                )
                if n_out < 0:
                    return NO_ROOM, n_visited, n_candidates
                n_candidates += n_tested
            n_visited += n_found
    return n_out, n_visited, n_candidates
