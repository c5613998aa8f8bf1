"""Go down the pyramid with a message: its lists in each cell, the tries of its frequent keywords, and only these further down.

Clauses below a cell have only keywords that are frequent in the cell, so other keywords are dropped there. A point has one cell
in each grid and meets a clause once. A box meets a clause in several cells: it is reported in the cell of the lower left corner
of their intersection.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.boxes import meets
from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.hashing import find_value, home
from nearcast.kernels.keyword_sets import has_all, mark_keywords
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.kernels.quadtree import column_of
from nearcast.kernels.simd import prefetch
from nearcast.papers.boolean.frequency_pyramid.kernels.lists import edge_key, entry_at, list_size, signature_at
from nearcast.papers.boolean.frequency_pyramid.layout import (
    BELOW,
    CLAUSE,
    ENTRY_WORDS,
    MASK,
    N_UNCLEANED,
    NO_ANCHOR,
    NODE_FIELDS,
    NOTHING,
    ROOT,
)
from nearcast.papers.boolean.quadtrees.kernels.lists import keyword_bit
from nearcast.papers.boolean.quadtrees.kernels.match import OUTPUT_FULL, absent_bits

LINE_WORDS = 8  # words of a cache line
FARTHEST = 200  # words of a list that are prefetched; the processor prefetches what follows


@inline_kernel
def write_keys(frequency, keyword, begin, end, key, bit):
    """Write the anchors of a message that some clause has, in the order of tries; returns how many."""
    n_keys = 0
    if frequency[NO_ANCHOR] > 0:
        key[0], bit[0] = NO_ANCHOR, keyword_bit(NO_ANCHOR)
        n_keys = 1
    for at in range(end - 1, begin - 1, -1):
        anchor = 1 + np.int64(keyword[at])
        if anchor < frequency.size and frequency[anchor] > 0:
            key[n_keys], bit[n_keys] = anchor, keyword_bit(anchor)
            n_keys += 1
    return n_keys


@inline_kernel
def search(slot, node, word, cell, keys, first, n_keys, target, buffers, starts, n_lists, queue):
    """Append the lists of a cell that a message reaches to `starts`, and write its frequent keys from `target` on.

    Keys are read from `first` on, which may equal `target`. The queue has nodes of tries and the position of the next key of
    each. A round prefetches the slots of many edges before it reads the first. Returns the numbers of lists, frequent keys, and
    nodes.
    """
    key, bit = keys
    edge, first_slot, key_position = buffers
    n_slots = slot.size // 2
    queue[0], queue[1] = cell, first
    n_served, n_queued, last, n_frequent = 0, 1, first + n_keys, 0
    while n_served < n_queued:
        n_edges, is_cell = 0, n_served == 0
        while n_served < n_queued and n_edges + n_keys <= edge.size:
            number, at = queue[2 * n_served], queue[2 * n_served + 1]
            ending = node[NODE_FIELDS * number + BELOW]
            if ending != NOTHING and not is_cell:
                starts[n_lists] = ending
                n_lists += 1
                prefetch(word, ending)
            n_served += 1
            mask = node[NODE_FIELDS * number + MASK]
            for i in range(at, last):
                if mask & bit[i] != 0:
                    edge[n_edges] = edge_key(number, key[i])
                    first_slot[n_edges] = home(edge[n_edges], n_slots)
                    key_position[n_edges] = i
                    prefetch(slot, 2 * first_slot[n_edges])
                    n_edges += 1
        for i in range(n_edges):
            value = find_value(slot, edge[i], first_slot[i], NOTHING)
            if value >= 0:
                starts[n_lists] = value
                n_lists += 1
                prefetch(word, value)
            elif value < NOTHING:
                prefetch(node, NODE_FIELDS * ~value)
                after = key_position[i] + 1
                if is_cell:
                    # Reading is ahead of writing.
                    key[target + n_frequent], bit[target + n_frequent] = key[key_position[i]], bit[key_position[i]]
                    n_frequent += 1
                    after = target + n_frequent
                queue[2 * n_queued], queue[2 * n_queued + 1] = ~value, after
                n_queued += 1
        if is_cell:
            n_keys, last = n_frequent, target + n_frequent
    return n_lists, n_frequent, n_queued


@inline_kernel
def scan_for_point(lists, starts, n_lists, clauses, stamp, mark, absent, x, y, message, n_out, out_message, out_clause):
    """Append the clauses of these lists that match a point; returns pairs (or OUTPUT_FULL) and candidates."""
    word, number = lists
    keyword_start, keyword, is_alive, has_dead = clauses
    for i in range(n_lists):
        stop = starts[i] + min(FARTHEST, 1 + (1 + ENTRY_WORDS) * list_size(word[starts[i]]))
        for at in range(starts[i] + LINE_WORDS, stop, LINE_WORDS):
            prefetch(word, at)
    n_candidates = 0
    for i in range(n_lists):
        start = starts[i]
        size, first = list_size(word[start]), entry_at(word, start, 0)
        n_candidates += size
        for position in range(size):
            bits = word[signature_at(start, position)]
            entry = first + ENTRY_WORDS * position
            if has_dead and not is_alive[word[entry + CLAUSE]]:
                n_candidates -= 1
                continue
            # One branch instead of five: few clauses pass, and which test fails is unpredictable.
            is_near = (number[entry] <= x) & (x <= number[entry + 2]) & (number[entry + 1] <= y) & (y <= number[entry + 3])
            if is_near & (bits & absent == 0):
                clause = word[entry + CLAUSE]
                # Without bits the path to the list has proven every keyword.
                if bits != 0 and not has_all(stamp, mark, keyword, keyword_start[clause], keyword_start[clause + 1]):
                    continue
                if n_out == out_clause.size:
                    return OUTPUT_FULL, n_candidates
                out_message[n_out] = message
                out_clause[n_out] = clause
                n_out += 1
    return n_out, n_candidates


@inline_kernel
def scan_for_box(lists, starts, n_lists, clauses, stamp, mark, absent, area, message, n_out, out_message, out_clause):
    """As `scan_for_point`, for a box in one cell: only clauses whose intersection with it begins there."""
    word, number = lists
    keyword_start, keyword, is_alive, has_dead = clauses
    frame, max_depth, box, corner, cell = area
    depth, cell_column, cell_row = cell
    n_columns, shift = 1 << max_depth, max_depth - depth
    n_candidates = 0
    for i in range(n_lists):
        start = starts[i]
        for position in range(list_size(word[start])):
            entry = entry_at(word, start, position)
            # The column of a maximum is the maximum of the columns.
            column = max(corner[0], column_of(number[entry], frame[0], frame[1], frame[2], n_columns))
            row = max(corner[1], column_of(number[entry + 1], frame[3], frame[4], frame[5], n_columns))
            if column >> shift != cell_column or row >> shift != cell_row:
                continue
            if has_dead and not is_alive[word[entry + CLAUSE]]:
                continue
            n_candidates += 1
            bits = word[signature_at(start, position)]
            if bits & absent != 0:
                continue
            x0, y0, x1, y1 = box
            if meets(number[entry], number[entry + 1], number[entry + 2], number[entry + 3], x0, y0, x1, y1):
                clause = word[entry + CLAUSE]
                if bits != 0 and not has_all(stamp, mark, keyword, keyword_start[clause], keyword_start[clause + 1]):
                    continue
                if n_out == out_clause.size:
                    return OUTPUT_FULL, n_candidates
                out_message[n_out] = message
                out_clause[n_out] = clause
                n_out += 1
    return n_out, n_candidates


@kernel
def match_messages(pyramid, max_depth, clauses, messages, scratch, mark, first, n_out, output):
    """Append every matching pair; see `kernel_calls.run_until_it_fits` for `first`, `n_out` and the result."""
    pyramid, clauses, messages = borrow(pyramid), borrow(clauses), borrow(messages)
    scratch, output = borrow(scratch), borrow(output)
    node, slot, word, frequency, frame = pyramid.node, pyramid.slot, pyramid.word, pyramid.frequency, pyramid.frame
    lists = (word, pyramid.number)
    clause_arrays = (clauses.keyword_start, clauses.keyword, clauses.is_alive, pyramid.head[N_UNCLEANED] > 0)
    stamp, key, bit, edge, first_slot, key_position, starts, queue, cells = scratch
    keys, buffers = (key, bit), (edge, first_slot, key_position)
    mx0, my0, mx1, my1 = messages.x0, messages.y0, messages.x1, messages.y1
    message_start, keyword = messages.keyword_start, messages.keyword
    out_message, out_clause, counters = output.message, output.clause, output.counters
    n_columns, longest = 1 << max_depth, key.size // (max_depth + 2)
    for message in range(first, mx0.size):
        before = n_out
        current = mark + 1 + message
        begin, end = message_start[message], message_start[message + 1]
        mark_keywords(stamp, current, keyword, begin, end)
        absent = absent_bits(keyword, begin, end)
        x0, y0, x1, y1 = mx0[message], my0[message], mx1[message], my1[message]
        column0 = column_of(x0, frame[0], frame[1], frame[2], n_columns)
        row0 = column_of(y0, frame[3], frame[4], frame[5], n_columns)
        n_keys = write_keys(frequency, keyword, begin, end, key, bit)
        n_visited, n_candidates = 0, 0
        if x0 == x1 and y0 == y1:
            cell, shift, n_lists = np.int64(ROOT), max_depth, 0
            while n_keys > 0:
                n_lists, n_keys, n_queued = search(slot, node, word, cell, keys, 0, n_keys, 0, buffers, starts, n_lists, queue)
                n_visited += n_queued
                block = node[NODE_FIELDS * cell + BELOW]
                if block == NOTHING:
                    break
                shift -= 1
                cell = block + ((column0 >> shift) & 1) + 2 * ((row0 >> shift) & 1)
            n_visited += n_lists
            n_out, n_candidates = scan_for_point(
                lists, starts, n_lists, clause_arrays, stamp, current, absent, x0, y0, message, n_out, out_message, out_clause
            )
            if n_out == OUTPUT_FULL:
                return message, before
        else:
            column1 = column_of(x1, frame[0], frame[1], frame[2], n_columns)
            row1 = column_of(y1, frame[3], frame[4], frame[5], n_columns)
            n_cells = 0
            if n_keys > 0:
                cells[0], cells[1], cells[2], cells[3], cells[4] = ROOT, 0, 0, 0, n_keys
                n_cells = 1
            while n_cells > 0:
                n_cells -= 1
                at = 5 * n_cells
                cell, depth, column, row, n_keys = cells[at], cells[at + 1], cells[at + 2], cells[at + 3], cells[at + 4]
                # Each depth has its own keys: those of the cell above are read until all its quarters are done.
                n_lists, n_keys, n_queued = search(
                    slot, node, word, cell, keys, depth * longest, n_keys, (depth + 1) * longest, buffers, starts, 0, queue
                )
                n_visited += n_queued + n_lists
                area = (frame, max_depth, (x0, y0, x1, y1), (column0, row0), (depth, column, row))
                n_out, n_tested = scan_for_box(
                    lists, starts, n_lists, clause_arrays, stamp, current, absent, area, message, n_out, out_message, out_clause
                )
                if n_out == OUTPUT_FULL:
                    return message, before
                n_candidates += n_tested
                block = node[NODE_FIELDS * cell + BELOW]
                if block == NOTHING or n_keys == 0:
                    continue
                shift = max_depth - depth - 1
                for quarter in range(4):
                    left, bottom = 2 * column + (quarter & 1), 2 * row + (quarter >> 1)
                    if (
                        (column0 >> shift) <= left
                        and left <= (column1 >> shift)
                        and (row0 >> shift) <= bottom
                        and bottom <= (row1 >> shift)
                    ):
                        at = 5 * n_cells
                        cells[at], cells[at + 1], cells[at + 2] = block + quarter, depth + 1, left
                        cells[at + 3], cells[at + 4] = bottom, n_keys
                        n_cells += 1
        counters[NODES] += n_visited
        counters[CANDIDATES] += n_candidates
    return mx0.size, n_out
