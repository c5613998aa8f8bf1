"""Walk the R-tree along the inverted files of its nodes; count the keywords of each clause in the leaves."""

from __future__ import annotations

from typing import NamedTuple

from nearcast.kernels.boxes import meets
from nearcast.kernels.compile import kernel
from nearcast.kernels.keyword_sets import mark_keywords
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.papers.boolean.kernels.keyword_lists import KeywordListArrays, find_common
from nearcast.papers.boolean.kernels.rtree import ROOT, WIDTH, RTreeArrays


class InvertedTreeArrays(NamedTuple):
    """Group `n` of the lists is the inverted file of node `n`: for each keyword, the positions of the entries with it."""

    tree: RTreeArrays
    lists: KeywordListArrays


@kernel
def match_messages(index, clauses, messages, scratch, mark, first, n_out, output):
    """Append every matching pair; see `kernel_calls.run_until_it_fits` for `first`, `n_out` and the result.

    A child is visited if one of its keywords is in the message and its box meets the message. In a leaf a clause matches
    if its number of hits is its number of keywords. A clause is in one leaf: no pair is found twice.
    """
    stamp, stack, common, n_hits = scratch
    tree = index.tree
    ex0, ey0, ex1, ey1, child = tree.x0, tree.y0, tree.x1, tree.y1, tree.child
    n_entries, level, width, root = tree.n_entries, tree.level, tree.head[WIDTH], tree.head[ROOT]
    group_start, list_keyword = index.lists.group_start, index.lists.keyword
    list_start, item = index.lists.list_start, index.lists.item
    is_alive, keyword_start = clauses.is_alive, clauses.keyword_start
    mx0, my0, mx1, my1 = messages.x0, messages.y0, messages.x1, messages.y1
    message_start, message_keyword = messages.keyword_start, messages.keyword
    out_message, out_clause, counters = output.message, output.clause, output.counters
    for message in range(first, mx0.size):
        begin = n_out
        current = mark + 1 + message
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
            n_common = find_common(
                list_keyword, group_start[node], group_start[node + 1], stamp, current, message_keyword, m0, m1, common
            )
            if n_common == 0:
                continue
            for position in range(n_entries[node]):
                n_hits[position] = 0
            for f in range(n_common):
                for at in range(list_start[common[f]], list_start[common[f] + 1]):
                    n_hits[item[at]] += 1
            is_leaf = level[node] == 0
            for position in range(n_entries[node]):
                if n_hits[position] == 0:
                    continue
                entry = node * width + position
                below = child[entry]
                # A clause without keywords is filed once, so one hit is enough for it as well.
                if is_leaf and n_hits[position] < keyword_start[below + 1] - keyword_start[below]:
                    continue
                if is_leaf and not is_alive[below]:
                    continue
                if is_leaf:
                    n_candidates += 1
                if not meets(ex0[entry], ey0[entry], ex1[entry], ey1[entry], x0, y0, x1, y1):
                    continue
                if not is_leaf:
                    stack[n_pending] = below
                    n_pending += 1
                    continue
                if n_out == out_clause.size:
                    return message, begin
                out_message[n_out] = message
                out_clause[n_out] = below
                n_out += 1
        counters[NODES] += n_visited
        counters[CANDIDATES] += n_candidates
    return mx0.size, n_out
