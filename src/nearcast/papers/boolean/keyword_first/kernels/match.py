"""Scan the posting lists of a message's keywords and verify every clause in them."""

from __future__ import annotations

from nearcast.kernels.boxes import meets
from nearcast.kernels.compile import kernel
from nearcast.kernels.keyword_sets import has_all, mark_keywords
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.papers.boolean.keyword_first.layout import CATCH_ALL


@kernel
def match_messages(posting, clauses, messages, stamp, mark, first, n_out, output):
    """Append every matching pair; see `kernel_calls.run_until_it_fits` for `first`, `n_out` and the result.

    A clause stands in one list only, and a message visits a list at most once: no pair is found twice.
    """
    list_start, list_size, item = posting.pool.start, posting.pool.size, posting.pool.item
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    cx0, cy0, cx1, cy1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    mx0, my0, mx1, my1 = messages.x0, messages.y0, messages.x1, messages.y1
    message_start, message_keyword = messages.keyword_start, messages.keyword
    out_message, out_clause, counters = output.message, output.clause, output.counters
    n_lists = list_start.size
    for message in range(first, mx0.size):
        begin = n_out
        current = mark + 1 + message
        mark_keywords(stamp, current, message_keyword, message_start[message], message_start[message + 1])
        x0, y0, x1, y1 = mx0[message], my0[message], mx1[message], my1[message]
        n_visited, n_candidates = 0, 0
        for at in range(message_start[message] - 1, message_start[message + 1]):
            owner = CATCH_ALL if at < message_start[message] else 1 + message_keyword[at]
            if owner >= n_lists:
                continue
            n_visited += 1
            n_candidates += list_size[owner]
            for position in range(list_start[owner], list_start[owner] + list_size[owner]):
                clause = item[position]
                if meets(cx0[clause], cy0[clause], cx1[clause], cy1[clause], x0, y0, x1, y1) and has_all(
                    stamp, current, keyword, keyword_start[clause], keyword_start[clause + 1]
                ):
                    if n_out == out_clause.size:
                        return message, begin
                    out_message[n_out] = message
                    out_clause[n_out] = clause
                    n_out += 1
        counters[NODES] += n_visited
        counters[CANDIDATES] += n_candidates
    return mx0.size, n_out
