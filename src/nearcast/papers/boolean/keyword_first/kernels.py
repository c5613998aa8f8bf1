"""Post each clause under its rarest keyword, and scan the posting lists of a message. Paper: Yan & Garcia-Molina 1994."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.boxes import meets
from nearcast.kernels.compile import kernel
from nearcast.kernels.keyword_sets import has_all, mark_keywords, rarest_anchor
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.kernels.pools import FULL, ListPool, append_item, remove_item

NO_ANCHOR = 0  # the list of clauses without keywords
NOT_POSTED = -1


class PostingArrays(NamedTuple):
    """List `1 + w` of the pool holds the clauses posted under keyword `w`, list CATCH_ALL those without keywords."""

    frequency: np.ndarray  # int64[n_keywords]: filed clauses that have the keyword
    list_of_clause: np.ndarray  # int32[n_clauses]: the list of a clause, or NOT_POSTED
    position_in_list: np.ndarray  # int32[n_clauses]: its position there
    pool: ListPool


@kernel
def fill_anchors(keyword_start, keyword, frequency, slots, anchors):
    for i in range(slots.size):
        anchors[i] = rarest_anchor(keyword_start, keyword, frequency, slots[i])


@kernel
def post_clauses(clauses, posting, slots, first):
    """Append clauses to their lists, from position `first` of `slots` on; returns where the pool was full, or the end."""
    for i in range(first, slots.size):
        anchor = rarest_anchor(clauses.keyword_start, clauses.keyword, posting.frequency, slots[i])
        position = append_item(posting.pool, anchor, slots[i])
        if position == FULL:
            return i
        posting.list_of_clause[slots[i]] = anchor
        posting.position_in_list[slots[i]] = position
    return slots.size


@kernel
def remove_clauses(posting, slots):
    """Remove clauses from their lists."""
    for i in range(slots.size):
        clause = slots[i]
        anchor = posting.list_of_clause[clause]
        if anchor != NOT_POSTED:
            moved = remove_item(posting.pool, anchor, posting.position_in_list[clause])
            posting.position_in_list[moved] = posting.position_in_list[clause]
            posting.list_of_clause[clause] = NOT_POSTED


@kernel
def match_messages(posting, clauses, messages, stamp, mark, first, n_out, output):
    """Append every matching pair; see `kernel_calls.run_until_it_fits` for `first`, `n_out` and the result.

    A clause is in one list only, and a message visits a list at most once: no pair is found twice.
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
            anchor = NO_ANCHOR if at < message_start[message] else 1 + message_keyword[at]
            if anchor >= n_lists:
                continue
            n_visited += 1
            n_candidates += list_size[anchor]
            for position in range(list_start[anchor], list_start[anchor] + list_size[anchor]):
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
