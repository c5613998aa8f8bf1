"""Write entries: numbers of few bits, rounded so that a subscription is rather looked at in vain than missed."""

from __future__ import annotations

import math

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.simd_plain import LANES
from nearcast.ranked.impact_grid.kernels.keyword_stats import LAST_SLOT, slot_in
from nearcast.ranked.impact_grid.kernels.simd_near_plain import (
    DEPTH,
    FULL,
    LACKING_BITS,
    LACKING_STEPS,
    MOST_LACKING,
    MOST_OWN,
    MOST_SHARE,
    MOST_WEIGHT,
    OWN_BITS,
    PLACE,
    REST,
    SHARE_BITS,
)
from nearcast.ranked.impact_grid.layout import EDGES, FREQUENCY, N_COLUMNS
from nearcast.ranked.kernels.bounds import coordinates, rarity_of

# More than the rounding of what is added up in 32 bits.
_SLACK = 2e-5
# More than half a step on each of three axes.
_HALF_DIAGONAL = 0.9


@inline_kernel
def columns_before(is_lonlat):
    """How many columns of an entry come before the subscription: see `ranked/impact_grid/kernels/simd_near_plain.py`."""
    return 5 if is_lonlat else 4


@inline_kernel
def arrange_words(words, subscribers, s, keyword, weight):
    """Write the keywords of a subscription and their weights, the rarest first; returns how many."""
    frequency = words.row[FREQUENCY::N_COLUMNS]
    first, n = subscribers.first[s], subscribers.n_words[s]
    for i in range(n):
        own = int(subscribers.keyword[first + i])
        at = i
        while at > 0:
            if rarity_of(frequency, keyword[at - 1]) < rarity_of(frequency, own):
                break
            keyword[at], weight[at] = keyword[at - 1], weight[at - 1]
            at -= 1
        keyword[at], weight[at] = own, subscribers.weight_of[own]
    return n


@inline_kernel
def _within(value, most):
    return int(max(0.0, min(float(most), value)))


@inline_kernel
def _word(bits):
    """Thirty-two bits as an int32."""
    return bits - (1 << 32) if bits >= 1 << 31 else bits


@kernel
def write_list(entry, at, words, grid, frame, subscribers, floor, subscriber, rank, chosen, begin, end, keyword, weight):
    """Write postings `chosen[begin:end]` as a list at `at`; returns where it ends. `keyword` and `weight` are scratch."""
    n_columns = columns_before(grid.is_lonlat) + 1
    for i in range(begin, end):
        s, own = subscriber[chosen[i]], int(rank[chosen[i]])
        n_words = arrange_words(words, subscribers, s, keyword, weight)
        spatial, length = float(subscribers.spatial_weight[s]), float(subscribers.length[s])
        text = (1.0 - spatial) / length
        x, y, z, is_inside = steps_of(grid, frame, subscribers.x[s], subscribers.y[s])
        # Who is outside of the steps is near to everything.
        near = spatial if is_inside else 0.0
        lacking = floor[s] - spatial - near * grid.loss * _HALF_DIAGONAL - _SLACK
        to, stride = place_in(at, n_columns, end - begin, i - begin)
        entry[to + PLACE * stride] = _word(x | y << 16)
        lacks, share = math.floor((lacking + 1.0) * LACKING_STEPS), math.ceil(text * weight[own] * MOST_OWN)
        rest = _within(lacks, MOST_LACKING) | _within(share, MOST_OWN) << LACKING_BITS
        rest |= _within(math.floor(near * MOST_WEIGHT), MOST_WEIGHT) << LACKING_BITS + OWN_BITS
        entry[to + REST * stride] = _word(rest)
        if grid.is_lonlat:
            entry[to + DEPTH * stride] = z
        to += (n_columns - 3) * stride
        for pair in range(2):
            first = other_word(words, text, keyword, weight, n_words, own + 1, 2 * pair)
            second = other_word(words, text, keyword, weight, n_words, own + 1, 2 * pair + 1)
            entry[to + pair * stride] = _word(first | second << 16)
        entry[to + 2 * stride] = s
    return at + n_columns * (end - begin)


@inline_kernel
def other_word(words, text, keyword, weight, n_words, first, which):
    """Share and slot of one of four words from `first` on; the last of four stands for all that are left."""
    at = first + which
    if at >= n_words:
        return 0
    share, slot = weight[at], slot_in(int(words.row[keyword[at] * N_COLUMNS + EDGES]))
    if which == 3 and at + 1 < n_words:
        squares = 0.0
        for j in range(at, n_words):
            squares += weight[j] * weight[j]
        share, slot = math.sqrt(squares), LAST_SLOT
    return _within(math.ceil(text * share * MOST_SHARE), MOST_SHARE) | slot << SHARE_BITS


@inline_kernel
def place_in(at, n_columns, n, i):
    """Where the first column of entry `i` of `n` is, and how far it is to the next: entries are in blocks, column by column."""
    block = i // LANES * LANES
    return at + n_columns * block + i - block, min(LANES, n - block)


@inline_kernel
def steps_of(grid, frame, x, y):
    """The coordinates of a place in whole steps, and whether it lies where they count."""
    a, b, c = coordinates(frame, x, y)
    a, b, c = (a - grid.low) / grid.step, (b - grid.low) / grid.step, (c - grid.low) / grid.step
    is_inside = min(a, b, c) >= -0.5 and max(a, b, c) <= FULL + 0.5
    return _step(a), _step(b), _step(c), is_inside


@inline_kernel
def _step(coordinate):
    return _within(math.floor(coordinate + 0.5), FULL)
