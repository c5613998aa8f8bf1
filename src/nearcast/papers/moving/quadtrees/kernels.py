"""Find the messages of clauses, in the cells that the clauses are bound to.

Cells of a clause are disjoint. A message with an area may stand in several of them: the pair is reported in the cell with the
lower left corner of what the two boxes have in common.
"""

from __future__ import annotations

from nearcast.kernels.boxes import meets
from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.kernels.quadtree import cell_code, column_of, column_of_code, depth_of_code, row_of_code
from nearcast.moving.kernels.live_messages import has_keywords, matches_only_new_box
from nearcast.papers.boolean.quadtrees.kernels.lists import anchor_of_key, code_of_key
from nearcast.papers.boolean.quadtrees.layout import ROOT_CODE
from nearcast.papers.moving.grid_lists.kernels import (
    CATCH_ALL,
    N_FILED,
    N_ITEMS,
    N_LISTS,
    N_SLOTS_USED,
    NEEDED_ITEMS,
    NEEDED_LISTS,
    NEEDED_SLOTS,
    NO_LIST,
    append_entry,
    find_list,
    needed_items,
)

_MOST_CELLS = 64


# --- post messages -----------------------------------------------------------------------------------------------------


@inline_kernel
def columns_at(grid, depth, x0, y0, x1, y1):
    """First and last column, first and last row of a box among the cells of a depth; `grid` is frame and greatest depth."""
    frame, max_depth = grid
    n, shift = 1 << max_depth, max_depth - depth
    return (
        column_of(x0, frame[0], frame[1], frame[2], n) >> shift,
        column_of(x1, frame[0], frame[1], frame[2], n) >> shift,
        column_of(y0, frame[3], frame[4], frame[5], n) >> shift,
        column_of(y1, frame[3], frame[4], frame[5], n) >> shift,
    )


@inline_kernel
def post_at(lists, grid, depth, anchor, message, box, is_counting, needed):
    """Post a message at one depth, or count the lists and items that this needs."""
    slot, size, capacity, shape, head = lists.slot, lists.size, lists.capacity, lists.shape, lists.head
    column0, column1, row0, row1 = columns_at(grid, depth, box[0], box[1], box[2], box[3])
    for row in range(row0, row1 + 1):
        for column in range(column0, column1 + 1):
            code = cell_code(depth, column, row)
            if is_counting:
                more, new = needed_items(slot, size, capacity, shape, anchor, code)
                needed[NEEDED_ITEMS] += more
                needed[NEEDED_LISTS] += new
            else:
                append_entry(slot, lists.start, size, capacity, lists.item, lists.free, shape, head, anchor, code, message)


@inline_kernel
def has_capacity(lists, needed):
    """Whether the counted lists and items fit; `needed` becomes the total."""
    head = lists.head
    needed[NEEDED_SLOTS] = 2 * (head[N_SLOTS_USED] + needed[NEEDED_LISTS])
    needed[NEEDED_LISTS] += head[N_LISTS]
    needed[NEEDED_ITEMS] += head[N_ITEMS]
    return (
        needed[NEEDED_LISTS] <= lists.start.size
        and needed[NEEDED_SLOTS] <= lists.slot.size // 2
        and needed[NEEDED_ITEMS] <= lists.item.size
    )


@kernel
def post_messages(lists, grid, depths, messages, slots, first, needed):
    """Post the messages from `first` on; returns where capacity ran out, or the end. `depths[anchor]`: a bit for each depth."""
    lists, messages, depths, slots = borrow(lists), borrow(messages), borrow(depths), borrow(slots)
    keyword_first, n_keywords, keyword = messages.keyword_first, messages.n_keywords, messages.keyword
    x0, y0, x1, y1 = messages.x0, messages.y0, messages.x1, messages.y1
    for i in range(first, slots.size):
        message = slots[i]
        box = (x0[message], y0[message], x1[message], y1[message])
        begin = keyword_first[message]
        for is_counting in (True, False):
            if is_counting:
                needed[NEEDED_LISTS], needed[NEEDED_ITEMS] = 0, 0
            elif not has_capacity(lists, needed):
                return i
            for at in range(begin - 1, begin + n_keywords[message]):
                anchor = CATCH_ALL if at < begin else 1 + keyword[at]
                used = 1 if anchor >= depths.size else depths[anchor] | 1
                depth = 0
                while used >> depth != 0:
                    if (used >> depth) & 1:
                        post_at(lists, grid, depth, anchor, message, box, is_counting, needed)
                    depth += 1
        lists.head[N_FILED] += 1
    return slots.size


@kernel
def post_deeper(lists, grid, anchor, depth, messages, first, needed):
    """Post all messages of an anchor at one more depth, from entry `first` of its list in the root cell on.

    Returns the entry it stopped at, and True if it is done, False if capacity ran out.
    Paper: a message stands in every cell of its path; here only where a clause of the keyword may search for it.
    """
    lists, messages = borrow(lists), borrow(messages)
    x0, y0, x1, y1 = messages.x0, messages.y0, messages.x1, messages.y1
    number = find_list(lists.slot, lists.shape, anchor, ROOT_CODE)
    n = lists.size[number] if number >= 0 else 0
    for at in range(first, n):
        message = lists.item[lists.start[number] + at]
        if messages.is_alive[message] == 0:
            continue
        box = (x0[message], y0[message], x1[message], y1[message])
        needed[NEEDED_LISTS], needed[NEEDED_ITEMS] = 0, 0
        post_at(lists, grid, depth, anchor, message, box, True, needed)
        if not has_capacity(lists, needed):
            return at, False
        post_at(lists, grid, depth, anchor, message, box, False, needed)
    return n, True


# --- find messages -----------------------------------------------------------------------------------------------------


