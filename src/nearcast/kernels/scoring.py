"""How similar a message of the window and a ranked subscription are, by their places in the arrays."""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel
from nearcast.kernels.ranked_layouts import MOST_WORDS, RECORD, WORDS
from nearcast.kernels.relevance import similarity, steady_sum
from nearcast.kernels.simd import LANES, equal_lanes, lowest_lane


@inline_kernel
def gather_common(subscribers, window, s, place, common):
    """Write the values of the words that a message and a subscription have in common; returns how many."""
    keyword, value, n_words = window.keyword, window.value, subscribers.n_words[s]
    begin, end = window.keyword_start[place], window.keyword_start[place + 1]
    own, own_at = subscribers.record_words, 2 * RECORD * s + WORDS
    if n_words > MOST_WORDS:
        return gather_in_order(keyword, value, begin, end, subscribers.keyword, subscribers.first[s], n_words, common)
    n_common = 0
    if begin == end:
        return n_common
    for i in range(own_at, own_at + n_words):
        # Without a branch, which nobody could guess: what is written in vain is written over.
        found = -1
        for at in range(begin, end, LANES):
            lanes = equal_lanes(keyword, at, min(LANES, end - at), own[i])
            found = at + lowest_lane(lanes) if lanes != 0 else found
        common[n_common] = value[max(found, 0)]
        n_common += found >= 0
    return n_common


@inline_kernel
def gather_in_order(keyword, value, at, end, own, own_at, n_words, common):
    """The same for many words, which rise on both sides."""
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
    n_common = gather_common(subscribers, window, s, place, common)
    return similarity(steady_sum(common, n_common), window.length[place], subscribers.length[s])
