"""Match a message with a box: visit every cell it meets, and report a clause only in the cell where the overlap begins.

That is the cell of the lower left corner of the intersection of message and clause. It is visited, and there is only one.
"""

from __future__ import annotations

import numpy as np

from nearcast.boolean.frequency_grid.kernels.delta import DELTA_LEVEL_MASK, HAS_WIDE, WIDE_CELL
from nearcast.boolean.frequency_grid.kernels.keys import has_clause_keywords, list_key
from nearcast.boolean.frequency_grid.layout import (
    BLOCK_CAPACITY,
    BLOCK_HEADER,
    BLOCK_SIZE,
    CELL_BITS,
    HEADER,
    LEVEL_BITS,
    LEVEL_MASK,
    LINES_BITS,
    MAX_LEVEL,
    N_DELTA,
    NO_LIST,
    RECORD_FIELDS,
    SINGLE_FIELDS,
)
from nearcast.kernels.boxes import meets
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.hashing import find_value, home
from nearcast.kernels.quadtree import column_of

OUTPUT_FULL = -1
_ANY_CELL = -1


@inline_kernel
def begins_in_cell(area, bounds, clause, shift, column, row):
    """Whether the overlap of a clause with the message begins in this column and row, `shift` levels above the finest."""
    frame, n_columns, column0, row0 = area[0], area[1], area[2], area[3]
    clause_column = column_of(bounds[0][clause], frame[0], frame[1], frame[2], n_columns)
    clause_row = column_of(bounds[1][clause], frame[3], frame[4], frame[5], n_columns)
    return max(clause_column, column0) >> shift == column and max(clause_row, row0) >> shift == row


@kernel
def append_if_match(area, bounds, clause_keywords, message_keywords, clause, shift, column, row, out, n_out):
    """Append a clause if its overlap begins in this cell and it matches; returns the new end and whether it was tested."""
    if column != _ANY_CELL and not begins_in_cell(area, bounds, clause, shift, column, row):
        return n_out, 0
    x0, y0, x1, y1 = bounds
    keyword, begin, end = message_keywords
    if meets(x0[clause], y0[clause], x1[clause], y1[clause], area[4], area[5], area[6], area[7]) and has_clause_keywords(
        clause_keywords[0], clause_keywords[1], clause, keyword, begin, end
    ):
        out[n_out] = clause
        n_out += 1
    return n_out, 1


@kernel
def scan_area_list(run, at, area, bounds, clause_keywords, message_keywords, shift, column, row, out, n_out, capacity):
    """Append the clauses of a list that match a box; returns the new end and the number of clauses tested."""
    n_covering, n_single, n_multiple = np.int64(run[at]), np.int64(run[at + 1]), np.int64(run[at + 2])
    n_tested = 0
    if n_out + n_covering + n_single + n_multiple > capacity:
        return OUTPUT_FULL, n_tested
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
        n_out, tested = append_if_match(area, bounds, clause_keywords, message_keywords, clause, shift, column, row, out, n_out)
        n_tested += tested
    return n_out, n_tested


@kernel
def scan_area_chain(block, newest, area, bounds, clause_keywords, message_keywords, shift, column, row, out, n_out, capacity):
    """Append the clauses of a chain of the delta that match a box; returns the new end and the number of clauses tested."""
    n_tested = 0
    while newest != 0:
        at = newest * BLOCK_SIZE
        n = np.int64(block[at + 1])
        newest = np.int64(block[at])
        if n_out + n > capacity:
            return OUTPUT_FULL, n_tested
        for i in range(n):
            clause = block[at + BLOCK_HEADER + 5 * BLOCK_CAPACITY + i]
            n_out, tested = append_if_match(
                area, bounds, clause_keywords, message_keywords, clause, shift, column, row, out, n_out
            )
            n_tested += tested
    return n_out, n_tested


@kernel
def cells_to_visit(slot, anchor, level, cell_range, visits):
    """Write the values filed for the cells of an anchor that a box meets, with column and row; returns how many.

    Looks up each cell, or goes through the whole table if that is shorter.
    """
    column0, row0, column1, row1 = cell_range
    n_slots = slot.size // 2
    n_visits = 0
    if (column1 - column0 + 1) * (row1 - row0 + 1) > n_slots:
        for at in range(n_slots):
            key = slot[2 * at] - 1
            if key >= 0 and key >> CELL_BITS == anchor:
                cell = key & ((1 << CELL_BITS) - 1)
                column, row = cell >> level, cell & ((1 << level) - 1)
                if column0 <= column <= column1 and row0 <= row <= row1:
                    visits[3 * n_visits], visits[3 * n_visits + 1], visits[3 * n_visits + 2] = slot[2 * at + 1], column, row
                    n_visits += 1
        return n_visits
    for column in range(column0, column1 + 1):
        for row in range(row0, row1 + 1):
            key = list_key(anchor, (column << level) | row)
            value = find_value(slot, key, home(key, n_slots), NO_LIST)
            if value != NO_LIST:
                visits[3 * n_visits], visits[3 * n_visits + 1], visits[3 * n_visits + 2] = value, column, row
                n_visits += 1
    return n_visits


