"""Subscriptions are put into the lists of their keywords, taken out, and given other keys."""

from __future__ import annotations

import math

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.pools import chunk_capacity, give_back
from nearcast.papers.ranked.group_pruned.kernels.divide import (
    give_room,
    halve,
    move_group,
    nearest_group,
    open_group,
    place_scale,
    start_sides,
    unlikeness,
    widen,
)
from nearcast.papers.ranked.group_pruned.kernels.group import (
    AFTER_NORM,
    AFTER_SUM,
    ENTRIES,
    FILED,
    GROUPS,
    INNER,
    KEY,
    N_FIELDS,
    OWN,
    WEIGHT,
    WEIGHT0,
    WEIGHT1,
    X0,
    X1,
    Y0,
    Y1,
    X,
    Y,
    close_place,
    open_place,
    rekey,
    sum_up,
)
from nearcast.papers.ranked.kernels import bit_of, distance_to_border, rounded_down, rounded_up, within_float32

NOT_THERE = -1
_FIRST_ROOM = 2


@inline_kernel
def as_stored(value):
    """An upper bound as it is read from float32."""
    return float(np.float32(rounded_up(value)))


@kernel
def file_many(lists, subscribers, threshold, numbers, done, filing):
    """File subscriptions from position `done` on; returns where it stopped for lack of room. Their keywords have ranks."""
    value = np.empty(filing.group_size + 1, np.float64)
    order = np.empty(filing.group_size + 1, np.int64)
    for i in range(done, numbers.size):
        s = numbers[i]
        if not has_room(lists, subscribers, s, filing.group_size):
            return i
        lists.key[s] = threshold[s]
        first = subscribers.first[s]
        for at in range(first, first + subscribers.n_words[s]):
            file_one(lists, subscribers, s, at, filing, value, order)
        lists.used[FILED] += 1
    return numbers.size


@kernel
def has_room(lists, subscribers, s, group_size):
    """Whether a subscription can be filed without more room: each list may have to move, and one of its groups be halved."""
    keyword, first, n_words = subscribers.keyword, subscribers.first[s], subscribers.n_words[s]
    n_groups = 0
    for at in range(first, first + n_words):
        n_groups += chunk_capacity(lists.n_groups[keyword[at]] + 1)
    n_entries = n_words * 2 * chunk_capacity(group_size + 2)
    used = lists.used
    return used[GROUPS] + n_groups <= lists.n_entries.size and used[ENTRIES] + n_entries <= lists.subscriber.size


@kernel
def file_one(lists, subscribers, s, at, filing, value, order):
    """Put a subscription into the list of its keyword at `at`."""
    word, x, y = subscribers.keyword[at], subscribers.x[s], subscribers.y[s]
    own, after, after_norm, bits = shares(lists.rank, subscribers, s, at)
    # As they will be read: rounded once, so that entry and sides agree.
    own, after, weight = as_stored(own), as_stored(after), as_stored(subscribers.spatial_weight[s])
    key = rounded_down(lists.key[s])
    if lists.n_groups[word] == 0:
        group = open_group(lists, word, _FIRST_ROOM)
        start_sides(lists.side, group, x, y, weight, own, after)
    else:
        group = nearest_group(lists, lists.first_group[word], lists.n_groups[word], x, y, weight, own, after, key, filing)
        if lists.n_entries[group] == filing.group_size:
            group, upper = halve(lists, word, group, subscribers, filing, value, order)
            scale = place_scale(filing.is_lonlat, filing.max_distance)
            unlike = unlikeness(lists.side, group, scale, x, y, weight, own, after, key)
            if unlikeness(lists.side, upper, scale, x, y, weight, own, after, key) < unlike:
                group = upper
        give_room(lists, group)
        widen(lists, group, x, y, weight, own, after)
    place = open_place(lists, group, key)
    lists.subscriber[place], lists.after[place] = s, bits
    row, side, entry = place * N_FIELDS, lists.side, lists.entry
    way = distance_to_border(filing.is_lonlat, x, y, side[X0, group], side[Y0, group], side[X1, group], side[Y1, group])
    entry[row + KEY], entry[row + OWN], entry[row + WEIGHT], entry[row + INNER] = key, own, weight, rounded_down(way)
    entry[row + AFTER_SUM], entry[row + AFTER_NORM] = after, rounded_up(after_norm)
    entry[row + X], entry[row + Y] = within_float32(x), within_float32(y)
    sum_up(lists, group, place - lists.first_entry[group])


@kernel
def shares(rank, subscribers, s, at):
    """What the keyword at `at`, and those after it in the order, can add to a score; and bits of those after it."""
    keyword, weight_of = subscribers.keyword, subscribers.weight_of
    first = subscribers.first[s]
    textual = (1.0 - subscribers.spatial_weight[s]) / subscribers.length[s]
    total, squares, bits = 0.0, 0.0, 0
    for other in range(first, first + subscribers.n_words[s]):
        if rank[keyword[other]] > rank[keyword[at]]:
            weight = weight_of[keyword[other]]
            total += weight
            squares += weight * weight
            bits |= bit_of(int(keyword[other]))
    return textual * weight_of[keyword[at]], textual * total, textual * math.sqrt(squares), bits


@kernel
def find_entry(lists, subscribers, s, word):
    """The group and the place where a subscription is filed under a keyword, or NOT_THERE."""
    x, y = subscribers.x[s], subscribers.y[s]
    weight = as_stored(subscribers.spatial_weight[s])
    side, subscriber = lists.side, lists.subscriber
    for group in range(lists.first_group[word], lists.first_group[word] + lists.n_groups[word]):
        if not (side[X0, group] <= x <= side[X1, group] and side[Y0, group] <= y <= side[Y1, group]):
            continue
        if side[WEIGHT0, group] <= weight <= side[WEIGHT1, group]:
            first = lists.first_entry[group]
            for place in range(first, first + lists.n_entries[group]):
                if subscriber[place] == s:
                    return group, place
    return NOT_THERE, NOT_THERE


@kernel
def unfile_many(lists, subscribers, numbers):
    """Take subscriptions out of the lists of their keywords."""
    for i in range(numbers.size):
        s = numbers[i]
        first = subscribers.first[s]
        for at in range(first, first + subscribers.n_words[s]):
            word = subscribers.keyword[at]
            group, place = find_entry(lists, subscribers, s, word)
            close_place(lists, group, place)
            if lists.n_entries[group] > 0:
                sum_up(lists, group, place - lists.first_entry[group])
            else:
                close_group(lists, word, group)
        lists.used[FILED] -= 1


@kernel
def close_group(lists, word, group):
    """Forget an empty group; the last of its keyword takes its place."""
    give_back(lists.free_entries, lists.subscriber, lists.first_entry[group], lists.entry_room[group])
    last = lists.first_group[word] + lists.n_groups[word] - 1
    if group != last:
        move_group(lists, last, group)
    lists.n_groups[word] -= 1


@kernel
def rekey_many(lists, subscribers, threshold, numbers):
    """Take over the thresholds of subscriptions."""
    for i in range(numbers.size):
        s = numbers[i]
        lists.key[s] = threshold[s]
        key = rounded_down(threshold[s])
        first = subscribers.first[s]
        for at in range(first, first + subscribers.n_words[s]):
            group, place = find_entry(lists, subscribers, s, subscribers.keyword[at])
            rekey(lists, group, place, key)
