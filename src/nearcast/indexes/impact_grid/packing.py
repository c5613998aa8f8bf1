"""Write entries: numbers of sixteen bits, rounded so that a subscription is rather looked at in vain than missed."""

from __future__ import annotations

import math

from nearcast.indexes.impact_grid.layout import EDGES, FREQUENCY, N_COLUMNS, N_MORE, N_SIMPLE
from nearcast.indexes.impact_grid.words import LAST_SLOT, is_rarer, slot_in
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.near_bounds import coordinates
from nearcast.kernels.simd_near_plain import FULL, SLOT_BITS
from nearcast.kernels.simd_plain import LANES

# More than the rounding of what is added up in 32 bits.
_SLACK = 2e-5
# More than half a step on each of three axes.
_HALF_DIAGONAL = 0.9
_FLOOR_STEPS = 32767


@inline_kernel
def arrange_words(words, subscribers, s, keyword, weight):
    """Write the keywords of a subscription and their weights, the rarest first; returns how many."""
    row = words.row
    first, n = subscribers.first[s], subscribers.n_words[s]
    for i in range(n):
        own = int(subscribers.keyword[first + i])
        frequency = row[own * N_COLUMNS + FREQUENCY]
        at = i
        while at > 0:
            before = keyword[at - 1]
            if is_rarer(row[before * N_COLUMNS + FREQUENCY], before, frequency, own):
                break
            keyword[at], weight[at] = before, weight[at - 1]
            at -= 1
        keyword[at], weight[at] = own, subscribers.weight_of[own]
    return n


@inline_kernel
def _within(value):
    return int(max(0.0, min(65535.0, value)))


@inline_kernel
def _pair(low, high):
    """Two numbers of sixteen bits as an int32."""
    both = low | high << 16
    return both - (1 << 32) if both >= 1 << 31 else both


@inline_kernel
def _share(share):
    return _within(math.ceil(share * FULL))


@kernel
def write_list(entry, at, words, grid, frame, subscribers, floor, subscriber, rank, chosen, begin, end, keyword, weight):
    """Write postings `chosen[begin:end]` as a list at `at`; returns where it ends. `keyword` and `weight` are scratch."""
    n_simple = 0
    for i in range(begin, end):
        if rank[chosen[i]] + 1 == subscribers.n_words[subscriber[chosen[i]]]:
            n_simple += 1
    n_more = end - begin - n_simple
    entry[at], entry[at + 1] = n_simple, n_more
    more_at = at + 2 + N_SIMPLE * n_simple
    n_simple_done, n_more_done = 0, 0
    for i in range(begin, end):
        s, own = subscriber[chosen[i]], int(rank[chosen[i]])
        n_words = arrange_words(words, subscribers, s, keyword, weight)
        spatial, length = float(subscribers.spatial_weight[s]), float(subscribers.length[s])
        text = (1.0 - spatial) / length
        x, y, z, is_inside = steps_of(grid, frame, subscribers.x[s], subscribers.y[s])
        # Who is outside of the steps is near to everything.
        near = spatial if is_inside else 0.0
        lacking = floor[s] - spatial - near * grid.loss * _HALF_DIAGONAL - _SLACK
        is_simple = own + 1 == n_words
        if is_simple:
            to, stride = place_in(at + 2, N_SIMPLE, n_simple, n_simple_done)
            n_simple_done += 1
        else:
            to, stride = place_in(more_at, N_MORE, n_more, n_more_done)
            n_more_done += 1
        entry[to] = _pair(x, y)
        entry[to + stride] = _pair(z, _within(math.floor(near * FULL)))
        entry[to + 2 * stride] = _pair(_within(math.floor((lacking + 1.0) * _FLOOR_STEPS)), _share(text * weight[own]))
        if is_simple:
            entry[to + 3 * stride] = s
            continue
        shares, slots = 0, 0
        for other in range(4):
            share, slot = 0, 0
            if other == 3 and own + 5 < n_words:
                squares = 0.0
                for j in range(own + 4, n_words):
                    squares += weight[j] * weight[j]
                share, slot = _share(text * math.sqrt(squares)), LAST_SLOT
            elif own + 1 + other < n_words:
                share, slot = (
                    _share(text * weight[own + 1 + other]),
                    slot_in(int(words.row[keyword[own + 1 + other] * N_COLUMNS + EDGES])),
                )
            slots |= slot << (SLOT_BITS * other)
            if other % 2 == 0:
                shares = share
            else:
                entry[to + (3 + other // 2) * stride] = _pair(shares, share)
        entry[to + 5 * stride] = slots
        entry[to + 6 * stride] = s
    return more_at + N_MORE * n_more


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
    return _within(math.floor(a + 0.5)), _within(math.floor(b + 0.5)), _within(math.floor(c + 0.5)), is_inside
