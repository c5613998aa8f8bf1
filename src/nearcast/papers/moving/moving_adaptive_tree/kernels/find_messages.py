"""Find the live messages of clauses: at the leaves they are filed in, and at every node above."""

from __future__ import annotations

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.kernels.sorting import sort_few, sort_many
from nearcast.moving.kernels.live_messages import matches_only_new_box
from nearcast.papers.boolean.adaptive_tree.kernels.by_keyword import find_cut, proven_in, step_in
from nearcast.papers.boolean.adaptive_tree.kernels.by_space import strip_of
from nearcast.papers.boolean.adaptive_tree.kernels.nodes import narrow_region
from nearcast.papers.boolean.adaptive_tree.layout import (
    BLOCK_FIELDS,
    BOUNDS,
    EXTRA,
    FIRST,
    KEYWORD,
    KIND,
    LEAF,
    NO_NODE,
    NODE_FIELDS,
    ROOT,
    ROWS,
    SIZE,
)
from nearcast.papers.moving.moving_adaptive_tree.kernels.message_lists import bits_of, rounded
from nearcast.papers.moving.moving_adaptive_tree.layout import BEGIN, COUNT, LIST_FIELDS

_FEW = 24


# --- the path of a clause ----------------------------------------------------------------------------------------------


@inline_kernel
def rank_clause(rank_of, keyword, begin, end, rank):
    """Write the ranks of a clause's keywords in ascending order; returns their number."""
    for at in range(begin, end):
        rank[at - begin] = rank_of[keyword[at]]
    if end - begin <= _FEW:
        sort_few(rank, 0, end - begin)
    else:
        sort_many(rank, 0, end - begin)
    return end - begin


@inline_kernel
def covers_region(box, region, at):
    return box[0] <= region[at] and box[1] <= region[at + 1] and region[at + 2] <= box[2] and region[at + 3] <= box[3]


@inline_kernel
def follow(structure, box, other, rank, n_ranks, is_refining, queue, offset, proven, region):
    """Write every node on the path of a clause with a box; returns how many, and two facts about the path:

    whether a child on it is missing; whether the same clause with the box `other` would have the same path.
    `structure` is node, block, bound and the region of the root; a box is four numbers. For each node `offset` gets the
    keywords used, `proven` the bits of those proven, `region` four numbers.
    """
    node, block, bound, whole = structure
    x0, y0, x1, y1 = box
    queue[0], offset[0], proven[0] = ROOT, 0, 0
    for side in range(4):
        region[side] = whole[side]
    n, number, is_missing, is_same = 1, 0, False, True
    while number < n:
        record, at, region_at = NODE_FIELDS * queue[number], offset[number], 4 * number
        number += 1
        kind, first, size = node[record + KIND], node[record + FIRST], node[record + SIZE]
        if kind == LEAF:
            continue
        child, column0, column1, row0, row1, n_columns, bounds = node[record + EXTRA], 0, 0, 0, 0, 1, 0
        is_cells, proves = False, proven[number - 1]
        if kind == KEYWORD:
            if at < n_ranks:
                cuts = first + BLOCK_FIELDS + size
                cut = find_cut(block, cuts, size, rank[at], 0)
                child = block[first + BLOCK_FIELDS + cut]
                proves = proven_in(block, cuts, cut, size, proves, at)
                at += step_in(block, cuts, cut, size, is_refining)
        else:
            is_cells = not covers_region(box, region, region_at)
            is_same = is_same and is_cells != covers_region(other, region, region_at)
        if is_cells:
            bounds, n_columns, n_rows = block[first + BOUNDS], size // ROWS, size % ROWS
            rows_at = bounds + n_columns
            column0, column1 = strip_of(bound, bounds + 1, n_columns, x0), strip_of(bound, bounds + 1, n_columns, x1)
            row0, row1 = strip_of(bound, rows_at, n_rows, y0), strip_of(bound, rows_at, n_rows, y1)
            is_same = (
                is_same
                and column0 == strip_of(bound, bounds + 1, n_columns, other[0])
                and column1 == strip_of(bound, bounds + 1, n_columns, other[2])
                and row0 == strip_of(bound, rows_at, n_rows, other[1])
                and row1 == strip_of(bound, rows_at, n_rows, other[3])
            )
        for row in range(row0, row1 + 1):
            for column in range(column0, column1 + 1):
                if is_cells:
                    child = block[first + BLOCK_FIELDS + row * n_columns + column]
                if child == NO_NODE:
                    is_missing = True
                    continue
                queue[n], offset[n], proven[n] = child, at, proves
                for side in range(4):
                    region[4 * n + side] = region[region_at + side]
                if is_cells:
                    narrow_region(region, 4 * n, bound, bounds, n_columns, size % ROWS, column, row)
                n += 1
    return n, is_missing, is_same


