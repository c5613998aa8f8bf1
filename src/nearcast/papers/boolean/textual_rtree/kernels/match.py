"""Walk the R-tree to what a message meets and has keywords in common with. Paper: RT 3.2 and Algorithm 1."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.boxes import meets
from nearcast.kernels.compile import kernel
from nearcast.kernels.keyword_sets import has_all, mark_keywords
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.papers.boolean.kernels.keyword_lists import find_common, has_common
from nearcast.papers.boolean.kernels.rtree import N_NODES, ROOT, WIDTH


@kernel
def match_by_sets(index, clauses, messages, scratch, mark, first, n_out, output):
    """Append every matching pair; see `kernel_calls.run_until_it_fits` for `first`, `n_out` and the result.

    A node is visited if it meets the message and its set has a keyword of the message. A clause is in one leaf, and a leaf
    has one parent: no pair is found twice.
    """
    stamp, stack = scratch
    tree = index.tree
    ex0, ey0, ex1, ey1, child = tree.x0, tree.y0, tree.x1, tree.y1, tree.child
    n_entries, level, width, root = tree.n_entries, tree.level, tree.head[WIDTH], tree.head[ROOT]
    set_start, set_size, set_keyword = index.sets.start, index.sets.size, index.sets.item
    is_alive, keyword_start, keyword = clauses.is_alive, clauses.keyword_start, clauses.keyword
    mx0, my0, mx1, my1 = messages.x0, messages.y0, messages.x1, messages.y1
    message_start, message_keyword = messages.keyword_start, messages.keyword
    out_message, out_clause, counters = output.message, output.clause, output.counters
    for message in range(first, mx0.size):
        begin = n_out
        current = mark + 1 + message
        m0, m1 = message_start[message], message_start[message + 1]
        mark_keywords(stamp, current, message_keyword, m0, m1)
        x0, y0, x1, y1 = mx0[message], my0[message], mx1[message], my1[message]
        n_visited, n_candidates, n_pending = 0, 0, 0
        root_set = set_start[root]
        if has_common(set_keyword, root_set, root_set + set_size[root], stamp, current, message_keyword, m0, m1):
            stack[0] = root
            n_pending = 1
        while n_pending > 0:
            n_pending -= 1
            node = stack[n_pending]
            n_visited += 1
            is_leaf = level[node] == 0
            for entry in range(node * width, node * width + n_entries[node]):
                if not meets(ex0[entry], ey0[entry], ex1[entry], ey1[entry], x0, y0, x1, y1):
                    continue
                below = child[entry]
                if not is_leaf:
                    s0 = set_start[below]
                    if has_common(set_keyword, s0, s0 + set_size[below], stamp, current, message_keyword, m0, m1):
                        stack[n_pending] = below
                        n_pending += 1
                    continue
                if not is_alive[below]:
                    continue
                n_candidates += 1
                if has_all(stamp, current, keyword, keyword_start[below], keyword_start[below + 1]):
                    if n_out == out_clause.size:
                        return message, begin
                    out_message[n_out] = message
                    out_clause[n_out] = below
                    n_out += 1
        counters[NODES] += n_visited
        counters[CANDIDATES] += n_candidates
    return mx0.size, n_out


@kernel
def match_by_counts(index, clauses, messages, scratch, marks, first, n_out, output):
    """Append every matching pair; see `kernel_calls.run_until_it_fits` for `first`, `n_out` and the result.

    Count for each clause how many of its lists belong to keywords of the message. It is in one list per keyword: when the
    count is the number of its keywords, the message has them all, and that happens once. A child is visited if some
    clause has been counted on each level down to it and still lacks keywords. `occurrence` holds for each rank the mark of
    the message it was last counted for, and the count.
    """
    stamp, occurrence, stack, common = scratch
    keyword_mark, count_mark = marks
    tree = index.tree
    ex0, ey0, ex1, ey1, child = tree.x0, tree.y0, tree.x1, tree.y1, tree.child
    n_entries, level, width, root = tree.n_entries, tree.level, tree.head[WIDTH], tree.head[ROOT]
    n_nodes = tree.head[N_NODES]
    group_start, list_keyword = index.lists.group_start, index.lists.keyword
    list_start, item = index.lists.list_start, index.lists.item
    slot, n_listed = index.slot, index.n_listed
    is_alive, cx0, cy0, cx1, cy1 = clauses.is_alive, clauses.x0, clauses.y0, clauses.x1, clauses.y1
    mx0, my0, mx1, my1 = messages.x0, messages.y0, messages.x1, messages.y1
    message_start, message_keyword = messages.keyword_start, messages.keyword
    out_message, out_clause, counters = output.message, output.clause, output.counters
    for message in range(first, mx0.size):
        begin = n_out
        current, counting = keyword_mark + 1 + message, count_mark + 1 + message
        m0, m1 = message_start[message], message_start[message + 1]
        mark_keywords(stamp, current, message_keyword, m0, m1)
        x0, y0, x1, y1 = mx0[message], my0[message], mx1[message], my1[message]
        n_visited, n_candidates = 0, 0
        stack[0] = root
        n_pending = 1
        while n_pending > 0:
            n_pending -= 1
            node = stack[n_pending]
            n_visited += 1
            is_leaf = level[node] == 0
            depth = level[root] + 1 - level[node]
            # A leaf has one group of lists, any other node one for each entry.
            n_groups = 1 if is_leaf else n_entries[node]
            for entry in range(node * width, node * width + n_groups):
                if is_leaf:
                    group = n_nodes + node
                elif meets(ex0[entry], ey0[entry], ex1[entry], ey1[entry], x0, y0, x1, y1):
                    group = np.int64(child[entry])
                else:
                    continue
                n_common = find_common(
                    list_keyword, group_start[group], group_start[group + 1], stamp, current, message_keyword, m0, m1, common
                )
                is_open = False
                for f in range(n_common):
                    for at in range(list_start[common[f]], list_start[common[f] + 1]):
                        rank = item[at]
                        count = 1
                        if occurrence[2 * rank] == counting:
                            count = occurrence[2 * rank + 1] + 1
                        else:
                            occurrence[2 * rank] = counting
                        occurrence[2 * rank + 1] = count
                        if count < n_listed[rank]:
                            is_open = is_open or count == depth
                            continue
                        clause = slot[rank]
                        if not is_alive[clause]:
                            continue
                        n_candidates += 1
                        if meets(cx0[clause], cy0[clause], cx1[clause], cy1[clause], x0, y0, x1, y1):
                            if n_out == out_clause.size:
                                return message, begin
                            out_message[n_out] = message
                            out_clause[n_out] = clause
                            n_out += 1
                if is_open and not is_leaf:
                    stack[n_pending] = child[entry]
                    n_pending += 1
        counters[NODES] += n_visited
        counters[CANDIDATES] += n_candidates
    return mx0.size, n_out
