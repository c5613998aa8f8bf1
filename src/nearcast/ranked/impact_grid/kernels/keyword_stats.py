"""Keywords of a sample of messages: how frequent they are, and how much messages that have them weigh."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.ranked.impact_grid.kernels.simd_near_plain import N_SLOTS
from nearcast.ranked.impact_grid.layout import EDGES, FREQUENCY, MOST_EDGES, N_COLUMNS
from nearcast.ranked.kernels.bounds import gather_repeated, heft_with

# The most frequent words have slots of their own; the last slot stands for words without one.
OWN_SLOTS = 32
LAST_SLOT = N_SLOTS - 1
_SPREAD = 40503
_EDGE_BITS, _SLOT_SHIFT, _FIRST_SHIFT = 4, 4, 10
# Of the messages of a class this share is in the one above.
CLASS_SHARE = 0.25


@inline_kernel
def shared_slot(keyword):
    """The slot of a word that has none of its own."""
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
    """Write how many messages have each keyword."""
    keyword = window.keyword
    for at in range(window.keyword_start[first], window.keyword_start[last]):
        row[int(keyword[at]) * N_COLUMNS + FREQUENCY] += 1


@kernel
def gather_hefts(window, first, last, row, start, heft, repeated):
    """Write, for each keyword with classes, the hefts of its messages; `start[w]` is -1 without, else moves on."""
    keyword_start, keyword, frequency = window.keyword_start, window.keyword, row[FREQUENCY::N_COLUMNS]
    for place in range(first, last):
        n_repeated = gather_repeated(frequency, window, place, repeated)
        for at in range(keyword_start[place], keyword_start[place + 1]):
            to = start[keyword[at]]
            if to >= 0:
                heft[to] = heft_with(frequency, window, place, at, repeated, n_repeated)
                start[keyword[at]] = to + 1


@kernel
def write_edges(row, classed, end, heft, least, edge):
    """Give each classed keyword the borders of its classes, at upper quantiles, with at least so many messages in each."""
    n = 0
    for i in range(classed.size):
        count = row[classed[i] * N_COLUMNS + FREQUENCY]
        own = np.sort(heft[end[i] - count : end[i]])
        first = n
        share = CLASS_SHARE
        while n - first < MOST_EDGES and count * share >= least:
            edge[n] = own[min(count - 1, int(count * (1.0 - share)))]
            n += 1
            share *= CLASS_SHARE
        at = classed[i] * N_COLUMNS + EDGES
        row[at] = pack_edges(first, slot_in(row[at]), n - first)
