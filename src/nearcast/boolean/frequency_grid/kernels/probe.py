"""Test the keywords of a clause against those of a message."""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel, kernel

_FEW = 24


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
