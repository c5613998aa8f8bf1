"""Find a list by its owner and cell, and test the keywords of a clause against a message."""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel, kernel

NOT_FOUND = 0
_FEW = 24


@inline_kernel
def find_from(slot, key, at):
    """The value filed under a key, from its home slot on, or NOT_FOUND."""
    n_slots = slot.size // 2
    while slot[2 * at] != 0:
        if slot[2 * at] == key:
            return slot[2 * at + 1]
        at = at + 1 if at + 1 < n_slots else 0
    return NOT_FOUND


@inline_kernel
def has_keyword(keyword, begin, end, wanted):
    """Whether a sorted run of keywords holds one: few are compared one by one, many are halved first."""
    while end - begin > _FEW:
        middle = (begin + end) // 2
        if keyword[middle] <= wanted:
            begin = middle
        else:
            end = middle
    found = False
    for at in range(begin, end):
        found |= keyword[at] == wanted
    return found


@kernel
def has_clause_keywords(keyword_start, keyword, clause, message_keyword, begin, end):
    """Whether a message has every keyword of a clause."""
    for at in range(keyword_start[clause], keyword_start[clause + 1]):
        if not has_keyword(message_keyword, begin, end, keyword[at]):
            return False
    return True
