"""Walk from the root to the leaves that a message reaches, then scan them.

Two steps, so that the memory of the next nodes and of the leaves can be prefetched. A point reaches one cell of each grid, so
it meets each clause once. A box may meet a clause in several cells: it is reported in the cell of the lower left corner of
their intersection, which is one cell.
Paper: Algorithm 1; η = `position`, from 0.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.boxes import meets
from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.keyword_sets import has_all, mark_keywords
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.kernels.simd import prefetch
from nearcast.kernels.sorting import sort_run
from nearcast.papers.boolean.adaptive_tree.kernels.by_keyword import find_cut, step_in
from nearcast.papers.boolean.adaptive_tree.kernels.by_space import strip_of
from nearcast.papers.boolean.adaptive_tree.layout import (
    BLOCK_FIELDS,
    BOUNDS,
    EXTRA,
    FIRST,
    KEYWORD,
    KIND,
    LEAF,
    NO_NODE,
    NO_RANK,
    NODE_FIELDS,
    ROOT,
    ROWS,
    SIZE,
)
from nearcast.papers.boolean.quadtrees.kernels.lists import keyword_bit

OUTPUT_FULL = -1
_AHEAD = 4  # nodes of the queue whose blocks are prefetched
_PER_LINE = 8  # signatures in a line of cache


@inline_kernel
def rank_keywords(rank_of, keyword, begin, end, rank):
    """Write the sorted ranks of the message's keywords, without those that no clause has; returns their number."""
    for at in range(begin, end):
        if keyword[at] < rank_of.size:
            prefetch(rank_of, keyword[at])
    n = 0
    for at in range(begin, end):
        if keyword[at] < rank_of.size and rank_of[keyword[at]] != NO_RANK:
            rank[n] = rank_of[keyword[at]]
            n += 1
    sort_run(rank, 0, n)
    return n


@inline_kernel
def absent_bits(rank, n_ranks):
    """The bits that no keyword of the message has: a clause with one of them requires a keyword that the message lacks."""
    bits = np.int64(0)
    for at in range(n_ranks):
        bits |= keyword_bit(rank[at])
    return ~bits


@inline_kernel
def enter(node, queue, position, n_queued, child, at):
    """Put a child on the queue, to be entered with the message's keywords from `at` on; returns the length of the queue."""
    if child == NO_NODE:
        return n_queued
    prefetch(node, NODE_FIELDS * child)
    queue[n_queued] = child
    position[n_queued] = at
    return n_queued + 1


@inline_kernel
def enter_cuts(node, block, record, rank, n_ranks, queue, position, n_queued, at, is_refining):
    """Enter each cut that has a keyword of the message, with the keywords behind the first one in it."""
    first, n_cuts = node[record + FIRST], node[record + SIZE]
    cuts = first + BLOCK_FIELDS + n_cuts
    before, cut = -1, 0
    for i in range(at, n_ranks):
        cut = find_cut(block, cuts, n_cuts, rank[i], cut)
        if cut != before:
            before = cut
            n_queued = enter(
                node,
                queue,
                position,
                n_queued,
                block[first + BLOCK_FIELDS + cut],
                i + step_in(block, cuts, cut, n_cuts, is_refining),
            )
    return n_queued


@inline_kernel
def reach_with_point(node, block, bound, signature, rank, n_ranks, x, y, queue, position, leaf, is_refining):
    """Write the leaves that a point reaches; returns how many leaves and how many nodes."""
    queue[0], position[0] = ROOT, 0
    n_queued, n_leaves, number = 1, 0, 0
    while number < n_queued:
        ahead = number + _AHEAD
        if ahead < n_queued and node[NODE_FIELDS * queue[ahead] + KIND] != LEAF:
            prefetch(block, node[NODE_FIELDS * queue[ahead] + FIRST])
        record = NODE_FIELDS * queue[number]
        at = position[number]
        number += 1
        kind = node[record + KIND]
        first = node[record + FIRST]
        if kind == LEAF:
            leaf[n_leaves] = record
            n_leaves += 1
            prefetch(signature, first)
            prefetch(signature, first + _PER_LINE)
            continue
        if kind == KEYWORD:
            n_queued = enter_cuts(node, block, record, rank, n_ranks, queue, position, n_queued, at, is_refining)
        else:
            bounds = block[first + BOUNDS]
            n_columns, n_rows = node[record + SIZE] // ROWS, node[record + SIZE] % ROWS
            column = strip_of(bound, bounds + 1, n_columns, x)
            row = strip_of(bound, bounds + n_columns, n_rows, y)
            n_queued = enter(node, queue, position, n_queued, block[first + BLOCK_FIELDS + row * n_columns + column], at)
        n_queued = enter(node, queue, position, n_queued, node[record + EXTRA], at)
    return n_leaves, n_queued


