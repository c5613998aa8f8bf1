"""File clauses or messages in the lists of the cells that they reach, and take them out again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.boxes import meets
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.hashing import find_value, home, insert
from nearcast.kernels.keyword_sets import has_all, mark_keywords
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.kernels.pools import chunk_capacity, give_back, take_chunk
from nearcast.kernels.quadtree import column_of
from nearcast.moving.kernels.live_messages import matches_only_new_box

CATCH_ALL = 0  # the anchor of clauses without keywords, and of every message; keyword w is anchor 1 + w
NO_LIST = -1

# Fields of `head`: lists; slots in use; elements of `item` in use; entries; postings filed now; postings filed by the build.
N_LISTS, N_SLOTS_USED, N_ITEMS, N_ENTRIES, N_FILED, N_BUILT = range(6)
HEAD_FIELDS = 6

# Fields of `needed`: the sizes that the arrays must grow to.
NEEDED_LISTS, NEEDED_SLOTS, NEEDED_ITEMS = range(3)
NEEDED_FIELDS = 3

# Fields of `shape`: columns (and rows), the most cells of one posting, whether keys begin with the cell.
WIDTH, MOST_CELLS, IS_SPACE_FIRST = range(3)
SHAPE_FIELDS = 3
_ANCHOR_BITS = 32


class UniformGridArrays(NamedTuple):
    """Lists by anchor and cell, found by a hash table. Cell `width * width` is "no cell", for what covers too many cells.

    An anchor without a grid has everything in its list without a cell.
    """

    slot: np.ndarray  # int64[2 * n_slots]: key and list; a power of two
    start: np.ndarray  # int64[n_lists]
    size: np.ndarray  # int32[n_lists]
    capacity: np.ndarray  # int32[n_lists]
    item: np.ndarray  # int32[]
    free: np.ndarray  # int32[N_CLASSES]
    is_grid: np.ndarray  # uint8[n_anchors]; anchors beyond have a grid
    frame: np.ndarray  # float64[6]: low, high, columns per half unit of x, then of y
    shape: np.ndarray  # int64[SHAPE_FIELDS]
    head: np.ndarray  # int64[HEAD_FIELDS]


# --- lists -------------------------------------------------------------------------------------------------------------


@inline_kernel
def list_key(shape, anchor, cell):
    """The key of a list, never 0. The lists of a cell (space first), or of a keyword, have neighbouring keys."""
    if shape[IS_SPACE_FIRST]:
        return ((np.int64(cell) << np.int64(_ANCHOR_BITS)) | np.int64(anchor)) + 1
    return np.int64(anchor) * (shape[WIDTH] * shape[WIDTH] + 1) + np.int64(cell) + 1


@inline_kernel
def find_list(slot, shape, anchor, cell):
    """The list of an anchor and a cell, or NO_LIST."""
    key = list_key(shape, anchor, cell)
    return find_value(slot, key, home(key, slot.size // 2), NO_LIST)


@inline_kernel
def cells_of(frame, width, x0, y0, x1, y1):
    """The first and last column, first and last row of a box. The function is monotone and the same for all boxes."""
    return (
        column_of(x0, frame[0], frame[1], frame[2], width),
        column_of(x1, frame[0], frame[1], frame[2], width),
        column_of(y0, frame[3], frame[4], frame[5], width),
        column_of(y1, frame[3], frame[4], frame[5], width),
    )


@inline_kernel
def has_grid(is_grid, anchor):
    return anchor >= is_grid.size or is_grid[anchor] != 0


@inline_kernel
def grown_capacity(size):
    """The new capacity of a full list."""
    return chunk_capacity(size + 1 + size // 4)


@inline_kernel
def needed_items(slot, size, capacity, shape, anchor, cell):
    """How many elements of `item` one more entry of a list takes, and whether the list is new."""
    number = find_list(slot, shape, anchor, cell)
    if number == NO_LIST:
        return grown_capacity(0), 1
    return (grown_capacity(size[number]) if size[number] == capacity[number] else 0), 0


@inline_kernel
def append_entry(slot, start, size, capacity, item, free, shape, head, anchor, cell, value):
    """Append to a list, which is created if needed; the arrays are large enough."""
    key = list_key(shape, anchor, cell)
    at, is_new = insert(slot, key, home(key, slot.size // 2))
    if is_new:
        number = head[N_LISTS]
        head[N_LISTS] += 1
        head[N_SLOTS_USED] += 1
        slot[2 * at + 1] = number
        start[number], size[number], capacity[number] = 0, 0, 0
    number = slot[2 * at + 1]
    n = size[number]
    if n == capacity[number]:
        larger = grown_capacity(n)
        moved = take_chunk(free, item, head, N_ITEMS, larger)
        for i in range(n):
            item[moved + i] = item[start[number] + i]
        give_back(free, item, start[number], capacity[number])
        start[number], capacity[number] = moved, larger
    item[start[number] + n] = value
    size[number] = n + 1
    head[N_ENTRIES] += 1


@inline_kernel
def remove_entry(slot, start, size, item, shape, head, anchor, cell, value):
    """Remove a value from a list; the last one takes its place."""
    number = find_list(slot, shape, anchor, cell)
    at = start[number]
    while item[at] != value:
        at += 1
    size[number] -= 1
    item[at] = item[start[number] + size[number]]
    head[N_ENTRIES] -= 1


@kernel
def file_postings(grid, anchor, value, x0, y0, x1, y1, first, needed):
    """File `value[i]` with box i under `anchor[i]`, from `first` on; returns where capacity ran out (see `needed`), or the
    end."""
    slot, start, size, capacity, item, free = grid.slot, grid.start, grid.size, grid.capacity, grid.item, grid.free
    is_grid, frame, shape, head = grid.is_grid, grid.frame, grid.shape, grid.head
    width, most = shape[WIDTH], shape[MOST_CELLS]
    for i in range(first, anchor.size):
        column0, column1, row0, row1 = cells_of(frame, width, x0[i], y0[i], x1[i], y1[i])
        n_columns, n_cells = column1 - column0 + 1, (column1 - column0 + 1) * (row1 - row0 + 1)
        is_wide = n_cells > most or not has_grid(is_grid, anchor[i])
        n_cells = 1 if is_wide else n_cells
        n_new, n_items = 0, head[N_ITEMS]
        for at in range(n_cells):
            cell = width * width if is_wide else (row0 + at // n_columns) * width + column0 + at % n_columns
            more, new = needed_items(slot, size, capacity, shape, anchor[i], cell)
            n_items += more
            n_new += new
        needed[NEEDED_LISTS] = head[N_LISTS] + n_new
        needed[NEEDED_SLOTS] = 2 * (head[N_SLOTS_USED] + n_new)
        needed[NEEDED_ITEMS] = n_items
        if needed[NEEDED_LISTS] > start.size or needed[NEEDED_SLOTS] > slot.size // 2 or n_items > item.size:
            return i
        for at in range(n_cells):
            cell = width * width if is_wide else (row0 + at // n_columns) * width + column0 + at % n_columns
            append_entry(slot, start, size, capacity, item, free, shape, head, anchor[i], cell, value[i])
        head[N_FILED] += 1
    return anchor.size


@kernel
def unfile_postings(grid, anchor, value, x0, y0, x1, y1):
    """Remove postings that were filed with the same anchors and boxes."""
    slot, start, size, item = grid.slot, grid.start, grid.size, grid.item
    is_grid, frame, shape, head = grid.is_grid, grid.frame, grid.shape, grid.head
    width, most = shape[WIDTH], shape[MOST_CELLS]
    for i in range(anchor.size):
        column0, column1, row0, row1 = cells_of(frame, width, x0[i], y0[i], x1[i], y1[i])
        n_columns, n_cells = column1 - column0 + 1, (column1 - column0 + 1) * (row1 - row0 + 1)
        is_wide = n_cells > most or not has_grid(is_grid, anchor[i])
        for at in range(1 if is_wide else n_cells):
            cell = width * width if is_wide else (row0 + at // n_columns) * width + column0 + at % n_columns
            remove_entry(slot, start, size, item, shape, head, anchor[i], cell, value[i])
        head[N_FILED] -= 1


# --- match and find ----------------------------------------------------------------------------------------------------


@inline_kernel
def is_in_cell(frame, width, x, y, column, row):
    """Whether a point lies in a cell."""
    return (
        column_of(x, frame[0], frame[1], frame[2], width) == column and column_of(y, frame[3], frame[4], frame[5], width) == row
    )


@kernel
def match_messages(grid, clauses, messages, stamp, mark, first, n_out, output):
    """Append every matching pair; see `kernel_calls.run_until_it_fits` for `first`, `n_out` and the result."""
    slot, start, size, item, frame, shape = grid.slot, grid.start, grid.size, grid.item, grid.frame, grid.shape
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    cx0, cy0, cx1, cy1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    mx0, my0, mx1, my1 = messages.x0, messages.y0, messages.x1, messages.y1
    message_start, message_keyword = messages.keyword_start, messages.keyword
    out_message, out_clause, counters = output.message, output.clause, output.counters
    width = shape[WIDTH]
    for message in range(first, mx0.size):
        before, current = n_out, mark + 1 + message
        begin, end = message_start[message], message_start[message + 1]
        mark_keywords(stamp, current, message_keyword, begin, end)
        x0, y0, x1, y1 = mx0[message], my0[message], mx1[message], my1[message]
        column0, column1, row0, row1 = cells_of(frame, width, x0, y0, x1, y1)
        is_point = x0 == x1 and y0 == y1
        n_visited, n_candidates = 0, 0
        for at in range(begin - 1, end):
            anchor = CATCH_ALL if at < begin else 1 + message_keyword[at]
            n_cells = 1
            if has_grid(grid.is_grid, anchor):
                n_cells += (column1 - column0 + 1) * (row1 - row0 + 1)
            for step in range(n_cells):
                # The list without a cell first.
                column = column0 + (step - 1) % (column1 - column0 + 1)
                row = row0 + (step - 1) // (column1 - column0 + 1)
                number = find_list(slot, shape, anchor, width * width if step == 0 else row * width + column)
                n_visited += 1
                if number == NO_LIST:
                    continue
                for entry in range(start[number], start[number] + size[number]):
                    clause = item[entry]
                    if step > 0 and not is_point:
                        x, y = max(cx0[clause], x0), max(cy0[clause], y0)
                        if not is_in_cell(frame, width, x, y, column, row):
                            continue
                    n_candidates += 1
                    if meets(cx0[clause], cy0[clause], cx1[clause], cy1[clause], x0, y0, x1, y1) and has_all(
                        stamp, current, keyword, keyword_start[clause], keyword_start[clause + 1]
                    ):
                        if n_out == out_clause.size:
                            return message, before
                        out_message[n_out] = message
                        out_clause[n_out] = clause
                        n_out += 1
        counters[NODES] += n_visited
        counters[CANDIDATES] += n_candidates
    return mx0.size, n_out


@inline_kernel
def rarest_anchor(keyword, begin, end, n_messages_of):
    """The anchor of a clause: its keyword that the fewest messages have, or CATCH_ALL if it has none."""
    best = CATCH_ALL
    for at in range(begin, end):
        anchor = 1 + keyword[at]
        if anchor >= n_messages_of.size:
            return anchor
        if best == CATCH_ALL or n_messages_of[anchor] < n_messages_of[best]:
            best = anchor
    return best


@kernel
def find_messages(grid, n_messages_of, clauses, messages, slots, excluded, first, n_out, output):
    """Append the messages of each clause; see `kernel_calls.run_until_it_fits` for `first`, `n_out` and the result.

    A cell well inside both the clause's box and the excluded one is skipped: what is there meets both.
    """
    slot, start, size, item, frame, shape = grid.slot, grid.start, grid.size, grid.item, grid.frame, grid.shape
    clause_arrays = (clauses.x0, clauses.y0, clauses.x1, clauses.y1, clauses.keyword_start, clauses.keyword)
    is_alive, keyword_first, n_keywords = messages.is_alive, messages.keyword_first, messages.n_keywords
    mx0, my0, mx1, my1, member = messages.x0, messages.y0, messages.x1, messages.y1, messages.keyword
    live = (mx0, my0, mx1, my1, is_alive, keyword_first, n_keywords, member)
    bx0, by0, bx1, by1 = excluded
    out_clause, out_message, counters = output.clause, output.message, output.counters
    width = shape[WIDTH]
    for i in range(first, slots.size):
        before, clause = n_out, slots[i]
        excluded_box = (bx0[i], by0[i], bx1[i], by1[i])
        anchor = rarest_anchor(clauses.keyword, clauses.keyword_start[clause], clauses.keyword_start[clause + 1], n_messages_of)
        left, bottom = clauses.x0[clause], clauses.y0[clause]
        column0, column1, row0, row1 = cells_of(frame, width, left, bottom, clauses.x1[clause], clauses.y1[clause])
        inner0, inner1, inner2, inner3 = column0, column1, row0, row1
        if excluded_box[0] <= excluded_box[2]:
            b0, b1, b2, b3 = cells_of(frame, width, excluded_box[0], excluded_box[1], excluded_box[2], excluded_box[3])
            inner0, inner1, inner2, inner3 = max(column0, b0), min(column1, b1), max(row0, b2), min(row1, b3)
        else:
            inner1 = inner0
        n_visited, n_candidates, n_cells = 0, 0, 1
        if has_grid(grid.is_grid, anchor):
            n_cells += (column1 - column0 + 1) * (row1 - row0 + 1)
        for step in range(n_cells):
            # The list without a cell first.
            column = column0 + (step - 1) % (column1 - column0 + 1)
            row = row0 + (step - 1) // (column1 - column0 + 1)
            if step > 0 and inner0 < column and column < inner1 and inner2 < row and row < inner3:
                continue
            number = find_list(slot, shape, anchor, width * width if step == 0 else row * width + column)
            n_visited += 1
            if number == NO_LIST:
                continue
            for entry in range(start[number], start[number] + size[number]):
                message = item[entry]
                if is_alive[message] == 0:
                    continue
                if step > 0 and (mx0[message] != mx1[message] or my0[message] != my1[message]):
                    x, y = max(left, mx0[message]), max(bottom, my0[message])
                    if not is_in_cell(frame, width, x, y, column, row):
                        continue
                n_candidates += 1
                if matches_only_new_box(clause, message, clause_arrays, live, excluded_box):
                    if n_out == out_clause.size:
                        return i, before
                    out_clause[n_out] = clause
                    out_message[n_out] = message
                    n_out += 1
        counters[NODES] += n_visited
        counters[CANDIDATES] += n_candidates
    return slots.size, n_out
