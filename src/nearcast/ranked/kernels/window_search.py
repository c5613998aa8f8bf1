"""What the indexes of the window have in common: signatures of messages, scores, the messages that are not filed yet."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.ranked.kernels.layouts import BASE, RankedSubscriptionArrays, WindowArrays
from nearcast.ranked.kernels.scoring import proximity, score_at
from nearcast.ranked.kernels.search_queues import offer

# What rounding may add to a sum of parts of a score.
ROUNDING = 1e-9
# What subtracting squares one by one from the square of a length may take from what is left of it.
_SUBTRACTED = 1e-12
# Positions of the counters: parts of the index and entries looked at, messages scored.
N_PARTS, N_ENTRIES, N_SCORED = 0, 1, 2
# Columns of the table of pieces: sequence numbers, then where the piece starts in each group of columns, then its own figures.
FIRST, END, STARTS = 0, 1, 2


class SearchLimits(NamedTuple):
    """Which messages are asked for: sequence numbers from `first` up to, but not including, `end`, of at least this score."""

    first: int
    end: int
    least_score: float


class TailArrays(NamedTuple):
    """The messages that are in no piece: for each word of each a posting, linked to the one before of the same keyword."""

    first: int  # sequence number of the first message
    last_of: np.ndarray  # int32[keywords], the last posting, or NO_POSTING
    before: np.ndarray  # int32[postings], the one before, or NO_POSTING
    message: np.ndarray  # int32[postings], counted from the first
    seen: np.ndarray  # int32[messages], scratch: for whom a message was looked at last


NO_POSTING = -1


class SearchArrays(NamedTuple):
    """Whom to search for, in which window, and where to write the best; `ground` is (is_lonlat, max_distance)."""

    subscribers: RankedSubscriptionArrays
    window: WindowArrays
    ground: tuple[bool, float]
    limits: SearchLimits
    tail: TailArrays
    order: np.ndarray  # int64[words], scratch
    common: np.ndarray  # float64[words], scratch
    number: np.ndarray  # int64[], of the messages found
    score: np.ndarray  # float64[]
    counters: np.ndarray  # int64[3]


@inline_kernel
def bit_of(keyword):
    """Which bit of a signature of 31 bits stands for a keyword."""
    return (keyword ^ (keyword >> 7)) % 31


@kernel
def link_postings(window, first, first_message, n_before, last_of, before, message):
    """Write the postings of the messages from place `first` on, which are the tail from `first_message` on."""
    begin = window.keyword_start[first]
    for place in range(first, window.x.size):
        for at in range(window.keyword_start[place], window.keyword_start[place + 1]):
            keyword = window.keyword[at]
            before[at - begin], message[at - begin] = last_of[keyword], first_message + place - first
            last_of[keyword] = n_before + at - begin


@inline_kernel
def least_useful(search, first, n, n_wanted):
    """The score below which a message is not among the best."""
    if n < n_wanted or n == 0:
        return search.limits.least_score
    return max(search.limits.least_score, search.score[first])


@inline_kernel
def search_tail(search, s, turn, first, n, n_wanted):
    """Offer the messages that are in no piece yet to the `n` that are found; returns how many of the best there are.

    `turn` differs from search to search, and is not 0.
    """
    subscribers, window, limits, tail, order = search.subscribers, search.window, search.limits, search.tail, search.order
    base, keyword, weight_of = window.head[BASE], subscribers.keyword, subscribers.weight_of
    spatial, length = subscribers.spatial_weight[s], subscribers.length[s]
    is_lonlat, max_distance = search.ground
    n_words, squares = subscribers.n_words[s], 0.0
    for i in range(n_words):
        own, at = subscribers.first[s] + i, i
        while at > 0 and weight_of[keyword[order[at - 1]]] < weight_of[keyword[own]]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = own
        squares += weight_of[keyword[own]] ** 2
    least = least_useful(search, first, n, n_wanted)
    for i in range(n_words):
        own = keyword[order[i]]
        # As similar as a message can be that has none of the words before, which weigh more.
        similar = min(1.0, math.sqrt(max(0.0, squares) + _SUBTRACTED * length * length) / length) + ROUNDING
        squares -= weight_of[own] ** 2
        if spatial + (1.0 - spatial) * similar < least:
            break
        posting = tail.last_of[own] if own < tail.last_of.size else NO_POSTING
        while posting != NO_POSTING:
            message = tail.message[posting]
            posting = tail.before[posting]
            number = tail.first + message
            # What is over may have lost its place.
            if tail.seen[message] == turn or not max(base, limits.first) <= number < limits.end:
                continue
            tail.seen[message] = turn
            place = number - base
            near = proximity(is_lonlat, max_distance, subscribers.x[s], subscribers.y[s], window.x[place], window.y[place])
            if spatial * near + (1.0 - spatial) * similar < least or window.is_alive[place] == 0:
                continue
            search.counters[N_SCORED] += 1
            score = score_at(search.ground, subscribers, window, s, place, search.common)
            if score >= least:
                n = offer(window.time, base, search.number, search.score, first, n, n_wanted, number, score)
                least = least_useful(search, first, n, n_wanted)
    return n