@inline_kernel
def scan_for_point(
    leaf, n_leaves, entries, clause_keywords, stamp, mark, absent, x, y, message, n_out, out_message, out_clause
):
    """Append the clauses of the leaves that match a point; returns pairs (or OUTPUT_FULL) and candidates."""
    node, entry_clause, signature, box = entries
    keyword_start, keyword = clause_keywords
    n_candidates = 0
    for i in range(n_leaves):
        record = leaf[i]
        first = node[record + FIRST]
        last = first + node[record + SIZE]
        n_candidates += last - first
        for entry in range(first, last):
            bits = signature[entry]
            if bits & absent != 0:
                continue
            if box[4 * entry] <= x and x <= box[4 * entry + 2] and box[4 * entry + 1] <= y and y <= box[4 * entry + 3]:
                clause = entry_clause[entry]
                # Without bits the path to the leaf has proven every keyword.
                if bits == 0 or has_all(stamp, mark, keyword, keyword_start[clause], keyword_start[clause + 1]):
                    if n_out == out_clause.size:
                        return OUTPUT_FULL, n_candidates
                    out_message[n_out] = message
                    out_clause[n_out] = clause
                    n_out += 1
    return n_out, n_candidates


@kernel
def reach_with_box(node, block, bound, rank, n_ranks, x0, y0, x1, y1, queue, position, cell, is_refining):
    """Fill the queue with every node that a box reaches, and `cell` with the half-open cell of each; returns how many."""
    queue[0], position[0] = ROOT, 0
    cell[0], cell[1], cell[2], cell[3] = -np.inf, -np.inf, np.inf, np.inf
    n_queued, number = 1, 0
    while number < n_queued:
        record = NODE_FIELDS * queue[number]
        at, before = position[number], n_queued
        kind, first = node[record + KIND], node[record + FIRST]
        if kind == KEYWORD:
            n_queued = enter_cuts(node, block, record, rank, n_ranks, queue, position, n_queued, at, is_refining)
        elif kind != LEAF:
            bounds = block[first + BOUNDS]
            n_columns, n_rows = node[record + SIZE] // ROWS, node[record + SIZE] % ROWS
            rows_at = bounds + n_columns
            column0, column1 = strip_of(bound, bounds + 1, n_columns, x0), strip_of(bound, bounds + 1, n_columns, x1)
            row0, row1 = strip_of(bound, rows_at, n_rows, y0), strip_of(bound, rows_at, n_rows, y1)
            for row in range(row0, row1 + 1):
                for column in range(column0, column1 + 1):
                    child = block[first + BLOCK_FIELDS + row * n_columns + column]
                    if child == NO_NODE:
                        continue
                    child_cell = 4 * n_queued
                    n_queued = enter(node, queue, position, n_queued, child, at)
                    cell[child_cell] = bound[bounds + column] if column > 0 else cell[4 * number]
                    cell[child_cell + 1] = bound[rows_at + row - 1] if row > 0 else cell[4 * number + 1]
                    cell[child_cell + 2] = bound[bounds + 1 + column] if column < n_columns - 1 else cell[4 * number + 2]
                    cell[child_cell + 3] = bound[rows_at + row] if row < n_rows - 1 else cell[4 * number + 3]
            before = n_queued
        if kind != LEAF:
            n_queued = enter(node, queue, position, n_queued, node[record + EXTRA], at)
        for child_at in range(before, n_queued):
            for coordinate in range(4):
                cell[4 * child_at + coordinate] = cell[4 * number + coordinate]
        number += 1
    return n_queued


