"""How similar a message of the window and a ranked subscription are, by their places in the arrays."""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel
from nearcast.kernels.simd import LANES, equal_lanes, lowest_lane
from nearcast.ranked.kernels.layouts import MOST_WORDS, RECORD, WORDS
from nearcast.ranked.kernels.relevance import similarity, steady_sum, sum_of_five

NOTHING_IN_COMMON = -1.0
NOWHERE = -1
# A lane beyond all that are compared, so that there is a lowest one.
_NO_LANE, _LAST_LANE = 1 << LANES, LANES - 1


@inline_kernel
def dot_of(subscribers, window, s, place, common):
    """The sum of the values of the words that a message and a subscription have in common, or NOTHING_IN_COMMON.

    `common` is scratch.
    """
    keyword, value, n_words = window.keyword, window.value, subscribers.n_words[s]
    begin, end = window.keyword_start[place], window.keyword_start[place + 1]
    if n_words <= MOST_WORDS:
        return dot_of_few(keyword, value, begin, end, subscribers.record_words, 2 * RECORD * s + WORDS, n_words)
    n_common = gather_in_order(keyword, value, begin, end, subscribers.keyword, subscribers.first[s], n_words, common)
    return steady_sum(common, n_common) if n_common > 0 else NOTHING_IN_COMMON


@inline_kernel
def dot_of_few(keyword, value, begin, end, own, at, n_words):
    """The same for the words of a record, at position `at` of `own`.

    How many there are, and which are in common, cannot be foreseen: there is no branch by it.
    """
    if begin == end:
        return NOTHING_IN_COMMON
    a = b = c = d = e = NOWHERE
    for first in range(begin, end, LANES):
        n = min(LANES, end - first)
        a = place_of(keyword, first, n, own[at], a)
        b = place_of(keyword, first, n, own[at + 1], b)
        c = place_of(keyword, first, n, own[at + 2], c)
        d = place_of(keyword, first, n, own[at + 3], d)
        e = place_of(keyword, first, n, own[at + 4], e)
    # What stands behind the words of a record is none of them.
    a, b, c = (a if n_words > 0 else NOWHERE), (b if n_words > 1 else NOWHERE), (c if n_words > 2 else NOWHERE)
    d, e = (d if n_words > 3 else NOWHERE), (e if n_words > 4 else NOWHERE)
    dot = sum_of_five(value_at(value, a), value_at(value, b), value_at(value, c), value_at(value, d), value_at(value, e))
    return dot if max(a, b, c, d, e) != NOWHERE else NOTHING_IN_COMMON


@inline_kernel
def place_of(keyword, at, n, own, otherwise):
    """Where one of up to sixteen keywords is this one, or what was known before."""
    lanes = equal_lanes(keyword, at, n, own)
    return at + (lowest_lane(lanes | _NO_LANE) & _LAST_LANE) if lanes != 0 else otherwise


@inline_kernel
def value_at(value, at):
    found = value[max(at, 0)]
    return found if at != NOWHERE else 0.0


@inline_kernel
def gather_in_order(keyword, value, at, end, own, own_at, n_words, common):
    """Write the values of the words in common of two runs of words that rise; returns how many there are."""
    own_end = own_at + n_words
    n_common = 0
    while at < end and own_at < own_end:
        if keyword[at] == own[own_at]:
            common[n_common] = value[at]
            n_common += 1
            at, own_at = at + 1, own_at + 1
        elif keyword[at] < own[own_at]:
            at += 1
        else:
            own_at += 1
    return n_common


@inline_kernel
def similarity_of(subscribers, window, common, s, place):
    """The similarity of a message and a subscription that have a word in common; `common` is scratch."""
    return similarity(dot_of(subscribers, window, s, place, common), window.length[place], subscribers.length[s])
