"""Look for the living messages of clauses: at the leaves they are filed in, and at every node above."""

from __future__ import annotations

from nearcast.indexes.moving_adaptive_tree.layout import COUNT, ENTRIES, NEXT, NO_CHUNK, WIDTH
from nearcast.indexes.moving_adaptive_tree.way.match import follow, rank_clause
from nearcast.kernels.compile import kernel
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.kernels.live_messages import is_wanted
from nearcast.kernels.simd import prefetch


@kernel
def look_in_lists(tree, lists, clauses, messages, scratch, wide, is_refining, slots, besides, first, n_out, output):
    """Append every message of each clause; see `moving_base.collect_pairs` for `first`, `n_out` and the result.

    A node is visited once for each clause, and holds no message twice; messages with an area are in `wide`.
    """
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    cx0, cy0, cx1, cy1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    own = (cx0, cy0, cx1, cy1, keyword_start, keyword)
    is_alive, keyword_first, n_keywords = messages.is_alive, messages.keyword_first, messages.n_keywords
    mx0, my0, mx1, my1, member = messages.x0, messages.y0, messages.x1, messages.y1, messages.keyword
    live = (mx0, my0, mx1, my1, is_alive, keyword_first, n_keywords, member)
    structure, rank_of = (tree.node, tree.block, tree.bound, tree.region), tree.rank
    rank, queue, offset, region = scratch
    first_chunk, item = lists.first, lists.item
    bx0, by0, bx1, by1 = besides
    out_clause, out_message, counters = output.clause, output.message, output.counters
    for i in range(first, slots.size):
        before, n_candidates, clause = n_out, 0, slots[i]
        other = (bx0[i], by0[i], bx1[i], by1[i])
        box = (cx0[clause], cy0[clause], cx1[clause], cy1[clause])
        n_ranks = rank_clause(rank_of, keyword, keyword_start[clause], keyword_start[clause + 1], rank)
        n_nodes, _ = follow(structure, box, rank, n_ranks, is_refining, queue, offset, region)
        for number in range(n_nodes):
            chunk = first_chunk[queue[number]]
            while chunk != NO_CHUNK:
                at = chunk * WIDTH + ENTRIES
                last = at + item[chunk * WIDTH + COUNT]
                for entry in range(at, last):
                    prefetch(mx0, item[entry])
                n_candidates += last - at
                for entry in range(at, last):
                    message = item[entry]
                    # Points only: most are left of the box or right of it.
                    if mx0[message] < box[0] or mx0[message] > box[2] or my0[message] < box[1] or my0[message] > box[3]:
                        continue
                    if is_wanted(clause, message, own, live, other):
                        if n_out == out_clause.size:
                            return i, before
                        out_clause[n_out] = clause
                        out_message[n_out] = message
                        n_out += 1
                chunk = item[chunk * WIDTH + NEXT]
        n_candidates += wide.size
        for entry in range(wide.size):
            if is_wanted(clause, wide[entry], own, live, other):
                if n_out == out_clause.size:
                    return i, before
                out_clause[n_out] = clause
                out_message[n_out] = wide[entry]
                n_out += 1
        counters[NODES] += n_nodes
        counters[CANDIDATES] += n_candidates
    return slots.size, n_out
