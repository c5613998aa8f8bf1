"""Look for the living messages of clauses: at the leaves they are filed in, and at every node above."""

from __future__ import annotations

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.moving.kernels.live_messages import is_wanted
from nearcast.papers.moving.moving_adaptive_tree.kernels.message_lists import bits_of, rounded
from nearcast.papers.moving.moving_adaptive_tree.kernels.path import follow, rank_clause
from nearcast.papers.moving.moving_adaptive_tree.layout import BEGIN, COUNT, LIST_FIELDS


@inline_kernel
def sift(listed, first, last, box, bits, sifted):
    """Write the messages of a list that may be in the box (four rounded numbers) and have the bits; returns how many.

    Without branches while nothing is known, for most messages are neither clearly in nor out; `sifted` has room for all.
    """
    slot, signature, place = listed
    x0, y0, x1, y1 = box
    n = 0
    for entry in range(first, last):
        x, y = place[2 * entry], place[2 * entry + 1]
        sifted[n] = entry
        n += (x >= x0) & (x <= x1) & (y >= y0) & (y <= y1)
    n_near, n = n, 0
    for i in range(n_near):
        entry = sifted[i]
        if signature[entry] & bits == bits:
            sifted[n] = slot[entry]
            n += 1
    return n


@kernel
def look_in_lists(tree, lists, clauses, messages, scratch, wide, is_refining, slots, besides, first, n_out, output):
    """Append every message of each clause; see `kernel_calls.run_until_it_fits` for `first`, `n_out` and the result.

    A node is visited once for each clause, and holds no message twice; messages with an area are in `wide`.
    """
    tree, lists, clauses = borrow(tree), borrow(lists), borrow(clauses)
    messages, scratch, output = borrow(messages), borrow(scratch), borrow(output)
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    cx0, cy0, cx1, cy1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    own = (cx0, cy0, cx1, cy1, keyword_start, keyword)
    is_alive, keyword_first, n_keywords = messages.is_alive, messages.keyword_first, messages.n_keywords
    mx0, my0, mx1, my1, member = messages.x0, messages.y0, messages.x1, messages.y1, messages.keyword
    live = (mx0, my0, mx1, my1, is_alive, keyword_first, n_keywords, member)
    structure, rank_of = (tree.node, tree.block, tree.bound, tree.region), tree.rank
    rank, queue, offset, proven, region = scratch.rank, scratch.queue, scratch.offset, scratch.proven, scratch.region
    listed, list_of = (lists.slot, lists.signature, lists.place), lists.own
    bx0, by0, bx1, by1 = besides
    out_clause, out_message, counters = output.clause, output.message, output.counters
    for i in range(first, slots.size):
        before, n_candidates, clause = n_out, 0, slots[i]
        other = (bx0[i], by0[i], bx1[i], by1[i])
        box = (cx0[clause], cy0[clause], cx1[clause], cy1[clause])
        near = (rounded(box[0]), rounded(box[1]), rounded(box[2]), rounded(box[3]))
        n_ranks = rank_clause(rank_of, keyword, keyword_start[clause], keyword_start[clause + 1], rank)
        bits = bits_of(rank, n_ranks)
        n_nodes, _, _ = follow(structure, box, box, rank, n_ranks, is_refining, queue, offset, proven, region)
        for number in range(n_nodes):
            record = LIST_FIELDS * queue[number]
            entry, last = list_of[record + BEGIN], list_of[record + BEGIN] + list_of[record + COUNT]
            n_candidates += last - entry
            # What is sifted goes to the output at once, and stays there if it is wanted.
            if n_out + last - entry > out_message.size:
                return i, before
            n_sifted = sift(listed, entry, last, near, bits, out_message[n_out:])
            for at in range(n_out, n_out + n_sifted):
                message = out_message[at]
                if is_wanted(clause, message, own, live, other):
                    out_clause[n_out], out_message[n_out] = clause, message
                    n_out += 1
        n_candidates += wide.size
        for entry in range(wide.size):
            if is_wanted(clause, wide[entry], own, live, other):
                if n_out == out_clause.size:
                    return i, before
                out_clause[n_out], out_message[n_out] = clause, wide[entry]
                n_out += 1
        counters[NODES] += n_nodes
        counters[CANDIDATES] += n_candidates
    return slots.size, n_out
