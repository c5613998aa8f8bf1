"""Walk the R-tree to the leaves a message meets; verify keywords there."""

from __future__ import annotations

from nearcast.kernels.boxes import meets
from nearcast.kernels.compile import kernel
from nearcast.kernels.keyword_sets import has_all, mark_keywords
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.papers.boolean.kernels.rtree import ROOT, WIDTH, insert_item


@kernel
def match_messages(tree, clauses, messages, scratch, mark, first, n_out, output):
    """Append every matching pair; see `kernel_calls.run_until_it_fits` for `first`, `n_out` and the result.

    A clause is in one leaf, and a leaf has one parent: no pair is found twice.
    """
    stamp, stack = scratch
    ex0, ey0, ex1, ey1, child = tree.x0, tree.y0, tree.x1, tree.y1, tree.child
    n_entries, level, width = tree.n_entries, tree.level, tree.head[WIDTH]
    is_alive, keyword_start, keyword = clauses.is_alive, clauses.keyword_start, clauses.keyword
    mx0, my0, mx1, my1 = messages.x0, messages.y0, messages.x1, messages.y1
    message_start, message_keyword = messages.keyword_start, messages.keyword
    out_message, out_clause, counters = output.message, output.clause, output.counters
    for message in range(first, mx0.size):
        begin = n_out
        current = mark + 1 + message
        mark_keywords(stamp, current, message_keyword, message_start[message], message_start[message + 1])
        x0, y0, x1, y1 = mx0[message], my0[message], mx1[message], my1[message]
        n_visited, n_candidates = 0, 0
        stack[0] = tree.head[ROOT]
        n_pending = 1
        while n_pending > 0:
            n_pending -= 1
            node = stack[n_pending]
            n_visited += 1
            is_leaf = level[node] == 0
            for entry in range(node * width, node * width + n_entries[node]):
                if not meets(ex0[entry], ey0[entry], ex1[entry], ey1[entry], x0, y0, x1, y1):
                    continue
                if not is_leaf:
                    stack[n_pending] = child[entry]
                    n_pending += 1
                    continue
                clause = child[entry]
                if not is_alive[clause]:
                    continue
                n_candidates += 1
                if has_all(stamp, current, keyword, keyword_start[clause], keyword_start[clause + 1]):
                    if n_out == out_clause.size:
                        return message, begin
                    out_message[n_out] = message
                    out_clause[n_out] = clause
                    n_out += 1
        counters[NODES] += n_visited
        counters[CANDIDATES] += n_candidates
    return mx0.size, n_out


@kernel
def insert_clauses(tree, clauses, slots):
    """Insert clauses one by one; the tree has the capacity for the splits."""
    for i in range(slots.size):
        slot = slots[i]
        insert_item(tree, clauses.x0[slot], clauses.y0[slot], clauses.x1[slot], clauses.y1[slot], slot)
