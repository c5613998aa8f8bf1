"""Add subscriptions to the lists of their keywords, remove them, and change their keys."""

from __future__ import annotations

import math

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.pools import chunk_capacity, give_back
from nearcast.papers.ranked.group_pruned.kernels.divide import (
    dissimilarity,
    halve,
    location_scale,
    move_group,
    nearest_group,
    open_group,
    reserve,
    start_bounds,
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
    KEYWORD_SHARE,
    N_FIELDS,
    WEIGHT,
    WEIGHT0,
    WEIGHT1,
    X0,
    X1,
    Y0,
    Y1,
    X,
    Y,
    insert_gap,
    rekey,
    remove_entry,
    sum_up,
)
from nearcast.papers.ranked.kernels import bit_of, distance_to_border, rounded_down, rounded_up, within_float32

NOT_THERE = -1
_FIRST_CAPACITY = 2


@inline_kernel
def as_stored(value):
    """An upper bound as it is read from float32."""
    return float(np.float32(rounded_up(value)))


@kernel
def insert_many(lists, subscriptions, threshold, numbers, done, grouping):
    """Add subscriptions from position `done` on; returns where it stopped for lack of capacity. Their keywords have ranks."""
    value = np.empty(grouping.group_size + 1, np.float64)
    order = np.empty(grouping.group_size + 1, np.int64)
    for i in range(done, numbers.size):
        s = numbers[i]
        if not has_capacity(lists, subscriptions, s, grouping.group_size):
            return i
        lists.key[s] = threshold[s]
        first = subscriptions.first[s]
        for at in range(first, first + subscriptions.n_words[s]):
            insert_one(lists, subscriptions, s, at, grouping, value, order)
        lists.used[FILED] += 1
    return numbers.size


@kernel
def has_capacity(lists, subscriptions, s, group_size):
    """Whether there is capacity for a subscription: each list may have to move, and one of its groups may be divided."""
    keyword, first, n_words = subscriptions.keyword, subscriptions.first[s], subscriptions.n_words[s]
    n_groups = 0
    for at in range(first, first + n_words):
        n_groups += chunk_capacity(lists.n_groups[keyword[at]] + 1)
    n_entries = n_words * 2 * chunk_capacity(group_size + 2)
    used = lists.used
    return used[GROUPS] + n_groups <= lists.n_entries.size and used[ENTRIES] + n_entries <= lists.subscription.size


@kernel
def insert_one(lists, subscriptions, s, at, grouping, value, order):
    """Add a subscription to the list of its keyword at `at`."""
    word, x, y = subscriptions.keyword[at], subscriptions.x[s], subscriptions.y[s]
    share, after, after_norm, bits = shares(lists.rank, subscriptions, s, at)
    # Rounded once, as they will be read, so that entry and bounds agree.
    share, after, weight = as_stored(share), as_stored(after), as_stored(subscriptions.spatial_weight[s])
    key = rounded_down(lists.key[s])
    if lists.n_groups[word] == 0:
        group = open_group(lists, word, _FIRST_CAPACITY)
        start_bounds(lists.bound, group, x, y, weight, share, after)
    else:
        group = nearest_group(lists, lists.first_group[word], lists.n_groups[word], x, y, weight, share, after, key, grouping)
        if lists.n_entries[group] == grouping.group_size:
            group, upper = halve(lists, word, group, subscriptions, grouping, value, order)
            scale = location_scale(grouping.is_lonlat, grouping.max_distance)
            difference = dissimilarity(lists.bound, group, scale, x, y, weight, share, after, key)
            if dissimilarity(lists.bound, upper, scale, x, y, weight, share, after, key) < difference:
                group = upper
        reserve(lists, group)
        widen(lists, group, x, y, weight, share, after)
    position = insert_gap(lists, group, key)
    lists.subscription[position], lists.after[position] = s, bits
    row, bound, entry = position * N_FIELDS, lists.bound, lists.entry
    distance = distance_to_border(
        grouping.is_lonlat, x, y, bound[X0, group], bound[Y0, group], bound[X1, group], bound[Y1, group]
    )
    entry[row + KEY], entry[row + KEYWORD_SHARE], entry[row + WEIGHT], entry[row + INNER] = (
        key,
        share,
        weight,
        rounded_down(distance),
    )
    entry[row + AFTER_SUM], entry[row + AFTER_NORM] = after, rounded_up(after_norm)
    entry[row + X], entry[row + Y] = within_float32(x), within_float32(y)
    sum_up(lists, group, position - lists.first_entry[group])


@kernel
def shares(rank, subscriptions, s, at):
    """What the keyword at `at` adds to a score at most, and the keywords after it in the order; and bits of those after it."""
    keyword, weight_of = subscriptions.keyword, subscriptions.weight_of
    first = subscriptions.first[s]
    textual = (1.0 - subscriptions.spatial_weight[s]) / subscriptions.length[s]
    total, squares, bits = 0.0, 0.0, 0
    for other in range(first, first + subscriptions.n_words[s]):
        if rank[keyword[other]] > rank[keyword[at]]:
            weight = weight_of[keyword[other]]
            total += weight
            squares += weight * weight
            bits |= bit_of(int(keyword[other]))
    return textual * weight_of[keyword[at]], textual * total, textual * math.sqrt(squares), bits


@kernel
def find_entry(lists, subscriptions, s, word):
    """The group and the position of a subscription in the list of a keyword, or NOT_THERE."""
    x, y = subscriptions.x[s], subscriptions.y[s]
    weight = as_stored(subscriptions.spatial_weight[s])
    bound, subscription = lists.bound, lists.subscription
    for group in range(lists.first_group[word], lists.first_group[word] + lists.n_groups[word]):
        if not (bound[X0, group] <= x <= bound[X1, group] and bound[Y0, group] <= y <= bound[Y1, group]):
            continue
        if bound[WEIGHT0, group] <= weight <= bound[WEIGHT1, group]:
            first = lists.first_entry[group]
            for position in range(first, first + lists.n_entries[group]):
                if subscription[position] == s:
                    return group, position
    return NOT_THERE, NOT_THERE


@kernel
def remove_many(lists, subscriptions, numbers):
    """Remove subscriptions from the lists of their keywords."""
    for i in range(numbers.size):
        s = numbers[i]
        first = subscriptions.first[s]
        for at in range(first, first + subscriptions.n_words[s]):
            word = subscriptions.keyword[at]
            group, position = find_entry(lists, subscriptions, s, word)
            remove_entry(lists, group, position)
            if lists.n_entries[group] > 0:
                sum_up(lists, group, position - lists.first_entry[group])
            else:
                close_group(lists, word, group)
        lists.used[FILED] -= 1


@kernel
def close_group(lists, word, group):
    """Free an empty group; the last one of its keyword takes its position."""
    give_back(lists.free_entries, lists.subscription, lists.first_entry[group], lists.entry_capacity[group])
    last = lists.first_group[word] + lists.n_groups[word] - 1
    if group != last:
        move_group(lists, last, group)
    lists.n_groups[word] -= 1


@kernel
def rekey_many(lists, subscriptions, threshold, numbers):
    """Take over the thresholds of subscriptions as keys."""
    for i in range(numbers.size):
        s = numbers[i]
        lists.key[s] = threshold[s]
        key = rounded_down(threshold[s])
        first = subscriptions.first[s]
        for at in range(first, first + subscriptions.n_words[s]):
            group, position = find_entry(lists, subscriptions, s, subscriptions.keyword[at])
            rekey(lists, group, position, key)
