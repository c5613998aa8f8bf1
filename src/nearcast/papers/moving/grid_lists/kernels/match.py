"""Find the clauses of messages, and the messages of clauses.

Something with an area may stand in several cells. Of two boxes that meet, the pair is told where the lower left corner of what
they have in common lies: both stand there, and it is one cell.
"""

from __future__ import annotations

from nearcast.kernels.boxes import meets
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.keyword_sets import has_all, mark_keywords
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.kernels.quadtree import column_of
from nearcast.moving.kernels.live_messages import is_wanted
from nearcast.papers.moving.grid_lists.kernels.lists import cells_of, find_list, is_grid_owner
from nearcast.papers.moving.grid_lists.layout import CATCH_ALL, NO_LIST, SIDE


@inline_kernel
def is_told_here(frame, side, x, y, column, row):
    """Whether a point lies in a cell."""
    return (
        column_of(x, frame[0], frame[1], frame[2], side) == column and column_of(y, frame[3], frame[4], frame[5], side) == row
    )


@kernel
def match_messages(grid, clauses, messages, stamp, mark, first, n_out, output):
    """Append every matching pair; see `kernel_calls.collect` for `first`, `n_out` and the result."""
    slot, start, size, item, frame, shape = grid.slot, grid.start, grid.size, grid.item, grid.frame, grid.shape
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    cx0, cy0, cx1, cy1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    mx0, my0, mx1, my1 = messages.x0, messages.y0, messages.x1, messages.y1
    message_start, message_keyword = messages.keyword_start, messages.keyword
    out_message, out_clause, counters = output.message, output.clause, output.counters
    side = shape[SIDE]
    for message in range(first, mx0.size):
        before, current = n_out, mark + 1 + message
        begin, end = message_start[message], message_start[message + 1]
        mark_keywords(stamp, current, message_keyword, begin, end)
        x0, y0, x1, y1 = mx0[message], my0[message], mx1[message], my1[message]
        column0, column1, row0, row1 = cells_of(frame, side, x0, y0, x1, y1)
        is_point = x0 == x1 and y0 == y1
        n_visited, n_candidates = 0, 0
        for at in range(begin - 1, end):
            owner = CATCH_ALL if at < begin else 1 + message_keyword[at]
            n_cells = 1
            if is_grid_owner(grid.is_grid, owner):
                n_cells += (column1 - column0 + 1) * (row1 - row0 + 1)
            for step in range(n_cells):
                # The list without a cell first.
                column = column0 + (step - 1) % (column1 - column0 + 1)
                row = row0 + (step - 1) // (column1 - column0 + 1)
                number = find_list(slot, shape, owner, side * side if step == 0 else row * side + column)
                n_visited += 1
                if number == NO_LIST:
                    continue
                for entry in range(start[number], start[number] + size[number]):
                    clause = item[entry]
                    if step > 0 and not is_point:
                        x, y = max(cx0[clause], x0), max(cy0[clause], y0)
                        if not is_told_here(frame, side, x, y, column, row):
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
def rarest_owner(keyword, begin, end, n_with):
    """The keyword of a clause that the fewest messages have, as an owner; all messages if it has none."""
    best = CATCH_ALL
    for at in range(begin, end):
        owner = 1 + keyword[at]
        if owner >= n_with.size:
            return owner
        if best == CATCH_ALL or n_with[owner] < n_with[best]:
            best = owner
    return best


@kernel
def look_for_messages(grid, n_with, clauses, messages, slots, besides, first, n_out, output):
    """Append every message of each clause; see `kernel_calls.run_until_it_fits` for `first`, `n_out` and the result.

    A cell well inside both the clause's box and the other one has nothing to tell: what stands there meets both.
    """
    slot, start, size, item, frame, shape = grid.slot, grid.start, grid.size, grid.item, grid.frame, grid.shape
    own = (clauses.x0, clauses.y0, clauses.x1, clauses.y1, clauses.keyword_start, clauses.keyword)
    is_alive, keyword_first, n_keywords = messages.is_alive, messages.keyword_first, messages.n_keywords
    mx0, my0, mx1, my1, member = messages.x0, messages.y0, messages.x1, messages.y1, messages.keyword
    live = (mx0, my0, mx1, my1, is_alive, keyword_first, n_keywords, member)
    bx0, by0, bx1, by1 = besides
    out_clause, out_message, counters = output.clause, output.message, output.counters
    side = shape[SIDE]
    for i in range(first, slots.size):
        before, clause = n_out, slots[i]
        other = (bx0[i], by0[i], bx1[i], by1[i])
        owner = rarest_owner(clauses.keyword, clauses.keyword_start[clause], clauses.keyword_start[clause + 1], n_with)
        left, bottom = clauses.x0[clause], clauses.y0[clause]
        column0, column1, row0, row1 = cells_of(frame, side, left, bottom, clauses.x1[clause], clauses.y1[clause])
        inner0, inner1, inner2, inner3 = column0, column1, row0, row1
        if other[0] <= other[2]:
            b0, b1, b2, b3 = cells_of(frame, side, other[0], other[1], other[2], other[3])
            inner0, inner1, inner2, inner3 = max(column0, b0), min(column1, b1), max(row0, b2), min(row1, b3)
        else:
            inner1 = inner0
        n_visited, n_candidates, n_cells = 0, 0, 1
        if is_grid_owner(grid.is_grid, owner):
            n_cells += (column1 - column0 + 1) * (row1 - row0 + 1)
        for step in range(n_cells):
            # The list without a cell first.
            column = column0 + (step - 1) % (column1 - column0 + 1)
            row = row0 + (step - 1) // (column1 - column0 + 1)
            if step > 0 and inner0 < column and column < inner1 and inner2 < row and row < inner3:
                continue
            number = find_list(slot, shape, owner, side * side if step == 0 else row * side + column)
            n_visited += 1
            if number == NO_LIST:
                continue
            for entry in range(start[number], start[number] + size[number]):
                message = item[entry]
                if is_alive[message] == 0:
                    continue
                if step > 0 and (mx0[message] != mx1[message] or my0[message] != my1[message]):
                    x, y = max(left, mx0[message]), max(bottom, my0[message])
                    if not is_told_here(frame, side, x, y, column, row):
                        continue
                n_candidates += 1
                if is_wanted(clause, message, own, live, other):
                    if n_out == out_clause.size:
                        return i, before
                    out_clause[n_out] = clause
                    out_message[n_out] = message
                    n_out += 1
        counters[NODES] += n_visited
        counters[CANDIDATES] += n_candidates
    return slots.size, n_out