@inline_kernel
def is_within(grid, code, box):
    """Whether a cell lies inside a box and not at its border: then everything in the cell meets the box."""
    depth = depth_of_code(code)
    column0, column1, row0, row1 = columns_at(grid, depth, box[0], box[1], box[2], box[3])
    column, row = column_of_code(code), row_of_code(code)
    return column0 < column and column < column1 and row0 < row and row < row1


@inline_kernel
def is_in_cell(grid, code, x, y):
    """Whether a point lies in a cell."""
    column, _, row, _ = columns_at(grid, depth_of_code(code), x, y, x, y)
    return column == column_of_code(code) and row == row_of_code(code)


@kernel
def find_messages(cells, lists, grid, clauses, messages, slots, excluded, first, n_out, output):
    """Append the messages of each clause; see `kernel_calls.run_until_it_fits` for `first`, `n_out` and the result."""
    cells, lists, clauses, messages = borrow(cells), borrow(lists), borrow(clauses), borrow(messages)
    slots, excluded, output = borrow(slots), borrow(excluded), borrow(output)
    bound_start, n_bound, bound, list_key = cells.bound_start, cells.n_bound, cells.bound, cells.list_key
    slot, start, size, item, shape = lists.slot, lists.start, lists.size, lists.item, lists.shape
    clause_arrays = (clauses.x0, clauses.y0, clauses.x1, clauses.y1, clauses.keyword_start, clauses.keyword)
    is_alive, keyword_first, n_keywords = messages.is_alive, messages.keyword_first, messages.n_keywords
    mx0, my0, mx1, my1, member = messages.x0, messages.y0, messages.x1, messages.y1, messages.keyword
    live = (mx0, my0, mx1, my1, is_alive, keyword_first, n_keywords, member)
    bx0, by0, bx1, by1 = excluded
    out_clause, out_message, counters = output.clause, output.message, output.counters
    for i in range(first, slots.size):
        before, clause, n_candidates = n_out, slots[i], 0
        box = (clauses.x0[clause], clauses.y0[clause], clauses.x1[clause], clauses.y1[clause])
        excluded_box = (bx0[i], by0[i], bx1[i], by1[i])
        for at in range(bound_start[clause], bound_start[clause] + n_bound[clause]):
            key = list_key[bound[at]]
            code = code_of_key(key)
            if excluded_box[0] <= excluded_box[2] and is_within(grid, code, box) and is_within(grid, code, excluded_box):
                continue
            number = find_list(slot, shape, anchor_of_key(key), code)
            if number == NO_LIST:
                continue
            for entry in range(start[number], start[number] + size[number]):
                message = item[entry]
                if is_alive[message] == 0:
                    continue
                has_area = mx0[message] != mx1[message] or my0[message] != my1[message]
                if has_area and not is_in_cell(grid, code, max(box[0], mx0[message]), max(box[1], my0[message])):
                    continue
                n_candidates += 1
                if matches_only_new_box(clause, message, clause_arrays, live, excluded_box):
                    if n_out == out_clause.size:
                        return i, before
                    out_clause[n_out], out_message[n_out] = clause, message
                    n_out += 1
        counters[NODES] += n_bound[clause]
        counters[CANDIDATES] += n_candidates
    return slots.size, n_out


@kernel
def find_messages_in(cells, lists, depths, grid, clauses, messages, slots, boxes, first, n_out, output):
    """As `find_messages`, for any boxes: in the cells of one depth at which the messages of the clause's keyword stand."""
    cells, lists, clauses, messages = borrow(cells), borrow(lists), borrow(clauses), borrow(messages)
    slots, boxes, output = borrow(slots), borrow(boxes), borrow(output)
    slot, start, size, item, shape = lists.slot, lists.start, lists.size, lists.item, lists.shape
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    is_alive, keyword_first, n_keywords = messages.is_alive, messages.keyword_first, messages.n_keywords
    mx0, my0, mx1, my1, member = messages.x0, messages.y0, messages.x1, messages.y1, messages.keyword
    out_clause, out_message, counters = output.clause, output.message, output.counters
    for i in range(first, slots.size):
        before, clause, n_candidates = n_out, slots[i], 0
        box = (boxes[0][i], boxes[1][i], boxes[2][i], boxes[3][i])
        anchor = anchor_of_key(cells.list_key[cells.bound[cells.bound_start[clause]]])
        used, depth = (depths[anchor] if anchor < depths.size else 0) | 1, grid[1]
        while True:
            column0, column1, row0, row1 = columns_at(grid, depth, box[0], box[1], box[2], box[3])
            if (used >> depth) & 1 and (column1 - column0 + 1) * (row1 - row0 + 1) <= _MOST_CELLS:
                break
            depth -= 1
        for row in range(row0, row1 + 1):
            for column in range(column0, column1 + 1):
                code = cell_code(depth, column, row)
                number = find_list(slot, shape, anchor, code)
                if number == NO_LIST:
                    continue
                for entry in range(start[number], start[number] + size[number]):
                    message = item[entry]
                    x0, y0 = mx0[message], my0[message]
                    if is_alive[message] == 0 or not is_in_cell(grid, code, max(box[0], x0), max(box[1], y0)):
                        continue
                    n_candidates += 1
                    if meets(box[0], box[1], box[2], box[3], x0, y0, mx1[message], my1[message]) and has_keywords(
                        keyword,
                        keyword_start[clause],
                        keyword_start[clause + 1],
                        member,
                        keyword_first[message],
                        n_keywords[message],
                    ):
                        if n_out == out_clause.size:
                            return i, before
                        out_clause[n_out], out_message[n_out] = clause, message
                        n_out += 1
        counters[NODES] += (column1 - column0 + 1) * (row1 - row0 + 1)
        counters[CANDIDATES] += n_candidates
    return slots.size, n_out
