"""The relevance of a message to a subscription, to the last bit as `model/relevance.py` defines it."""

from __future__ import annotations

import math

import numpy as np

from nearcast.kernels.boxes import haversine_m
from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.simd import LANES, equal_lanes, lowest_lane
from nearcast.kernels.sorting import sort_into, sort_run
from nearcast.ranked.kernels.layouts import MOST_WORDS, RECORD, WORDS


@kernel
def steady_sum(values, n):
    """The sum of the first `n` values, from the smallest up. Sorts them in place."""
    sort_run(values, 0, n)
    total = 0.0
    for i in range(n):
        total += values[i]
    return total


@kernel
def sum_in_order(values, n, ordered):
    """As `steady_sum`, for values >= 0 that stay where they are; `ordered` is scratch."""
    # Floats >= 0 have the order of their bits.
    sort_into(values.view(np.int64), 0, n, ordered.view(np.int64), 0)
    total = 0.0
    for i in range(n):
        total += ordered[i]
    return total


@inline_kernel
def short_sum(values, n):
    """As `steady_sum`, for at least one value; the order of two does not matter."""
    if n == 1:
        return values[0]
    return values[0] + values[1] if n == 2 else steady_sum(values, n)


@inline_kernel
def sum_of_five(a, b, c, d, e):
    """As `steady_sum` of five values, without branches; missing ones are 0."""
    a, d = min(a, d), max(a, d)
    b, e = min(b, e), max(b, e)
    a, c = min(a, c), max(a, c)
    b, d = min(b, d), max(b, d)
    a, b = min(a, b), max(a, b)
    c, e = min(c, e), max(c, e)
    b, c = min(b, c), max(b, c)
    d, e = min(d, e), max(d, e)
    c, d = min(c, d), max(c, d)
    return a + b + c + d + e


@inline_kernel
def proximity(is_lonlat, max_distance, x0, y0, x1, y1):
    """1 at the same place, falling linearly to 0 at `max_distance` and beyond."""
    if is_lonlat:
        distance = haversine_m(x0, y0, x1, y1)
    else:
        # Python's own floats, which overflow to infinity silently.
        dx, dy = float(x1) - float(x0), float(y1) - float(y0)
        distance = math.sqrt(dx * dx + dy * dy)
    return max(0.0, 1.0 - distance / max_distance)


@inline_kernel
def similarity(dot, message_length, subscription_length):
    return min(1.0, dot / (message_length * subscription_length))


@inline_kernel
def relevance(spatial_weight, near, similar):
    return spatial_weight * near + (1.0 - spatial_weight) * similar


NOTHING_IN_COMMON = -1.0
NOT_HERE = -1.0
NOWHERE = -1
# A lane beyond all that are compared, so that there is always a lowest one.
_NO_LANE, _LAST_LANE = 1 << LANES, LANES - 1


@inline_kernel
def dot_of(subscriptions, window, s, position, common):
    """The sum of the values of the words that a message and a subscription share, or NOTHING_IN_COMMON.

    `common` is scratch.
    """
    keyword, value, n_words = window.keyword, window.value, subscriptions.n_words[s]
    begin, end = window.keyword_start[position], window.keyword_start[position + 1]
    if n_words <= MOST_WORDS:
        return dot_of_few(keyword, value, begin, end, subscriptions.record_words, 2 * RECORD * s + WORDS, n_words)
    n_common = gather_in_order(keyword, value, begin, end, subscriptions.keyword, subscriptions.first[s], n_words, common)
    return steady_sum(common, n_common) if n_common > 0 else NOTHING_IN_COMMON


@inline_kernel
def dot_of_few(keyword, value, begin, end, words, at, n_words):
    """The same for the words of a record, from `at` of `words` on.

    Neither their number nor which are shared can be predicted, so there is no branch on it.
    """
    if begin == end:
        return NOTHING_IN_COMMON
    a = b = c = d = e = NOWHERE
    for first in range(begin, end, LANES):
        n = min(LANES, end - first)
        a = position_of(keyword, first, n, words[at], a)
        b = position_of(keyword, first, n, words[at + 1], b)
        c = position_of(keyword, first, n, words[at + 2], c)
        d = position_of(keyword, first, n, words[at + 3], d)
        e = position_of(keyword, first, n, words[at + 4], e)
    # What follows the words of a record does not count.
    a, b, c = (a if n_words > 0 else NOWHERE), (b if n_words > 1 else NOWHERE), (c if n_words > 2 else NOWHERE)
    d, e = (d if n_words > 3 else NOWHERE), (e if n_words > 4 else NOWHERE)
    dot = sum_of_five(value_at(value, a), value_at(value, b), value_at(value, c), value_at(value, d), value_at(value, e))
    return dot if max(a, b, c, d, e) != NOWHERE else NOTHING_IN_COMMON


