"""Keywords in a sample of messages: frequency, and the weights of the messages that have them."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.ranked.impact_grid.kernels.simd_near_plain import N_SLOTS
from nearcast.ranked.impact_grid.layout import EDGES, FREQUENCY, MOST_EDGES, N_COLUMNS
from nearcast.ranked.kernels.bounds import gather_repeated, message_weight_at

# The most frequent words have a slot each; the last slot is for words without one.
OWN_SLOTS = 32
LAST_SLOT = N_SLOTS - 1
_SPREAD = 40503
_EDGE_BITS, _SLOT_SHIFT, _FIRST_SHIFT = 4, 4, 10
# The share of the messages of a class that is in the next one.
CLASS_SHARE = 0.25


@inline_kernel
def shared_slot(keyword):
    """The slot of a word without its own."""
    return OWN_SLOTS + (int(keyword) * _SPREAD >> 5) % (LAST_SLOT - OWN_SLOTS)


@inline_kernel
def pack_edges(first, slot, n):
    return first << _FIRST_SHIFT | slot << _SLOT_SHIFT | n


@inline_kernel
def first_edge(packed):
    return packed >> _FIRST_SHIFT


@inline_kernel
def n_edges(packed):
    return packed & ((1 << _EDGE_BITS) - 1)


@inline_kernel
def slot_in(packed):
    return (packed >> _SLOT_SHIFT) & (N_SLOTS - 1)


@kernel
def count_words(window, first, last, row):
    """Count the messages that have each keyword."""
    keyword = window.keyword
    for at in range(window.keyword_start[first], window.keyword_start[last]):
        row[int(keyword[at]) * N_COLUMNS + FREQUENCY] += 1


@kernel
def gather_message_weights(window, first, last, row, start, message_weight, repeated):
    """Write the weights of the messages of each classed keyword; `start[w]` is -1 for others, else it moves on."""
    keyword_start, keyword, frequency = window.keyword_start, window.keyword, row[FREQUENCY::N_COLUMNS]
    for position in range(first, last):
        n_repeated = gather_repeated(frequency, window, position, repeated)
        for at in range(keyword_start[position], keyword_start[position + 1]):
            to = start[keyword[at]]
            if to >= 0:
                message_weight[to] = message_weight_at(frequency, window, position, at, repeated, n_repeated)
                start[keyword[at]] = to + 1


@kernel
def write_edges(row, classed, end, message_weight, least, edge):
    """Write the edges of the classes of each keyword: upper quantiles, with at least `least` messages in each class."""
    n = 0
    for i in range(classed.size):
        count = row[classed[i] * N_COLUMNS + FREQUENCY]
        sorted_weights = np.sort(message_weight[end[i] - count : end[i]])
        first = n
        share = CLASS_SHARE
        while n - first < MOST_EDGES and count * share >= least:
            edge[n] = sorted_weights[min(count - 1, int(count * (1.0 - share)))]
            n += 1
            share *= CLASS_SHARE
        at = classed[i] * N_COLUMNS + EDGES
        row[at] = pack_edges(first, slot_in(row[at]), n - first)