@kernel
def scan_for_box(
    queue, n_queued, cell, entries, clause_keywords, stamp, mark, absent, message_box, message, n_out, out_message, out_clause
):
    """Append the clauses of the leaves that match a box, each in the cell of its reference point; as `scan_for_point`."""
    node, entry_clause, signature, box = entries
    keyword_start, keyword = clause_keywords
    x0, y0, x1, y1 = message_box
    n_candidates = 0
    for number in range(n_queued):
        record = NODE_FIELDS * queue[number]
        if node[record + KIND] != LEAF:
            continue
        left, bottom, right, top = cell[4 * number], cell[4 * number + 1], cell[4 * number + 2], cell[4 * number + 3]
        for entry in range(node[record + FIRST], node[record + FIRST] + node[record + SIZE]):
            x, y = max(box[4 * entry], x0), max(box[4 * entry + 1], y0)
            if x < left or x >= right or y < bottom or y >= top:
                continue
            n_candidates += 1
            if signature[entry] & absent != 0:
                continue
            if meets(box[4 * entry], box[4 * entry + 1], box[4 * entry + 2], box[4 * entry + 3], x0, y0, x1, y1):
                clause = entry_clause[entry]
                if has_all(stamp, mark, keyword, keyword_start[clause], keyword_start[clause + 1]):
                    if n_out == out_clause.size:
                        return OUTPUT_FULL, n_candidates
                    out_message[n_out] = message
                    out_clause[n_out] = clause
                    n_out += 1
    return n_out, n_candidates


@kernel
def match_messages(tree, clauses, messages, is_refining, scratch, mark, first, n_out, output):
    """Append every matching pair; see `kernel_calls.run_until_it_fits` for `first`, `n_out` and the result."""
    tree, clauses, messages, scratch, output = borrow(tree), borrow(clauses), borrow(messages), borrow(scratch), borrow(output)
    node, block, bound, signature, box = tree.node, tree.block, tree.bound, tree.signature, tree.box
    rank_of = tree.rank
    entries = (node, tree.clause, signature, box)
    clause_keywords = (clauses.keyword_start, clauses.keyword)
    stamp, rank, queue, position, leaf, cell = scratch
    mx0, my0, mx1, my1 = messages.x0, messages.y0, messages.x1, messages.y1
    message_start, keyword = messages.keyword_start, messages.keyword
    out_message, out_clause, counters = output.message, output.clause, output.counters
    for message in range(first, mx0.size):
        before = n_out
        current = mark + 1 + message
        begin, end = message_start[message], message_start[message + 1]
        n_ranks = rank_keywords(rank_of, keyword, begin, end, rank)
        mark_keywords(stamp, current, keyword, begin, end)
        absent = absent_bits(rank, n_ranks)
        x0, y0, x1, y1 = mx0[message], my0[message], mx1[message], my1[message]
        if x0 == x1 and y0 == y1:
            n_leaves, n_nodes = reach_with_point(
                node, block, bound, signature, rank, n_ranks, x0, y0, queue, position, leaf, is_refining
            )
            n_out, n_candidates = scan_for_point(
                leaf,
                n_leaves,
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
            n_nodes = reach_with_box(node, block, bound, rank, n_ranks, x0, y0, x1, y1, queue, position, cell, is_refining)
            message_box = (x0, y0, x1, y1)
            n_out, n_candidates = scan_for_box(
                queue,
                n_nodes,
                cell,
                entries,
                clause_keywords,
                stamp,
                current,
                absent,
                message_box,
                message,
                n_out,
                out_message,
                out_clause,
            )
        if n_out == OUTPUT_FULL:
            return message, before
        counters[NODES] += n_nodes
        counters[CANDIDATES] += n_candidates
    return mx0.size, n_out
