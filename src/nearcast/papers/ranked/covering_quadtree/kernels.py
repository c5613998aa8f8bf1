"""Lists of subscriptions by cell and keyword: their arrays, the cells of a subscription, and the search.

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

# Positions in `used`: postings allocated; subscriptions filed; subscriptions that the frame was chosen for.
POSTINGS, FILED, FRAMED = 0, 1, 2


class Cover(NamedTuple):
    """The frame, how often it is divided, and how distances are measured. Outermost cells of the plane have no outer border."""

    is_lonlat: bool
    max_distance: float
    x0: float
    y0: float
    x1: float
    y1: float
    levels: int


class CellListArrays(NamedTuple):
    """List `i` is `first[i]` … `first[i] + size[i] - 1`, by number; its cell and keyword are number `i` of a number table."""

    first: np.ndarray  # int64[lists]
    size: np.ndarray  # int32[lists]
    capacity: np.ndarray  # int32[lists]
    subscription: np.ndarray  # int32[postings]; links free chunks
    share: np.ndarray  # float32[postings], textual weight over the length of the subscription's vector, rounded up
    near: np.ndarray  # float32[subscriptions * levels * QUARTERS], spatial weight times proximity to a cell, rounded up
    free: np.ndarray  # int64[N_CLASSES]
    used: np.ndarray  # int64[3]


# --- cells: the one around a subscription, divided again and again, and its siblings of every depth ---------------

_KEYWORD_BITS = 32
# Cells are widened a little, for rounding: by a share of their frame, and of its coordinates.
_OF_FRAME, _OF_COORDINATES = 1e-9, 2e-15


@inline_kernel
def column_at(value, low, high, levels):
    """The column of a coordinate at the greatest depth."""
    half = high * 0.5 - low * 0.5
    return column_of(value, low, high, (1 << levels) / half if half > 0.0 else 0.0, 1 << levels)


@inline_kernel
def list_key(depth, column, row, keyword):
    """The key of a cell and a keyword."""
    return (cell_code(depth, column, row) << _KEYWORD_BITS) | keyword


@kernel
def cell_edge(low, high, column, depth, is_open):
    """The border between a column and the one before it; infinite before the first and after the last."""
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
    x0 = cell_edge(cover.x0, cover.x1, column, depth, is_open) - wide
    x1 = cell_edge(cover.x0, cover.x1, column + 1, depth, is_open) + wide
    y0 = cell_edge(cover.y0, cover.y1, row, depth, is_open) - high
    y1 = cell_edge(cover.y0, cover.y1, row + 1, depth, is_open) + high
    distance = distance_to_box(cover.is_lonlat, x, y, x0, y0, x1, y1)
    return nearness(distance, cover.max_distance)


@kernel
def write_keys(cover, subscriptions, numbers, keys):
    """Write the keys of all lists of these subscriptions; returns their number."""
    n = 0
    for i in range(numbers.size):
        s = numbers[i]
        column = column_at(subscriptions.x[s], cover.x0, cover.x1, cover.levels)
        row = column_at(subscriptions.y[s], cover.y0, cover.y1, cover.levels)
        first = subscriptions.first[s]
        for depth in range(1, cover.levels + 1):
            cell_column, cell_row = column >> (cover.levels - depth), row >> (cover.levels - depth)
            for quarter in range(QUARTERS):
                across, up = (cell_column & ~1) | (quarter & 1), (cell_row & ~1) | (quarter >> 1)
                if depth < cover.levels and across == cell_column and up == cell_row:
                    continue
                for at in range(first, first + subscriptions.n_words[s]):
                    keys[n] = list_key(depth, across, up, int(subscriptions.keyword[at]))
                    n += 1
    return n


@kernel
def write_nearness(cover, subscriptions, numbers, near):
    """Write the most that each cell around a subscription, and each of its siblings, adds to a score by proximity."""
    per_subscription = cover.levels * QUARTERS
    for i in range(numbers.size):
        s = numbers[i]
        x, y, weight = subscriptions.x[s], subscriptions.y[s], subscriptions.spatial_weight[s]
        column = column_at(x, cover.x0, cover.x1, cover.levels)
        row = column_at(y, cover.y0, cover.y1, cover.levels)
        for depth in range(1, cover.levels + 1):
            cell_column, cell_row = column >> (cover.levels - depth), row >> (cover.levels - depth)
            for quarter in range(QUARTERS):
                across, up = (cell_column & ~1) | (quarter & 1), (cell_row & ~1) | (quarter >> 1)
                at = s * per_subscription + (depth - 1) * QUARTERS + quarter
                near[at] = rounded_up(weight * nearness_of_cell(cover, x, y, depth, across, up))


# --- lists, sorted by subscription number ------------------------------------------------------------------------


@kernel
def post_many(lists, subscriptions, numbers, per_word, list_ids, done):
    """Add subscriptions from position `done` on to their lists; returns where it stopped for lack of capacity.

    `list_ids` are the lists of all of them, `per_word` for each keyword.
    """
    at = 0
    for i in range(done):
        at += per_word * subscriptions.n_words[numbers[i]]
    for i in range(done, numbers.size):
        s = numbers[i]
        n_lists = per_word * subscriptions.n_words[s]
        needed = 0
        for list_id in list_ids[at : at + n_lists]:
            needed += chunk_capacity(lists.size[list_id] + 1)
        if lists.used[POSTINGS] + needed > lists.subscription.size:
            return i
        share = rounded_up((1.0 - subscriptions.spatial_weight[s]) / subscriptions.length[s])
        for list_id in list_ids[at : at + n_lists]:
            post(lists, list_id, s, share)
        lists.used[FILED] += 1
        at += n_lists
    return numbers.size


@kernel
def post(lists, list_id, s, share):
    """Add a subscription to a list."""
    size, capacity, first = lists.size[list_id], lists.capacity[list_id], lists.first[list_id]
    subscription, shares = lists.subscription, lists.share
    if size == capacity:
        grown = chunk_capacity(size + 1)
        moved = take_chunk(lists.free, subscription, lists.used, POSTINGS, grown)
        for i in range(size):
            subscription[moved + i], shares[moved + i] = subscription[first + i], shares[first + i]
        give_back(lists.free, subscription, first, capacity)
        lists.first[list_id], lists.capacity[list_id] = moved, grown
        first = moved
    at = first + size
    while at > first and subscription[at - 1] > s:
        subscription[at], shares[at] = subscription[at - 1], shares[at - 1]
        at -= 1
    subscription[at], shares[at] = s, share
    lists.size[list_id] = size + 1


@kernel
def remove_many(lists, subscriptions, numbers, per_word, list_ids):
    """Remove subscriptions from their lists."""
    at = 0
    for i in range(numbers.size):
        s = numbers[i]
        n_lists = per_word * subscriptions.n_words[s]
        for list_id in list_ids[at : at + n_lists]:
            remove(lists, list_id, s)
        lists.used[FILED] -= 1
        at += n_lists


@kernel
def remove(lists, list_id, s):
    """Remove a subscription from a list."""
    subscription, shares = lists.subscription, lists.share
    low, end = lists.first[list_id], lists.first[list_id] + lists.size[list_id]
    high = end
    while low < high:
        middle = (low + high) // 2
        if subscription[middle] < s:
            low = middle + 1
        else:
            high = middle
    for at in range(low, end - 1):
        subscription[at], shares[at] = subscription[at + 1], shares[at + 1]
    lists.size[list_id] -= 1


# --- search: in each cell around a message the lists of its keywords are merged -----------------------------------

# Rows of `cursors`, one column per list: its current position, its end, the subscription there.
STANDS, ENDS, NEXT = 0, 1, 2
_NOBODY = 1 << 40

# Positions in `counts`: cells, lists, postings, subscriptions merged, subscriptions scored.
CELLS, LISTS, POSTINGS_SEEN, MET, SCORED = 0, 1, 2, 3, 4


@kernel
def run_ticks(index, scratch, subscriptions, window, buffers, calendar, snapshots, run, changes, last, rules):
    """See `TickIndex.run_ticks`; `index` is (lists, table of their keys, cover)."""
    while True:
        position = next_arrival(window, run, last, rules.is_timed)
        if position == ALL_ARRIVED:
            return DONE
        if position != UNFINISHED:
            run.at[N_CANDIDATES] = find_candidates(index, scratch, subscriptions, window, buffers, run, position)
        stopped = finish_tick(subscriptions, window, buffers, calendar, snapshots, run, changes, rules)
        if stopped != DONE:
            return stopped


@kernel
def find_candidates(index, scratch, subscriptions, window, buffers, run, position):
    """Write the subscriptions whose threshold the message reaches, with scores; returns their number.

    Exactly one of the cells that cover the plane for a subscription contains the message, so each is met in one cell only.
    """
    lists, table, cover = index
    cursors, value, counts = scratch
    subscriptions, window, lists = borrow(subscriptions), borrow(window), borrow(lists)
    subscription, share, near, threshold = lists.subscription, lists.share, lists.near, buffers.threshold
    x, y = window.x[position], window.y[position]
    column = column_at(x, cover.x0, cover.x1, cover.levels)
    row = column_at(y, cover.y0, cover.y1, cover.levels)
    per_subscription = cover.levels * QUARTERS
    n_reached = n_lists = n_seen = n_met = n_scored = 0
    for depth in range(1, cover.levels + 1):
        across, up = column >> (cover.levels - depth), row >> (cover.levels - depth)
        quarter_at = (depth - 1) * QUARTERS + (across & 1) + 2 * (up & 1)
        n_cursors = open_lists(lists, table, window, position, depth, across, up, cursors, value)
        n_lists += n_cursors
        for i in range(n_cursors):
            n_seen += cursors[ENDS, i] - cursors[STANDS, i]
        while True:
            s = _NOBODY
            for i in range(n_cursors):
                s = min(s, cursors[NEXT, i])
            if s == _NOBODY:
                break
            text = 0.0
            for i in range(n_cursors):
                if cursors[NEXT, i] == s:
                    at = cursors[STANDS, i]
                    text += float(share[at]) * value[i]
                    cursors[STANDS, i] = at + 1
                    cursors[NEXT, i] = subscription[at + 1] if at + 1 < cursors[ENDS, i] else _NOBODY
            n_met += 1
            if text + float(near[s * per_subscription + quarter_at]) < threshold[s] - SLACK:
                continue
            n_scored += 1
            weight = subscriptions.spatial_weight[s]
            exact = proximity(cover.is_lonlat, cover.max_distance, subscriptions.x[s], subscriptions.y[s], x, y)
            score = relevance(weight, exact, similarity_of(subscriptions, window, run.scores, s, position))
            if score >= threshold[s]:
                run.candidate[n_reached] = s
                run.candidate_score[n_reached] = score
                n_reached += 1
    counts[CELLS] += cover.levels
    counts[LISTS] += n_lists
    counts[POSTINGS_SEEN] += n_seen
    counts[MET] += n_met
    counts[SCORED] += n_scored
    run.counters[NODES] += n_lists
    run.counters[CANDIDATES] += n_scored
    return n_reached


@kernel
def open_lists(lists, table, window, position, depth, column, row, cursors, value):
    """Open the lists of a message's keywords in a cell that are not empty; returns their number."""
    slot, known = table.slot, table.number
    n = 0
    for at in range(window.keyword_start[position], window.keyword_start[position + 1]):
        key = list_key(depth, column, row, int(window.keyword[at]))
        list_id = slot[find_number(slot, known, key, number_home(key, slot.size))]
        if list_id != EMPTY_SLOT and lists.size[list_id] > 0:
            first = lists.first[list_id]
            cursors[STANDS, n], cursors[ENDS, n] = first, first + lists.size[list_id]
            cursors[NEXT, n] = lists.subscription[first]
            value[n] = window.value[at] / window.length[position]
            n += 1
    return n
