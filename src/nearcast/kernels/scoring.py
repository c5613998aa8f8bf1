"""How similar a message of the window and a ranked subscription are, by their places in the arrays."""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel
from nearcast.kernels.ranked_layouts import MOST_WORDS, RECORD, WORDS
from nearcast.kernels.relevance import similarity, steady_sum


@inline_kernel
def gather_common(subscribers, window, s, place, common):
    """Write the values of the words that a message and a subscription have in common; returns how many."""
    keyword, value, n_words = window.keyword, window.value, subscribers.n_words[s]
    at, end = window.keyword_start[place], window.keyword_start[place + 1]
    own, own_at = subscribers.record_words, 2 * RECORD * s + WORDS
    if n_words > MOST_WORDS:
        own, own_at = subscribers.keyword, subscribers.first[s]
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
