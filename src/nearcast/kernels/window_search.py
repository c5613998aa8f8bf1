"""What the indexes of the window have in common: signatures of messages, scores, the messages that are not filed yet."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.best_heap import offer
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.ranked_layouts import BASE, SubscriberArrays, WindowArrays
from nearcast.kernels.relevance import proximity, relevance, short_sum, similarity
from nearcast.kernels.scoring import gather_common

NOT_HERE = -1.0
# What rounding may add to a sum of parts of a score.
ROUNDING = 1e-9
# Positions of the counters: parts of the index and entries looked at, messages scored.
N_PARTS, N_ENTRIES, N_SCORED = 0, 1, 2


class SearchLimits(NamedTuple):
    """Which messages are asked for: sequence numbers from `first` up to, but not including, `end`, of at least this score."""

    first: int
    end: int
    least_score: float


class SearchArrays(NamedTuple):
    """Whom to search for, in which window, and where to write the best; `ground` is (is_lonlat, max_distance)."""

    subscribers: SubscriberArrays
    window: WindowArrays
    ground: tuple[bool, float]
    limits: SearchLimits
    tail_first: int  # sequence number of the first message that is in no piece
    tail: np.ndarray  # int64[], signatures of these messages
    common: np.ndarray  # float64[words], scratch
    number: np.ndarray  # int64[], of the messages found
    score: np.ndarray  # float64[]
    counters: np.ndarray  # int64[3]


@inline_kernel
def bit_of(keyword):
    """Which bit of a signature of 31 bits stands for a keyword."""
    return (keyword ^ (keyword >> 7)) % 31


@kernel
def sign_messages(keyword_start, keyword, first, signature):
    """Write the bits of the words of each message from place `first` on."""
    for i in range(signature.size):
        bits = 0
        for at in range(keyword_start[first + i], keyword_start[first + i + 1]):
            bits |= 1 << bit_of(keyword[at])
        signature[i] = bits


@inline_kernel
def least_useful(search, first, n, n_wanted):
    """The score below which a message is not among the best."""
    if n < n_wanted or n == 0:
        return search.limits.least_score
    return max(search.limits.least_score, search.score[first])


@inline_kernel
def score_at(ground, subscribers, window, s, place, common):
    """The relevance of a message to a subscription; NOT_HERE without a word in common."""
    is_lonlat, max_distance = ground
    n_common = gather_common(subscribers, window, s, place, common)
    if n_common == 0:
        return NOT_HERE
    dot = short_sum(common, n_common)
    similar = similarity(dot, window.length[place], subscribers.length[s])
    near = proximity(is_lonlat, max_distance, subscribers.x[s], subscribers.y[s], window.x[place], window.y[place])
    return relevance(subscribers.spatial_weight[s], near, similar)


@inline_kernel
def search_tail(search, s, first, n_wanted):
    """Offer the messages that are in no piece yet; returns how many of the best there are."""
    subscribers, window, limits = search.subscribers, search.window, search.limits
    tail, tail_first = search.tail, search.tail_first
    base, is_alive, time, keyword = window.head[BASE], window.is_alive, window.time, subscribers.keyword
    wanted_bits = 0
    for at in range(subscribers.first[s], subscribers.first[s] + subscribers.n_words[s]):
        wanted_bits |= 1 << bit_of(keyword[at])
    n = 0
    # What is over may have lost its place.
    for i in range(max(0, base - tail_first, limits.first - tail_first), min(tail.size, limits.end - tail_first)):
        place = tail_first + i - base
        if tail[i] & wanted_bits == 0 or is_alive[place] == 0:
            continue
        search.counters[N_SCORED] += 1
        score = score_at(search.ground, subscribers, window, s, place, search.common)
        if score != NOT_HERE and score >= limits.least_score:
            n = offer(time, base, search.number, search.score, first, n, n_wanted, tail_first + i, score)
    return n