# --- its messages ------------------------------------------------------------------------------------------------------


@inline_kernel
def prefilter(entries, first, last, box, bits, candidates):
    """Write the messages of a list that may be in the box (four rounded numbers) and have the bits; returns how many.

    There are no branches in the first loop, because they are unpredictable. `candidates` is large enough for all.
    """
    slot, signature, point = entries
    x0, y0, x1, y1 = box
    n = 0
    for entry in range(first, last):
        x, y = point[2 * entry], point[2 * entry + 1]
        candidates[n] = entry
        n += (x >= x0) & (x <= x1) & (y >= y0) & (y <= y1)
    n_near, n = n, 0
    for i in range(n_near):
        entry = candidates[i]
        if signature[entry] & bits == bits:
            candidates[n] = slot[entry]
            n += 1
    return n


@kernel
def find_messages(tree, lists, clauses, messages, scratch, range_messages, is_refining, slots, excluded, first, n_out, output):
    """Append the messages of each clause; see `kernel_calls.run_until_it_fits` for `first`, `n_out` and the result.

    A node is visited once for each clause and has no message twice. Range messages, with an area, are in `range_messages`.
    """
    tree, lists, clauses = borrow(tree), borrow(lists), borrow(clauses)
    messages, scratch, output = borrow(messages), borrow(scratch), borrow(output)
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    cx0, cy0, cx1, cy1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    clause_arrays = (cx0, cy0, cx1, cy1, keyword_start, keyword)
    is_alive, keyword_first, n_keywords = messages.is_alive, messages.keyword_first, messages.n_keywords
    mx0, my0, mx1, my1, member = messages.x0, messages.y0, messages.x1, messages.y1, messages.keyword
    live = (mx0, my0, mx1, my1, is_alive, keyword_first, n_keywords, member)
    structure, rank_of = (tree.node, tree.block, tree.bound, tree.region), tree.rank
    rank, queue, offset, proven, region = scratch.rank, scratch.queue, scratch.offset, scratch.proven, scratch.region
    entries, node_list = (lists.slot, lists.signature, lists.point), lists.node_list
    bx0, by0, bx1, by1 = excluded
    out_clause, out_message, counters = output.clause, output.message, output.counters
    for i in range(first, slots.size):
        before, n_candidates, clause = n_out, 0, slots[i]
        excluded_box = (bx0[i], by0[i], bx1[i], by1[i])
        box = (cx0[clause], cy0[clause], cx1[clause], cy1[clause])
        near = (rounded(box[0]), rounded(box[1]), rounded(box[2]), rounded(box[3]))
        n_ranks = rank_clause(rank_of, keyword, keyword_start[clause], keyword_start[clause + 1], rank)
        bits = bits_of(rank, n_ranks)
        n_nodes, _, _ = follow(structure, box, box, rank, n_ranks, is_refining, queue, offset, proven, region)
        for number in range(n_nodes):
            record = LIST_FIELDS * queue[number]
            entry, last = node_list[record + BEGIN], node_list[record + BEGIN] + node_list[record + COUNT]
            n_candidates += last - entry
            # Candidates are written to the output at once, and stay there if they match.
            if n_out + last - entry > out_message.size:
                return i, before
            n_candidates_left = prefilter(entries, entry, last, near, bits, out_message[n_out:])
            for at in range(n_out, n_out + n_candidates_left):
                message = out_message[at]
                if matches_only_new_box(clause, message, clause_arrays, live, excluded_box):
                    out_clause[n_out], out_message[n_out] = clause, message
                    n_out += 1
        n_candidates += range_messages.size
        for entry in range(range_messages.size):
            if matches_only_new_box(clause, range_messages[entry], clause_arrays, live, excluded_box):
                if n_out == out_clause.size:
                    return i, before
                out_clause[n_out], out_message[n_out] = clause, range_messages[entry]
                n_out += 1
        counters[NODES] += n_nodes
        counters[CANDIDATES] += n_candidates
    return slots.size, n_out
