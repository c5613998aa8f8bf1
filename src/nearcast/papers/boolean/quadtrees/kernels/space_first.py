"""Go from the place of a message to the cells that have it, from there to the lists of its keywords, and scan.

One message takes several steps, each asking for the memory of the next ahead of its use: doors of the keywords, slots of
the table, lists, entries. Reaching a list costs more than scanning it.
"""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.hashing import find_value, home
from nearcast.kernels.keyword_sets import mark_keywords
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.kernels.quadtree import cell_code, column_of, depth_of_code
from nearcast.kernels.simd import prefetch
from nearcast.papers.boolean.quadtrees.kernels.cover import cell_key, code_of_cell_key, list_key
from nearcast.papers.boolean.quadtrees.kernels.scan import (
    OUTPUT_FULL,
    lacking_bits,
    reach_with_box,
    scan_for_box,
    scan_for_point,
)
from nearcast.papers.boolean.quadtrees.layout import CATCH_ALL, DEPTHS, DEPTHS_OF_ALL, NO_LIST, ROOT_LIST


@inline_kernel
def reach_with_point(slot, door, start, size, keyword, begin, end, code, depths, max_depth, key, place, found):
    """Write the lists of a message that is a point; returns their number and that of the cells they stand in.

    `depths` has the depths with any list; `key` and `place` are scratch.
    """
    n_owners, n_slots = door.size // 2, slot.size // 2
    for at in range(begin, end):
        if 1 + keyword[at] < n_owners:
            prefetch(door, 2 * (1 + keyword[at]))
    n_cells = 0
    for depth in range(1, max_depth + 1):
        if (depths >> depth) & 1:
            key[n_cells] = cell_key(code >> (2 * (max_depth - depth)))
            place[n_cells] = home(key[n_cells], n_slots)
            prefetch(slot, 2 * place[n_cells])
            n_cells += 1
    # From here on only the depths at which a cell of the message has lists.
    depths = 0
    for i in range(n_cells):
        if find_value(slot, key[i], place[i], NO_LIST) != NO_LIST:
            depths |= 1 << depth_of_code(code_of_cell_key(key[i]))
    n_found, n_keys, n_cells = 0, 0, 1
    for at in range(begin - 1, end):
        owner = CATCH_ALL if at < begin else 1 + keyword[at]
        if owner < n_owners and door[2 * owner + ROOT_LIST] != NO_LIST:
            found[n_found] = door[2 * owner + ROOT_LIST]
            prefetch(start, found[n_found])
            prefetch(size, found[n_found])
            n_found += 1
    for depth in range(1, max_depth + 1):
        if (depths >> depth) & 1 == 0:
            continue
        n_cells += 1
        for at in range(begin - 1, end):
            owner = CATCH_ALL if at < begin else 1 + keyword[at]
            if owner < n_owners and (door[2 * owner + DEPTHS] >> depth) & 1:
                key[n_keys] = list_key(owner, code >> (2 * (max_depth - depth)))
                place[n_keys] = home(key[n_keys], n_slots)
                prefetch(slot, 2 * place[n_keys])
                n_keys += 1
    for i in range(n_keys):
        number = find_value(slot, key[i], place[i], NO_LIST)
        if number != NO_LIST:
            found[n_found] = number
            prefetch(start, number)
            prefetch(size, number)
            n_found += 1
    return n_found, n_cells


@kernel
def match_messages(lists, grid, clauses, messages, scratch, mark, first, n_out, output):
    """Append every matching pair; see `kernel_calls.run_until_it_fits` for `first` and `n_out`, `scan.py` for why once."""
    slot, door, list_keys = lists.slot, lists.door, lists.list_key
    start, size = lists.pool.start, lists.pool.size
    directory = (slot, door, lists.chain, list_keys, lists.list_next)
    entries = (start, size, lists.pool.item, lists.box, lists.signature)
    words = (clauses.keyword_start, clauses.keyword)
    frame, max_depth = grid
    stamp, key, place, found = scratch
    mx0, my0, mx1, my1 = messages.x0, messages.y0, messages.x1, messages.y1
    message_start, keyword = messages.keyword_start, messages.keyword
    out_message, out_clause, counters = output.message, output.clause, output.counters
    x_low, x_high, x_scale, y_low, y_high, y_scale = frame[0], frame[1], frame[2], frame[3], frame[4], frame[5]
    n_columns = 1 << max_depth
    depths = lists.head[DEPTHS_OF_ALL]
    for message in range(first, mx0.size):
        before = n_out
        current = mark + 1 + message
        begin, end = message_start[message], message_start[message + 1]
        mark_keywords(stamp, current, keyword, begin, end)
        lacking = lacking_bits(keyword, begin, end)
        x0, y0, x1, y1 = mx0[message], my0[message], mx1[message], my1[message]
        column0 = column_of(x0, x_low, x_high, x_scale, n_columns)
        row0 = column_of(y0, y_low, y_high, y_scale, n_columns)
        if x0 == x1 and y0 == y1:
            code = cell_code(max_depth, column0, row0)
            n_found, n_cells = reach_with_point(
                slot, door, start, size, keyword, begin, end, code, depths, max_depth, key, place, found
            )
            n_out, n_candidates = scan_for_point(
                found, n_found, entries, words, stamp, current, lacking, x0, y0, message, n_out, out_message, out_clause
            )
        else:
            column1 = column_of(x1, x_low, x_high, x_scale, n_columns)
            row1 = column_of(y1, y_low, y_high, y_scale, n_columns)
            cells = (column0, row0, column1, row1)
            n_found = reach_with_box(directory, keyword, begin, end, max_depth, cells, found)
            n_cells = 0
            where = (frame, max_depth, x0, y0, x1, y1, column0, row0)
            n_out, n_candidates = scan_for_box(
                found,
                n_found,
                list_keys,
                entries,
                words,
                stamp,
                current,
                lacking,
                where,
                message,
                n_out,
                out_message,
                out_clause,
            )
        if n_out == OUTPUT_FULL:
            return message, before
        counters[NODES] += n_found + n_cells
        counters[CANDIDATES] += n_candidates
    return mx0.size, n_out
