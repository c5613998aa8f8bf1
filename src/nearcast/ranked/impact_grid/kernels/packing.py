"""Pack entries into few bits, rounded so that a subscription may be a candidate in vain but is never missed."""

from __future__ import annotations

import math

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.simd_plain import LANES
from nearcast.ranked.impact_grid.kernels.keyword_stats import LAST_SLOT, slot_in
from nearcast.ranked.impact_grid.kernels.simd_near_plain import (
    DEPTH,
    FULL,
    GAP_BITS,
    GAP_STEPS,
    LOCATION,
    MAX_GAP,
    MOST_OWN,
    MOST_SHARE,
    MOST_WEIGHT,
    OWN_BITS,
    REST,
    SHARE_BITS,
)
from nearcast.ranked.impact_grid.layout import EDGES, FREQUENCY, N_COLUMNS
from nearcast.ranked.kernels.bounds import coordinates, rarity_rank

# More than rounding in sums of 32 bits.
_SLACK = 2e-5
# More than half a step on each of three axes.
_HALF_DIAGONAL = 0.9


@inline_kernel
def columns_before(is_lonlat):
    """The columns of an entry before the subscription: see `simd_near_plain.py`."""
    return 5 if is_lonlat else 4


@inline_kernel
def order_words(words, subscriptions, s, keyword, weight):
    """Write the keywords of a subscription and their weights, the rarest first; returns their number."""
    frequency = words.row[FREQUENCY::N_COLUMNS]
    first, n = subscriptions.first[s], subscriptions.n_words[s]
    for i in range(n):
        word = int(subscriptions.keyword[first + i])
        at = i
        while at > 0:
            if rarity_rank(frequency, keyword[at - 1]) < rarity_rank(frequency, word):
                break
            keyword[at], weight[at] = keyword[at - 1], weight[at - 1]
            at -= 1
        keyword[at], weight[at] = word, subscriptions.weight_of[word]
    return n


@inline_kernel
def _within(value, most):
    return int(max(0.0, min(float(most), value)))


@inline_kernel
def _word(bits):
    """Thirty-two bits as an int32."""
    return bits - (1 << 32) if bits >= 1 << 31 else bits


@kernel
def write_list(
    entry, at, words, grid, frame, subscriptions, threshold, subscription, rank, postings, begin, end, keyword, weight
):
    """Write a list of `postings[begin:end]` at `at`; returns where it ends. `keyword` and `weight` are scratch."""
    n_columns = columns_before(grid.is_lonlat) + 1
    for i in range(begin, end):
        s, word_rank = subscription[postings[i]], int(rank[postings[i]])
        n_words = order_words(words, subscriptions, s, keyword, weight)
        spatial, length = float(subscriptions.spatial_weight[s]), float(subscriptions.length[s])
        text = (1.0 - spatial) / length
        x, y, z, is_inside = steps_of(grid, frame, subscriptions.x[s], subscriptions.y[s])
        # A subscription outside the range of steps is near to everything.
        spatial_weight = spatial if is_inside else 0.0
        score_gap = threshold[s] - spatial - spatial_weight * grid.loss * _HALF_DIAGONAL - _SLACK
        to, stride = column_start(at, n_columns, end - begin, i - begin)
        entry[to + LOCATION * stride] = _word(x | y << 16)
        gap, share = math.floor((score_gap + 1.0) * GAP_STEPS), math.ceil(text * weight[word_rank] * MOST_OWN)
        rest = _within(gap, MAX_GAP) | _within(share, MOST_OWN) << GAP_BITS
        rest |= _within(math.floor(spatial_weight * MOST_WEIGHT), MOST_WEIGHT) << GAP_BITS + OWN_BITS
        entry[to + REST * stride] = _word(rest)
        if grid.is_lonlat:
            entry[to + DEPTH * stride] = z
        to += (n_columns - 3) * stride
        for pair in range(2):
            first = other_word(words, text, keyword, weight, n_words, word_rank + 1, 2 * pair)
            second = other_word(words, text, keyword, weight, n_words, word_rank + 1, 2 * pair + 1)
            entry[to + pair * stride] = _word(first | second << 16)
        entry[to + 2 * stride] = s
    return at + n_columns * (end - begin)


@inline_kernel
def other_word(words, text, keyword, weight, n_words, first, which):
    """Share and slot of one of four words from `first` on; the last one stands for all further words."""
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
def column_start(at, n_columns, n, i):
    """The first column of entry `i` of `n`, and the distance to the next column: blocks are stored column by column."""
    block = i // LANES * LANES
    return at + n_columns * block + i - block, min(LANES, n - block)


@inline_kernel
def steps_of(grid, frame, x, y):
    """The coordinates of a location in whole steps, and whether they are in range."""
    a, b, c = coordinates(frame, x, y)
    a, b, c = (a - grid.low) / grid.step, (b - grid.low) / grid.step, (c - grid.low) / grid.step
    is_inside = min(a, b, c) >= -0.5 and max(a, b, c) <= FULL + 0.5
    return _step(a), _step(b), _step(c), is_inside


@inline_kernel
def _step(coordinate):
    return _within(math.floor(coordinate + 0.5), FULL)
