"""Post each clause under its rarest keyword. Paper: Yan & Garcia-Molina 1994 (ranked key)."""

from __future__ import annotations

from nearcast.kernels.compile import kernel
from nearcast.kernels.pools import FULL, append_item, remove_item
from nearcast.papers.boolean.keyword_first.layout import CATCH_ALL, NOT_POSTED


@kernel
def rarest_list(keyword_start, keyword, frequency, clause):
    """The list a clause belongs to: that of its least frequent keyword (the smaller id on a tie)."""
    best = CATCH_ALL
    for at in range(keyword_start[clause], keyword_start[clause + 1]):
        if best == CATCH_ALL or frequency[keyword[at]] < frequency[best - 1]:
            best = 1 + keyword[at]
    return best


@kernel
def fill_lists(keyword_start, keyword, frequency, slots, lists):
    for i in range(slots.size):
        lists[i] = rarest_list(keyword_start, keyword, frequency, slots[i])


@kernel
def post_clauses(clauses, posting, slots, first):
    """Append clauses to their lists, from position `first` of `slots` on; returns where the pool was full, or the end."""
    for i in range(first, slots.size):
        owner = rarest_list(clauses.keyword_start, clauses.keyword, posting.frequency, slots[i])
        position = append_item(posting.pool, owner, slots[i])
        if position == FULL:
            return i
        posting.posted_list[slots[i]] = owner
        posting.posted_at[slots[i]] = position
    return slots.size


@kernel
def withdraw_clauses(posting, slots):
    """Take clauses out of their lists."""
    for i in range(slots.size):
        clause = slots[i]
        owner = posting.posted_list[clause]
        if owner != NOT_POSTED:
            moved = remove_item(posting.pool, owner, posting.posted_at[clause])
            posting.posted_at[moved] = posting.posted_at[clause]
            posting.posted_list[clause] = NOT_POSTED