@inline_kernel
def position_of(keyword, at, n, word, otherwise):
    """The position of a keyword among up to sixteen, or `otherwise`."""
    lanes = equal_lanes(keyword, at, n, word)
    return at + (lowest_lane(lanes | _NO_LANE) & _LAST_LANE) if lanes != 0 else otherwise


@inline_kernel
def value_at(value, at):
    found = value[max(at, 0)]
    return found if at != NOWHERE else 0.0


@inline_kernel
def gather_in_order(keyword, value, at, end, words, word_at, n_words, common):
    """Write the values of the words that two sorted runs of words share; returns their number."""
    word_end = word_at + n_words
    n_common = 0
    while at < end and word_at < word_end:
        if keyword[at] == words[word_at]:
            common[n_common] = value[at]
            n_common += 1
            at, word_at = at + 1, word_at + 1
        elif keyword[at] < words[word_at]:
            at += 1
        else:
            word_at += 1
    return n_common


@inline_kernel
def similarity_of(subscriptions, window, common, s, position):
    """The similarity of a message and a subscription that share a word; `common` is scratch."""
    return similarity(dot_of(subscriptions, window, s, position, common), window.length[position], subscriptions.length[s])


@inline_kernel
def score_at(distances, subscriptions, window, s, position, common):
    """The relevance of a message to a subscription; NOT_HERE if they share no word."""
    is_lonlat, max_distance = distances
    dot = dot_of(subscriptions, window, s, position, common)
    if dot == NOTHING_IN_COMMON:
        return NOT_HERE
    similar = similarity(dot, window.length[position], subscriptions.length[s])
    near = proximity(is_lonlat, max_distance, subscriptions.x[s], subscriptions.y[s], window.x[position], window.y[position])
    return relevance(subscriptions.spatial_weight[s], near, similar)


@kernel
def score_pairs(distances, subscriptions, window, threshold, numbers, first, last, common, start, subscription, score):
    """For each message at positions `first` … `last - 1`, those of `numbers` whose thresholds it reaches, with scores.

    Results of the i-th message begin at `start[i]`. `subscription` and `score` have capacity for all pairs, `common` for the
    words of the longest subscription. Returns the number of results.
    """
    subscriptions, window = borrow(subscriptions), borrow(window)
    n = 0
    for position in range(first, last):
        start[position - first] = n
        for i in range(numbers.size):
            s = int(numbers[i])
            found = score_at(distances, subscriptions, window, s, position, common)
            if found != NOT_HERE and found >= threshold[s]:
                subscription[n], score[n] = s, found
                n += 1
    start[last - first] = n
    return n


@kernel
def weigh_subscriptions(subscriptions, number, weights):
    """Write the lengths of the word vectors of these subscriptions; `weights[w]` is the weight of keyword `w`."""
    first, n_words, keyword, length = subscriptions.first, subscriptions.n_words, subscriptions.keyword, subscriptions.length
    most = 0
    for i in range(number.size):
        most = max(most, n_words[number[i]])
    squares = np.empty(most, np.float64)
    for i in range(number.size):
        s = number[i]
        for j in range(n_words[s]):
            weight = weights[keyword[first[s] + j]]
            squares[j] = weight * weight
        length[s] = math.sqrt(steady_sum(squares, n_words[s]))


@kernel
def write_record_words(subscriptions, number):
    """Write the first words of these subscriptions into their records."""
    first, n_words, keyword, record = (
        subscriptions.first,
        subscriptions.n_words,
        subscriptions.keyword,
        subscriptions.record_words,
    )
    for i in range(number.size):
        s = int(number[i])
        for j in range(min(n_words[s], MOST_WORDS)):
            record[2 * RECORD * s + WORDS + j] = keyword[first[s] + j]
