"""Find the posting lists of a message and scan them: signature, box, then keywords.

A clause is filed in disjoint cells, so a point meets it in one list at most. A box may meet it in several: it is reported in
the list whose cell has the reference point, the lower left corner of the intersection of box and clause. That point is in both,
so its cell is visited, the clause is bound to it, and there is only one such cell.

A point takes several steps, each of which prefetches the memory that the next one reads: directory entries of the keywords,
slots of the table, lists, entries. Finding a list costs more than scanning it.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.boxes import meets
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.hashing import find_value, home
from nearcast.kernels.keyword_sets import has_all, mark_keywords
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.kernels.quadtree import cell_code, column_of, column_of_code, depth_of_code, row_of_code
from nearcast.kernels.simd import prefetch
from nearcast.papers.boolean.quadtrees.kernels.lists import cell_key, code_of_cell_key, code_of_key, keyword_bit, list_key
from nearcast.papers.boolean.quadtrees.layout import (
    DEPTHS,
    DEPTHS_OF_ALL,
    FIRST_LIST,
    N_LISTS_OF,
    NO_ANCHOR,
    NO_LIST,
    ROOT_LIST,
)

OUTPUT_FULL = -1
N_AHEAD = 16  # boxes of a list that are prefetched, two per cache line; the processor prefetches what follows


@inline_kernel
def absent_bits(keyword, start, stop):
    """The bits that no keyword of the message has: a clause with one of them requires a keyword that the message lacks."""
    bits = np.int64(0)
    for at in range(start, stop):
        bits |= keyword_bit(keyword[at])
    return ~bits


@inline_kernel
def scan_for_point(
    list_ids, n_reached, entries, clause_keywords, stamp, mark, absent, x, y, message, n_out, out_message, out_clause
):
    """Append the clauses of these lists that match a point; returns pairs (or OUTPUT_FULL) and candidates."""
    start, size, item, box, signature = entries
    keyword_start, keyword = clause_keywords
    for i in range(n_reached):
        first = start[list_ids[i]]
        prefetch(signature, first)
        for entry in range(first, first + min(size[list_ids[i]], N_AHEAD), 2):
            prefetch(box, 4 * entry)
    n_candidates = 0
    for i in range(n_reached):
        first = start[list_ids[i]]
        last = first + size[list_ids[i]]
        n_candidates += last - first
        for entry in range(first, last):
            bits = signature[entry]
            if bits & absent != 0:
                continue
            if box[4 * entry] <= x and x <= box[4 * entry + 2] and box[4 * entry + 1] <= y and y <= box[4 * entry + 3]:
                clause = item[entry]
                # Without bits the anchor is the only keyword.
                if bits == 0 or has_all(stamp, mark, keyword, keyword_start[clause], keyword_start[clause + 1]):
                    if n_out == out_clause.size:
                        return OUTPUT_FULL, n_candidates
                    out_message[n_out] = message
                    out_clause[n_out] = clause
                    n_out += 1
    return n_out, n_candidates


@inline_kernel
def scan_for_box(
    list_ids, n_reached, list_keys, entries, clause_keywords, stamp, mark, absent, area, message, n_out, out_message, out_clause
):
    """Append the clauses of these lists that match a box, each in the cell of its reference point; as `scan_for_point`."""
    start, size, item, box, signature = entries
    keyword_start, keyword = clause_keywords
    frame, max_depth, x0, y0, x1, y1, column0, row0 = area
    n_columns = 1 << max_depth
    n_candidates = 0
    for i in range(n_reached):
        code = code_of_key(list_keys[list_ids[i]])
        shift = 2 * (max_depth - depth_of_code(code))
        for entry in range(start[list_ids[i]], start[list_ids[i]] + size[list_ids[i]]):
            # The column of a maximum is the maximum of the columns.
            column = max(column0, column_of(box[4 * entry], frame[0], frame[1], frame[2], n_columns))
            row = max(row0, column_of(box[4 * entry + 1], frame[3], frame[4], frame[5], n_columns))
            if cell_code(max_depth, column, row) >> shift != code:
                continue
            n_candidates += 1
            bits = signature[entry]
            if bits & absent != 0:
                continue
            if meets(box[4 * entry], box[4 * entry + 1], box[4 * entry + 2], box[4 * entry + 3], x0, y0, x1, y1):
                clause = item[entry]
                if bits == 0 or has_all(stamp, mark, keyword, keyword_start[clause], keyword_start[clause + 1]):
                    if n_out == out_clause.size:
                        return OUTPUT_FULL, n_candidates
                    out_message[n_out] = message
                    out_clause[n_out] = clause
                    n_out += 1
    return n_out, n_candidates


@inline_kernel
def lists_by_box(tables, keyword, begin, end, max_depth, cells, list_ids):
    """Write the lists of a message's keywords whose cells the message meets; returns their number.

    `cells` is (column0, row0, column1, row1) at the greatest depth. If the box has more cells than a keyword has lists,
    all its lists are checked instead.
    """
    slot, directory, chain, list_keys, list_next = tables
    column0, row0, column1, row1 = cells
    n_reached = 0
    for at in range(begin - 1, end):
        anchor = NO_ANCHOR if at < begin else 1 + keyword[at]
        if anchor >= directory.size // 2:
            continue
        root, depths = directory[2 * anchor + ROOT_LIST], directory[2 * anchor + DEPTHS]
        n_cells = 1
        for depth in range(1, max_depth + 1):
            if (depths >> depth) & 1:
                shift = max_depth - depth
                n_cells += ((column1 >> shift) - (column0 >> shift) + 1) * ((row1 >> shift) - (row0 >> shift) + 1)
        if n_cells > chain[2 * anchor + N_LISTS_OF]:
            list_id = chain[2 * anchor + FIRST_LIST]
            while list_id != NO_LIST:
                code = code_of_key(list_keys[list_id])
                shift = max_depth - depth_of_code(code)
                column, row = column_of_code(code), row_of_code(code)
                if (
                    (column0 >> shift) <= column
                    and column <= (column1 >> shift)
                    and (row0 >> shift) <= row
                    and row <= (row1 >> shift)
                ):
                    list_ids[n_reached] = list_id
                    n_reached += 1
                list_id = list_next[list_id]
            continue
        if root != NO_LIST:
            list_ids[n_reached] = root
            n_reached += 1
        for depth in range(1, max_depth + 1):
            if (depths >> depth) & 1 == 0:
                continue
            shift = max_depth - depth
            for column in range(column0 >> shift, (column1 >> shift) + 1):
                for row in range(row0 >> shift, (row1 >> shift) + 1):
                    key = list_key(anchor, cell_code(depth, column, row))
                    list_id = find_value(slot, key, home(key, slot.size // 2), NO_LIST)
                    if list_id != NO_LIST:
                        list_ids[n_reached] = list_id
                        n_reached += 1
    return n_reached


@inline_kernel
def lists_by_keyword(slot, directory, start, size, keyword, begin, end, code, max_depth, key, first_slot, list_ids):
    """Write the lists of a message that is a point; returns their number. `key` and `first_slot` are scratch."""
    n_anchors, n_slots = directory.size // 2, slot.size // 2
    for at in range(begin, end):
        if 1 + keyword[at] < n_anchors:
            prefetch(directory, 2 * (1 + keyword[at]))
    n_reached, n_keys = 0, 0
    for at in range(begin - 1, end):
        anchor = NO_ANCHOR if at < begin else 1 + keyword[at]
        if anchor >= n_anchors:
            continue
        root, depths = directory[2 * anchor + ROOT_LIST], directory[2 * anchor + DEPTHS]
        if root != NO_LIST:
            list_ids[n_reached] = root
            n_reached += 1
            prefetch(start, root)
            prefetch(size, root)
        if depths == 0:
            continue
        for depth in range(1, max_depth + 1):
            if (depths >> depth) & 1:
                key[n_keys] = list_key(anchor, code >> (2 * (max_depth - depth)))
                first_slot[n_keys] = home(key[n_keys], n_slots)
                prefetch(slot, 2 * first_slot[n_keys])
                n_keys += 1
    for i in range(n_keys):
        list_id = find_value(slot, key[i], first_slot[i], NO_LIST)
        if list_id != NO_LIST:
            list_ids[n_reached] = list_id
            prefetch(start, list_id)
            prefetch(size, list_id)
            n_reached += 1
    return n_reached


@kernel
def match_keyword_first(lists, grid, clauses, messages, scratch, mark, first, n_out, output):
    """Append every matching pair; see `kernel_calls.run_until_it_fits` for `first` and `n_out`, `scan.py` for why once."""
    slot, directory, list_keys = lists.slot, lists.directory, lists.list_key
    start, size = lists.pool.start, lists.pool.size
    tables = (slot, directory, lists.chain, list_keys, lists.list_next)
    entries = (start, size, lists.pool.item, lists.box, lists.signature)
    clause_keywords = (clauses.keyword_start, clauses.keyword)
    frame, max_depth = grid
    stamp, key, first_slot, list_ids = scratch
    mx0, my0, mx1, my1 = messages.x0, messages.y0, messages.x1, messages.y1
    message_start, keyword = messages.keyword_start, messages.keyword
    out_message, out_clause, counters = output.message, output.clause, output.counters
    x_low, x_high, x_scale, y_low, y_high, y_scale = frame[0], frame[1], frame[2], frame[3], frame[4], frame[5]
    n_columns = 1 << max_depth
    for message in range(first, mx0.size):
        before = n_out
        current = mark + 1 + message
        begin, end = message_start[message], message_start[message + 1]
        mark_keywords(stamp, current, keyword, begin, end)
        absent = absent_bits(keyword, begin, end)
        x0, y0, x1, y1 = mx0[message], my0[message], mx1[message], my1[message]
        column0 = column_of(x0, x_low, x_high, x_scale, n_columns)
        row0 = column_of(y0, y_low, y_high, y_scale, n_columns)
        if x0 == x1 and y0 == y1:
            code = cell_code(max_depth, column0, row0)
            n_reached = lists_by_keyword(
                slot, directory, start, size, keyword, begin, end, code, max_depth, key, first_slot, list_ids
            )
            n_out, n_candidates = scan_for_point(
                list_ids,
                n_reached,
                entries,
                clause_keywords,
                stamp,
                current,
                absent,
                x0,
                y0,
                message,
                n_out,
                out_message,
                out_clause,
            )
        else:
            column1 = column_of(x1, x_low, x_high, x_scale, n_columns)
            row1 = column_of(y1, y_low, y_high, y_scale, n_columns)
            cells = (column0, row0, column1, row1)
            n_reached = lists_by_box(tables, keyword, begin, end, max_depth, cells, list_ids)
            area = (frame, max_depth, x0, y0, x1, y1, column0, row0)
            n_out, n_candidates = scan_for_box(
                list_ids,
                n_reached,
                list_keys,
                entries,
                clause_keywords,
                stamp,
                current,
                absent,
                area,
                message,
                n_out,
                out_message,
                out_clause,
            )
        if n_out == OUTPUT_FULL:
            return message, before
        counters[NODES] += n_reached
        counters[CANDIDATES] += n_candidates
    return mx0.size, n_out


@inline_kernel
def lists_by_cell(slot, directory, start, size, keyword, begin, end, code, depths, max_depth, key, first_slot, list_ids):
    """Write the lists of a message that is a point; returns their number and the number of their cells.

    `depths` has the depths with any list; `key` and `first_slot` are scratch.
    """
    n_anchors, n_slots = directory.size // 2, slot.size // 2
    for at in range(begin, end):
        if 1 + keyword[at] < n_anchors:
            prefetch(directory, 2 * (1 + keyword[at]))
    n_cells = 0
    for depth in range(1, max_depth + 1):
        if (depths >> depth) & 1:
            key[n_cells] = cell_key(code >> (2 * (max_depth - depth)))
            first_slot[n_cells] = home(key[n_cells], n_slots)
            prefetch(slot, 2 * first_slot[n_cells])
            n_cells += 1
    # From here on only the depths at which the cell of the message has lists.
    depths = 0
    for i in range(n_cells):
        if find_value(slot, key[i], first_slot[i], NO_LIST) != NO_LIST:
            depths |= 1 << depth_of_code(code_of_cell_key(key[i]))
    n_reached, n_keys, n_cells = 0, 0, 1
    for at in range(begin - 1, end):
        anchor = NO_ANCHOR if at < begin else 1 + keyword[at]
        if anchor < n_anchors and directory[2 * anchor + ROOT_LIST] != NO_LIST:
            list_ids[n_reached] = directory[2 * anchor + ROOT_LIST]
            prefetch(start, list_ids[n_reached])
            prefetch(size, list_ids[n_reached])
            n_reached += 1
    for depth in range(1, max_depth + 1):
        if (depths >> depth) & 1 == 0:
            continue
        n_cells += 1
        for at in range(begin - 1, end):
            anchor = NO_ANCHOR if at < begin else 1 + keyword[at]
            if anchor < n_anchors and (directory[2 * anchor + DEPTHS] >> depth) & 1:
                key[n_keys] = list_key(anchor, code >> (2 * (max_depth - depth)))
                first_slot[n_keys] = home(key[n_keys], n_slots)
                prefetch(slot, 2 * first_slot[n_keys])
                n_keys += 1
    for i in range(n_keys):
        list_id = find_value(slot, key[i], first_slot[i], NO_LIST)
        if list_id != NO_LIST:
            list_ids[n_reached] = list_id
            prefetch(start, list_id)
            prefetch(size, list_id)
            n_reached += 1
    return n_reached, n_cells


@kernel
def match_space_first(lists, grid, clauses, messages, scratch, mark, first, n_out, output):
    """Append every matching pair; see `kernel_calls.run_until_it_fits` for `first` and `n_out`, `scan.py` for why once."""
    slot, directory, list_keys = lists.slot, lists.directory, lists.list_key
    start, size = lists.pool.start, lists.pool.size
    tables = (slot, directory, lists.chain, list_keys, lists.list_next)
    entries = (start, size, lists.pool.item, lists.box, lists.signature)
    clause_keywords = (clauses.keyword_start, clauses.keyword)
    frame, max_depth = grid
    stamp, key, first_slot, list_ids = scratch
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
        absent = absent_bits(keyword, begin, end)
        x0, y0, x1, y1 = mx0[message], my0[message], mx1[message], my1[message]
        column0 = column_of(x0, x_low, x_high, x_scale, n_columns)
        row0 = column_of(y0, y_low, y_high, y_scale, n_columns)
        if x0 == x1 and y0 == y1:
            code = cell_code(max_depth, column0, row0)
            n_reached, n_cells = lists_by_cell(
                slot, directory, start, size, keyword, begin, end, code, depths, max_depth, key, first_slot, list_ids
            )
            n_out, n_candidates = scan_for_point(
                list_ids,
                n_reached,
                entries,
                clause_keywords,
                stamp,
                current,
                absent,
                x0,
                y0,
                message,
                n_out,
                out_message,
                out_clause,
            )
        else:
            column1 = column_of(x1, x_low, x_high, x_scale, n_columns)
            row1 = column_of(y1, y_low, y_high, y_scale, n_columns)
            cells = (column0, row0, column1, row1)
            n_reached = lists_by_box(tables, keyword, begin, end, max_depth, cells, list_ids)
            n_cells = 0
            area = (frame, max_depth, x0, y0, x1, y1, column0, row0)
            n_out, n_candidates = scan_for_box(
                list_ids,
                n_reached,
                list_keys,
                entries,
                clause_keywords,
                stamp,
                current,
                absent,
                area,
                message,
                n_out,
                out_message,
                out_clause,
            )
        if n_out == OUTPUT_FULL:
            return message, before
        counters[NODES] += n_reached + n_cells
        counters[CANDIDATES] += n_candidates
    return mx0.size, n_out
