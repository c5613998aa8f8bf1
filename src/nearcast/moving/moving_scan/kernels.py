"""Test clauses against every live message."""

from __future__ import annotations

from nearcast.kernels.compile import kernel
from nearcast.kernels.layouts import CANDIDATES
from nearcast.moving.kernels.live_messages import matches_only_new_box


@kernel
def find_messages(clauses, messages, slots, excluded, first, n_out, output):
    """Append the messages of each clause; see `kernel_calls.run_until_it_fits` for `first`, `n_out` and the result."""
    clause_arrays = (clauses.x0, clauses.y0, clauses.x1, clauses.y1, clauses.keyword_start, clauses.keyword)
    is_alive, keyword_first, n_keywords = messages.is_alive, messages.keyword_first, messages.n_keywords
    mx0, my0, mx1, my1, member = messages.x0, messages.y0, messages.x1, messages.y1, messages.keyword
    live = (mx0, my0, mx1, my1, is_alive, keyword_first, n_keywords, member)
    bx0, by0, bx1, by1 = excluded
    out_clause, out_message, counters = output.clause, output.message, output.counters
    for i in range(first, slots.size):
        before, n_candidates, clause = n_out, 0, slots[i]
        excluded_box = (bx0[i], by0[i], bx1[i], by1[i])
        for message in range(is_alive.size):
            if is_alive[message]:
                n_candidates += 1
            if matches_only_new_box(clause, message, clause_arrays, live, excluded_box):
                if n_out == out_clause.size:
                    return i, before
                out_clause[n_out] = clause
                out_message[n_out] = message
                n_out += 1
        counters[CANDIDATES] += n_candidates
    return slots.size, n_out
