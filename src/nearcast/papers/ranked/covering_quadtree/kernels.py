"""Lists of subscriptions by cell and keyword, as flat arrays.

Paper: Chen et al. (CIQ), as Wang et al., Skype (VLDB 2016), §2.2 describe and compare it, without decay.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.hashing import EMPTY_SLOT, find_number, number_home
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.kernels.pools import chunk_capacity, give_back, take_chunk
from nearcast.kernels.quadtree import cell_code, column_of
from nearcast.papers.ranked.kernels import SLACK, distance_to_box, nearness, rounded_up
from nearcast.papers.ranked.skyband.kernels.ticks import finish_tick
from nearcast.ranked.kernels.layouts import ALL_ARRIVED, DONE, N_CANDIDATES, UNFINISHED
from nearcast.ranked.kernels.scoring import proximity, relevance, similarity_of
from nearcast.ranked.kernels.window import next_arrival

QUARTERS = 4

# Positions in `used`: postings given out so far; subscriptions filed; those that the frame was chosen for.
POSTINGS, FILED, FRAMED = 0, 1, 2


class Cover(NamedTuple):
    """The frame that is cut into cells, how often, and what distances mean. Outermost cells of the plane have no end."""

    is_lonlat: bool
    max_distance: float
    x0: float
    y0: float
    x1: float
    y1: float
    levels: int


class PostingArrays(NamedTuple):
    """List `i` is `first[i]` … `first[i] + size[i] - 1`, by number; its cell and keyword are number `i` of a number table."""

    first: np.ndarray  # int64[lists]
    size: np.ndarray  # int32[lists]
    room: np.ndarray  # int32[lists]
    subscriber: np.ndarray  # int32[postings]; links free chunks
    share: np.ndarray  # float32[postings], textual weight over the length of the subscription's vector, rounded up
    near: np.ndarray  # float32[subscriptions * levels * QUARTERS], spatial weight times proximity to a cell, rounded up
    free: np.ndarray  # int64[N_CLASSES]
    used: np.ndarray  # int64[3]


# -- The cells that cover the plane for a subscription: the cell around it, cut so many times, and its sisters of every depth.

_KEYWORD_BITS = 32
# Cells are a little wider than they are, for what rounding may do to their borders: of their frame, and of its coordinates.
_OF_FRAME, _OF_COORDINATES = 1e-9, 2e-15


@inline_kernel
def column_at(value, low, high, levels):
    """The column of a coordinate at the greatest depth."""
    half = high * 0.5 - low * 0.5
    return column_of(value, low, high, (1 << levels) / half if half > 0.0 else 0.0, 1 << levels)


@inline_kernel
def list_key(depth, column, row, keyword):
    """The number that names a cell and a keyword."""
    return (cell_code(depth, column, row) << _KEYWORD_BITS) | keyword


@kernel
def border(low, high, column, depth, is_open):
    """Between a column and the one before it; without end before the first one and behind the last one."""
    if is_open and column == 0:
        return -math.inf
    if is_open and column == 1 << depth:
        return math.inf
    share = column / (1 << depth)
    return low * (1.0 - share) + high * share


@kernel
def margin(low, high):
    return _OF_FRAME * (high * 0.5 - low * 0.5) + _OF_COORDINATES * max(abs(low), abs(high))


@kernel
def nearness_of_cell(cover, x, y, depth, column, row):
    """At least the proximity of anything in a cell to a point."""
    is_open = not cover.is_lonlat
    wide, high = margin(cover.x0, cover.x1), margin(cover.y0, cover.y1)
    x0 = border(cover.x0, cover.x1, column, depth, is_open) - wide
    x1 = border(cover.x0, cover.x1, column + 1, depth, is_open) + wide
    y0 = border(cover.y0, cover.y1, row, depth, is_open) - high
    y1 = border(cover.y0, cover.y1, row + 1, depth, is_open) + high
    distance = distance_to_box(cover.is_lonlat, x, y, x0, y0, x1, y1)
    return nearness(distance, cover.max_distance)


@kernel
def write_keys(cover, subscribers, numbers, keys):
    """Write the keys of all lists that subscriptions belong to; returns how many."""
    n = 0
    for i in range(numbers.size):
        s = numbers[i]
        column = column_at(subscribers.x[s], cover.x0, cover.x1, cover.levels)
        row = column_at(subscribers.y[s], cover.y0, cover.y1, cover.levels)
        first = subscribers.first[s]
        for depth in range(1, cover.levels + 1):
            own_column, own_row = column >> (cover.levels - depth), row >> (cover.levels - depth)
            for quarter in range(QUARTERS):
                across, up = (own_column & ~1) | (quarter & 1), (own_row & ~1) | (quarter >> 1)
                if depth < cover.levels and across == own_column and up == own_row:
                    continue
                for at in range(first, first + subscribers.n_words[s]):
                    keys[n] = list_key(depth, across, up, int(subscribers.keyword[at]))
                    n += 1
    return n


@kernel
def write_nearness(cover, subscribers, numbers, near):
    """Write how much each cell around a subscription, and each of its sisters, can add to a score by its place."""
    per_subscription = cover.levels * QUARTERS
    for i in range(numbers.size):
        s = numbers[i]
        x, y, weight = subscribers.x[s], subscribers.y[s], subscribers.spatial_weight[s]
        column = column_at(x, cover.x0, cover.x1, cover.levels)
        row = column_at(y, cover.y0, cover.y1, cover.levels)
        for depth in range(1, cover.levels + 1):
            own_column, own_row = column >> (cover.levels - depth), row >> (cover.levels - depth)
            for quarter in range(QUARTERS):
                across, up = (own_column & ~1) | (quarter & 1), (own_row & ~1) | (quarter >> 1)
                at = s * per_subscription + (depth - 1) * QUARTERS + quarter
                near[at] = rounded_up(weight * nearness_of_cell(cover, x, y, depth, across, up))


# -- Subscriptions are put into lists that are sorted by their numbers, and taken out again.


@kernel
def post_many(lists, subscribers, numbers, per_word, owners, done):
    """Post subscriptions from position `done` on; returns where it stopped for lack of room.

    `owners` are the lists of all of them, `per_word` for each keyword.
    """
    at = 0
    for i in range(done):
        at += per_word * subscribers.n_words[numbers[i]]
    for i in range(done, numbers.size):
        s = numbers[i]
        n_lists = per_word * subscribers.n_words[s]
        needed = 0
        for owner in owners[at : at + n_lists]:
            needed += chunk_capacity(lists.size[owner] + 1)
        if lists.used[POSTINGS] + needed > lists.subscriber.size:
            return i
        share = rounded_up((1.0 - subscribers.spatial_weight[s]) / subscribers.length[s])
        for owner in owners[at : at + n_lists]:
            post(lists, owner, s, share)
        lists.used[FILED] += 1
        at += n_lists
    return numbers.size


@kernel
def post(lists, owner, s, share):
    """Put a subscription into one list."""
    size, room, first = lists.size[owner], lists.room[owner], lists.first[owner]
    subscriber, shares = lists.subscriber, lists.share
    if size == room:
        grown = chunk_capacity(size + 1)
        moved = take_chunk(lists.free, subscriber, lists.used, POSTINGS, grown)
        for i in range(size):
            subscriber[moved + i], shares[moved + i] = subscriber[first + i], shares[first + i]
        give_back(lists.free, subscriber, first, room)
        lists.first[owner], lists.room[owner] = moved, grown
        first = moved
    at = first + size
    while at > first and subscriber[at - 1] > s:
        subscriber[at], shares[at] = subscriber[at - 1], shares[at - 1]
        at -= 1
    subscriber[at], shares[at] = s, share
    lists.size[owner] = size + 1


@kernel
def withdraw_many(lists, subscribers, numbers, per_word, owners):
    """Take subscriptions out of their lists."""
    at = 0
    for i in range(numbers.size):
        s = numbers[i]
        n_lists = per_word * subscribers.n_words[s]
        for owner in owners[at : at + n_lists]:
            withdraw(lists, owner, s)
        lists.used[FILED] -= 1
        at += n_lists


@kernel
def withdraw(lists, owner, s):
    """Take a subscription out of one list."""
    subscriber, shares = lists.subscriber, lists.share
    low, end = lists.first[owner], lists.first[owner] + lists.size[owner]
    high = end
    while low < high:
        middle = (low + high) // 2
        if subscriber[middle] < s:
            low = middle + 1
        else:
            high = middle
    for at in range(low, end - 1):
        subscriber[at], shares[at] = subscriber[at + 1], shares[at + 1]
    lists.size[owner] -= 1


# -- Find the subscriptions whose threshold a message reaches: in each cell around it the lists of its keywords are merged.

# Rows of the scratch for lists that are merged: where each stands, where it ends, the subscription it stands at.
STANDS, ENDS, NEXT = 0, 1, 2
_NOBODY = 1 << 40

# Positions in `looked`: cells, lists, postings, subscriptions met, subscriptions scored.
CELLS, LISTS, POSTINGS_SEEN, MET, SCORED = 0, 1, 2, 3, 4


@kernel
def run_ticks(index, scratch, subscribers, window, buffers, calendar, journal, run, changes, last, rules):
    """See `TickIndex.run_ticks`; `index` is (lists, table of their keys, cover)."""
    while True:
        place = next_arrival(window, run, last, rules.is_timed)
        if place == ALL_ARRIVED:
            return DONE
        if place != UNFINISHED:
            run.at[N_CANDIDATES] = find_candidates(index, scratch, subscribers, window, buffers, run, place)
        stopped = finish_tick(subscribers, window, buffers, calendar, journal, run, changes, rules)
        if stopped != DONE:
            return stopped


@kernel
def find_candidates(index, scratch, subscribers, window, buffers, run, place):
    """Write the subscriptions whose threshold the message reaches, with its scores; returns how many.

    Exactly one of the cells that cover the plane for a subscription has the message, so that each is met in one cell only.
    """
    lists, table, cover = index
    merged, value, looked = scratch
    subscribers, window, lists = borrow(subscribers), borrow(window), borrow(lists)
    subscriber, share, near, threshold = lists.subscriber, lists.share, lists.near, buffers.threshold
    x, y = window.x[place], window.y[place]
    column = column_at(x, cover.x0, cover.x1, cover.levels)
    row = column_at(y, cover.y0, cover.y1, cover.levels)
    per_subscription = cover.levels * QUARTERS
    n_found = n_lists = n_seen = n_met = n_scored = 0
    for depth in range(1, cover.levels + 1):
        across, up = column >> (cover.levels - depth), row >> (cover.levels - depth)
        own = (depth - 1) * QUARTERS + (across & 1) + 2 * (up & 1)
        n_merged = open_lists(lists, table, window, place, depth, across, up, merged, value)
        n_lists += n_merged
        for i in range(n_merged):
            n_seen += merged[ENDS, i] - merged[STANDS, i]
        while True:
            s = _NOBODY
            for i in range(n_merged):
                s = min(s, merged[NEXT, i])
            if s == _NOBODY:
                break
            text = 0.0
            for i in range(n_merged):
                if merged[NEXT, i] == s:
                    at = merged[STANDS, i]
                    text += float(share[at]) * value[i]
                    merged[STANDS, i] = at + 1
                    merged[NEXT, i] = subscriber[at + 1] if at + 1 < merged[ENDS, i] else _NOBODY
            n_met += 1
            if text + float(near[s * per_subscription + own]) < threshold[s] - SLACK:
                continue
            n_scored += 1
            weight = subscribers.spatial_weight[s]
            exact = proximity(cover.is_lonlat, cover.max_distance, subscribers.x[s], subscribers.y[s], x, y)
            score = relevance(weight, exact, similarity_of(subscribers, window, run.scores, s, place))
            if score >= threshold[s]:
                run.candidate[n_found] = s
                run.candidate_score[n_found] = score
                n_found += 1
    looked[CELLS] += cover.levels
    looked[LISTS] += n_lists
    looked[POSTINGS_SEEN] += n_seen
    looked[MET] += n_met
    looked[SCORED] += n_scored
    run.counters[NODES] += n_lists
    run.counters[CANDIDATES] += n_scored
    return n_found


@kernel
def open_lists(lists, table, window, place, depth, column, row, merged, value):
    """Stand at the beginning of the lists of a message's keywords in a cell, those that are not empty; returns how many."""
    slot, known = table.slot, table.number
    n = 0
    for at in range(window.keyword_start[place], window.keyword_start[place + 1]):
        key = list_key(depth, column, row, int(window.keyword[at]))
        owner = slot[find_number(slot, known, key, number_home(key, slot.size))]
        if owner != EMPTY_SLOT and lists.size[owner] > 0:
            first = lists.first[owner]
            merged[STANDS, n], merged[ENDS, n] = first, first + lists.size[owner]
            merged[NEXT, n] = lists.subscriber[first]
            value[n] = window.value[at] / window.length[place]
            n += 1
    return n
