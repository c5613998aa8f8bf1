"""Go from the keywords of a message to their quadtrees, from there to the cells that have the message, and scan.

One message takes several steps, each asking for the memory of the next ahead of its use: doors of the keywords, slots of
the table, lists, entries. Reaching a list costs more than scanning it.
"""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.hashing import find_value, home
from nearcast.kernels.keyword_sets import mark_keywords
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.kernels.quadtree import cell_code, column_of
from nearcast.kernels.simd import prefetch
from nearcast.papers.boolean.quadtrees.kernels.cover import list_key
from nearcast.papers.boolean.quadtrees.kernels.scan import (
    OUTPUT_FULL,
    lacking_bits,
    reach_with_box,
    scan_for_box,
    scan_for_point,
)
from nearcast.papers.boolean.quadtrees.layout import CATCH_ALL, DEPTHS, NO_LIST, ROOT_LIST


@inline_kernel
def reach_with_point(slot, door, start, size, keyword, begin, end, code, max_depth, key, place, found):
    """Write the lists of a message that is a point; returns their number. `key` and `place` are scratch."""
    n_owners, n_slots = door.size // 2, slot.size // 2
    for at in range(begin, end):
        if 1 + keyword[at] < n_owners:
            prefetch(door, 2 * (1 + keyword[at]))
    n_found, n_keys = 0, 0
    for at in range(begin - 1, end):
        owner = CATCH_ALL if at < begin else 1 + keyword[at]
        if owner >= n_owners:
            continue
        root, depths = door[2 * owner + ROOT_LIST], door[2 * owner + DEPTHS]
        if root != NO_LIST:
            found[n_found] = root
            n_found += 1
            prefetch(start, root)
            prefetch(size, root)
        if depths == 0:
            continue
        for depth in range(1, max_depth + 1):
            if (depths >> depth) & 1:
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
    return n_found


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
            n_found = reach_with_point(slot, door, start, size, keyword, begin, end, code, max_depth, key, place, found)
            n_out, n_candidates = scan_for_point(
                found, n_found, entries, words, stamp, current, lacking, x0, y0, message, n_out, out_message, out_clause
            )
        else:
            column1 = column_of(x1, x_low, x_high, x_scale, n_columns)
            row1 = column_of(y1, y_low, y_high, y_scale, n_columns)
            cells = (column0, row0, column1, row1)
            n_found = reach_with_box(directory, keyword, begin, end, max_depth, cells, found)
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
        counters[NODES] += n_found
        counters[CANDIDATES] += n_candidates
    return mx0.size, n_out
