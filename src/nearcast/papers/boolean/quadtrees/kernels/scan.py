"""Scan the posting lists a message reaches: signature, box, then keywords; and find those a message with a box reaches.

A clause stands in disjoint cells, so a point meets it in one list at most. A box may meet it in several: it is reported in
the list whose cell has the reference point, the lower left corner of what box and clause have in common. That point lies in
both, so its cell is visited, the clause is bound to it, and there is one such cell.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.boxes import meets
from nearcast.kernels.compile import inline_kernel
from nearcast.kernels.hashing import find_value, home
from nearcast.kernels.keyword_sets import has_all
from nearcast.kernels.quadtree import cell_code, column_of, column_of_code, depth_of_code, row_of_code
from nearcast.kernels.simd import prefetch
from nearcast.papers.boolean.quadtrees.kernels.cover import keyword_bit, list_key
from nearcast.papers.boolean.quadtrees.kernels.lists import code_of_key
from nearcast.papers.boolean.quadtrees.layout import CATCH_ALL, DEPTHS, FIRST_LIST, N_LISTS_OF, NO_LIST, ROOT_LIST

OUTPUT_FULL = -1
N_AHEAD = 16  # boxes of a list asked for ahead of the scan, two to a cache line; what follows the processor foresees


@inline_kernel
def lacking_bits(keyword, start, stop):
    """The bits that no keyword of the message has: a clause with one of them asks for more than the message has."""
    bits = np.int64(0)
    for at in range(start, stop):
        bits |= keyword_bit(keyword[at])
    return ~bits


@inline_kernel
def scan_for_point(found, n_found, entries, words, stamp, mark, lacking, x, y, message, n_out, out_message, out_clause):
    """Append the clauses of the found lists that match a point; returns pairs (or OUTPUT_FULL) and candidates."""
    start, size, item, box, signature = entries
    keyword_start, keyword = words
    for i in range(n_found):
        first = start[found[i]]
        prefetch(signature, first)
        for entry in range(first, first + min(size[found[i]], N_AHEAD), 2):
            prefetch(box, 4 * entry)
    n_candidates = 0
    for i in range(n_found):
        first = start[found[i]]
        last = first + size[found[i]]
        n_candidates += last - first
        for entry in range(first, last):
            bits = signature[entry]
            if bits & lacking != 0:
                continue
            if box[4 * entry] <= x and x <= box[4 * entry + 2] and box[4 * entry + 1] <= y and y <= box[4 * entry + 3]:
                clause = item[entry]
                # Without bits the list's own keyword is the only one.
                if bits == 0 or has_all(stamp, mark, keyword, keyword_start[clause], keyword_start[clause + 1]):
                    if n_out == out_clause.size:
                        return OUTPUT_FULL, n_candidates
                    out_message[n_out] = message
                    out_clause[n_out] = clause
                    n_out += 1
    return n_out, n_candidates


@inline_kernel
def scan_for_box(
    found, n_found, list_keys, entries, words, stamp, mark, lacking, place, message, n_out, out_message, out_clause
):
    """Append the clauses of the found lists that match a box, each in the cell of its reference point; as `scan_for_point`."""
    start, size, item, box, signature = entries
    keyword_start, keyword = words
    frame, max_depth, x0, y0, x1, y1, column0, row0 = place
    n_columns = 1 << max_depth
    n_candidates = 0
    for i in range(n_found):
        code = code_of_key(list_keys[found[i]])
        shift = 2 * (max_depth - depth_of_code(code))
        for entry in range(start[found[i]], start[found[i]] + size[found[i]]):
            # The column of a maximum is the maximum of the columns.
            column = max(column0, column_of(box[4 * entry], frame[0], frame[1], frame[2], n_columns))
            row = max(row0, column_of(box[4 * entry + 1], frame[3], frame[4], frame[5], n_columns))
            if cell_code(max_depth, column, row) >> shift != code:
                continue
            n_candidates += 1
            bits = signature[entry]
            if bits & lacking != 0:
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
def reach_with_box(directory, keyword, begin, end, max_depth, cells, found):
    """Write the lists of a message's keywords whose cells the message meets; returns their number.

    `cells` is (column0, row0, column1, row1) at the greatest depth. Where the box has more cells than a keyword has lists, the
    lists are looked through instead.
    """
    slot, door, chain, list_keys, list_next = directory
    column0, row0, column1, row1 = cells
    n_found = 0
    for at in range(begin - 1, end):
        owner = CATCH_ALL if at < begin else 1 + keyword[at]
        if owner >= door.size // 2:
            continue
        root, depths = door[2 * owner + ROOT_LIST], door[2 * owner + DEPTHS]
        n_cells = 1
        for depth in range(1, max_depth + 1):
            if (depths >> depth) & 1:
                shift = max_depth - depth
                n_cells += ((column1 >> shift) - (column0 >> shift) + 1) * ((row1 >> shift) - (row0 >> shift) + 1)
        if n_cells > chain[2 * owner + N_LISTS_OF]:
            number = chain[2 * owner + FIRST_LIST]
            while number != NO_LIST:
                code = code_of_key(list_keys[number])
                shift = max_depth - depth_of_code(code)
                column, row = column_of_code(code), row_of_code(code)
                if (
                    (column0 >> shift) <= column
                    and column <= (column1 >> shift)
                    and (row0 >> shift) <= row
                    and row <= (row1 >> shift)
                ):
                    found[n_found] = number
                    n_found += 1
                number = list_next[number]
            continue
        if root != NO_LIST:
            found[n_found] = root
            n_found += 1
        for depth in range(1, max_depth + 1):
            if (depths >> depth) & 1 == 0:
                continue
            shift = max_depth - depth
            for column in range(column0 >> shift, (column1 >> shift) + 1):
                for row in range(row0 >> shift, (row1 >> shift) + 1):
                    key = list_key(owner, cell_code(depth, column, row))
                    number = find_value(slot, key, home(key, slot.size // 2), NO_LIST)
                    if number != NO_LIST:
                        found[n_found] = number
                        n_found += 1
    return n_found
