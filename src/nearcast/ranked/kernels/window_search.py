"""What the indexes of the window share: signatures of messages, and the search of the tail."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.ranked.kernels.layouts import BASE, RankedSubscriptionArrays, WindowArrays
from nearcast.ranked.kernels.scoring import proximity, score_at
from nearcast.ranked.kernels.search_queues import offer

# More than rounding adds to a sum of parts of a score.
ROUNDING = 1e-9
# More than subtracting squares one by one from a squared length takes from the rest.
_SUBTRACTED = 1e-12
# Positions of the counters: parts of the index visited, entries visited, messages scored.
N_PARTS, N_ENTRIES, N_SCORED = 0, 1, 2
# Columns of the table of segments: sequence numbers, the start in each group of columns, then figures of the index.
FIRST, END, STARTS = 0, 1, 2


class SearchLimits(NamedTuple):
    """Which messages may be found: sequence numbers from `first` up to, not including, `end`, with at least this score."""

    first: int
    end: int
    least_score: float


class TailArrays(NamedTuple):
    """The messages in no segment: a posting for each word of each, linked to the posting before with the same keyword."""

    first: int  # sequence number of the first message
    last_of: np.ndarray  # int32[keywords], the last posting, or NO_POSTING
    before: np.ndarray  # int32[postings], the one before, or NO_POSTING
    message: np.ndarray  # int32[postings], counted from the first
    seen: np.ndarray  # int32[messages], scratch: the last search that met a message


NO_POSTING = -1


class SearchArrays(NamedTuple):
    """For which subscriptions to search, in which window, and where to write; `distances` is (is_lonlat, max_distance)."""

    subscriptions: RankedSubscriptionArrays
    window: WindowArrays
    distances: tuple[bool, float]
    limits: SearchLimits
    tail: TailArrays
    order: np.ndarray  # int64[words], scratch
    common: np.ndarray  # float64[words], scratch
    number: np.ndarray  # int64[], of the messages found
    score: np.ndarray  # float64[]
    counters: np.ndarray  # int64[3]


@inline_kernel
def bit_of(keyword):
    """The bit of a keyword in a signature of 31 bits."""
    return (keyword ^ (keyword >> 7)) % 31


@kernel
def link_postings(window, first, first_message, n_before, last_of, before, message):
    """Write the postings of the messages from position `first` on; the first of them is message `first_message` of the tail."""
    begin = window.keyword_start[first]
    for position in range(first, window.x.size):
        for at in range(window.keyword_start[position], window.keyword_start[position + 1]):
            keyword = window.keyword[at]
            before[at - begin], message[at - begin] = last_of[keyword], first_message + position - first
            last_of[keyword] = n_before + at - begin


@inline_kernel
def least_useful(search, first, n, n_best):
    """The score that a message needs to be among the best."""
    if n < n_best or n == 0:
        return search.limits.least_score
    return max(search.limits.least_score, search.score[first])


@inline_kernel
def search_tail(search, s, turn, first, n, n_best):
    """Offer the messages of the tail to the `n` found so far; returns how many of the best there are then.

    `turn` differs from search to search, and is not 0.
    """
    subscriptions, window, limits, tail, order = search.subscriptions, search.window, search.limits, search.tail, search.order
    base, keyword, weight_of = window.head[BASE], subscriptions.keyword, subscriptions.weight_of
    spatial, length = subscriptions.spatial_weight[s], subscriptions.length[s]
    is_lonlat, max_distance = search.distances
    n_words, squares = subscriptions.n_words[s], 0.0
    for i in range(n_words):
        word, at = subscriptions.first[s] + i, i
        while at > 0 and weight_of[keyword[order[at - 1]]] < weight_of[keyword[word]]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = word
        squares += weight_of[keyword[word]] ** 2
    least = least_useful(search, first, n, n_best)
    for i in range(n_words):
        word = keyword[order[i]]
        # An upper bound for messages without the words before, which weigh more.
        similar = min(1.0, math.sqrt(max(0.0, squares) + _SUBTRACTED * length * length) / length) + ROUNDING
        squares -= weight_of[word] ** 2
        if spatial + (1.0 - spatial) * similar < least:
            break
        posting = tail.last_of[word] if word < tail.last_of.size else NO_POSTING
        while posting != NO_POSTING:
            message = tail.message[posting]
            posting = tail.before[posting]
            number = tail.first + message
            # Expired messages may have been dropped from the window.
            if tail.seen[message] == turn or not max(base, limits.first) <= number < limits.end:
                continue
            tail.seen[message] = turn
            position = number - base
            near = proximity(
                is_lonlat, max_distance, subscriptions.x[s], subscriptions.y[s], window.x[position], window.y[position]
            )
            if spatial * near + (1.0 - spatial) * similar < least or window.is_alive[position] == 0:
                continue
            search.counters[N_SCORED] += 1
            score = score_at(search.distances, subscriptions, window, s, position, search.common)
            if score >= least:
                n = offer(window.time, base, search.number, search.score, first, n, n_best, number, score)
                least = least_useful(search, first, n, n_best)
    return n
