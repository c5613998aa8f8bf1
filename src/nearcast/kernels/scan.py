"""Test every clause against every message."""

from __future__ import annotations

from nearcast.kernels.boxes import meets
from nearcast.kernels.compile import kernel
from nearcast.kernels.keyword_sets import has_all, mark_keywords
from nearcast.kernels.layouts import CANDIDATES


@kernel
def match_messages(clauses, messages, stamp, mark, first, n_out, output):
    """Append every matching pair; see `kernel_calls.run_until_it_fits` for `first`, `n_out` and the result."""
    is_alive, keyword_start, keyword = clauses.is_alive, clauses.keyword_start, clauses.keyword
    cx0, cy0, cx1, cy1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    mx0, my0, mx1, my1 = messages.x0, messages.y0, messages.x1, messages.y1
    out_message, out_clause, counters = output.message, output.clause, output.counters
    message_start, message_keyword = messages.keyword_start, messages.keyword
    for message in range(first, mx0.size):
        begin, n_candidates = n_out, 0
        current = mark + 1 + message
        mark_keywords(stamp, current, message_keyword, message_start[message], message_start[message + 1])
        x0, y0, x1, y1 = mx0[message], my0[message], mx1[message], my1[message]
        for clause in range(is_alive.size):
            if not is_alive[clause]:
                continue
            n_candidates += 1
            if meets(cx0[clause], cy0[clause], cx1[clause], cy1[clause], x0, y0, x1, y1) and has_all(
                stamp, current, keyword, keyword_start[clause], keyword_start[clause + 1]
            ):
                if n_out == out_clause.size:
                    return message, begin
                out_message[n_out] = message
                out_clause[n_out] = clause
                n_out += 1
        counters[CANDIDATES] += n_candidates
    return mx0.size, n_out