@kernel
def match_area(grid, delta, clauses, messages, message, out, n_out, capacity):
    """Append the matches of a message with a box; returns the new end or OUTPUT_FULL, lists visited and clauses tested."""
    directory, slot, run, frame, max_level = grid.directory, grid.slot, grid.run, grid.frame, grid.head[MAX_LEVEL]
    delta_level, delta_slot, block = delta.level, delta.slot, delta.block
    bounds = (clauses.x0, clauses.y0, clauses.x1, clauses.y1)
    clause_keywords = (clauses.keyword_start, clauses.keyword)
    keyword, begin, end = messages.keyword, messages.keyword_start[message], messages.keyword_start[message + 1]
    message_keywords = (keyword, begin, end)
    x0, y0, x1, y1 = messages.x0[message], messages.y0[message], messages.x1[message], messages.y1[message]
    n_columns = 1 << max_level
    column0, column1 = (
        column_of(x0, frame[0], frame[1], frame[2], n_columns),
        column_of(x1, frame[0], frame[1], frame[2], n_columns),
    )
    row0, row1 = column_of(y0, frame[3], frame[4], frame[5], n_columns), column_of(y1, frame[3], frame[4], frame[5], n_columns)
    area = (frame, n_columns, column0, row0, x0, y0, x1, y1)
    visits = np.empty(3 * max(slot.size, delta_slot.size), np.int64)
    has_delta = delta.head[N_DELTA] > 0
    n_visited, n_candidates = 0, 0
    for at in range(begin - 1, end):
        anchor = 0 if at < begin else 1 + np.int64(keyword[at])
        if 2 * anchor < directory.size and directory[2 * anchor] != 0:
            root, level = directory[2 * anchor] >> (LEVEL_BITS + LINES_BITS), directory[2 * anchor] & LEVEL_MASK
            if root != 0:
                n_out, n_tested = scan_area_list(
                    run, root, area, bounds, clause_keywords, message_keywords, 0, _ANY_CELL, 0, out, n_out, capacity
                )
                if n_out < 0:
                    return OUTPUT_FULL, n_visited, n_candidates
                n_candidates += n_tested
                n_visited += 1
            if level != 0:
                shift = max_level - level
                cell_range = (column0 >> shift, row0 >> shift, column1 >> shift, row1 >> shift)
                n_visits = cells_to_visit(slot, anchor, level, cell_range, visits)
                for i in range(n_visits):
                    n_out, n_tested = scan_area_list(
                        run,
                        visits[3 * i] >> LINES_BITS,
                        area,
                        bounds,
                        clause_keywords,
                        message_keywords,
                        shift,
                        visits[3 * i + 1],
                        visits[3 * i + 2],
                        out,
                        n_out,
                        capacity,
                    )
                    if n_out < 0:
                        return OUTPUT_FULL, n_visited, n_candidates
                    n_candidates += n_tested
                n_visited += n_visits
        if has_delta and anchor < delta_level.size and delta_level[anchor] != 0:
            level = np.int64(delta_level[anchor] & DELTA_LEVEL_MASK) - 1
            shift = max_level - level
            cell_range = (column0 >> shift, row0 >> shift, column1 >> shift, row1 >> shift)
            n_visits = cells_to_visit(delta_slot, anchor, level, cell_range, visits)
            if delta_level[anchor] & HAS_WIDE:
                key = list_key(anchor, WIDE_CELL)
                visits[3 * n_visits] = find_value(delta_slot, key, home(key, delta_slot.size // 2), NO_LIST)
                visits[3 * n_visits + 1], visits[3 * n_visits + 2] = _ANY_CELL, 0
                n_visits += 1
            for i in range(n_visits):
                n_out, n_tested = scan_area_chain(
                    block,
                    visits[3 * i],
                    area,
                    bounds,
                    clause_keywords,
                    message_keywords,
                    shift,
                    visits[3 * i + 1],
                    visits[3 * i + 2],
                    out,
                    n_out,
                    capacity,
                )
                if n_out < 0:
                    return OUTPUT_FULL, n_visited, n_candidates
                n_candidates += n_tested
            n_visited += n_visits
    return n_out, n_visited, n_candidates
