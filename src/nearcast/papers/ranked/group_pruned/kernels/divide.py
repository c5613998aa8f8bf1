"""Which group a subscription joins, and how a full group is divided."""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.pools import chunk_capacity, give_back, take_chunk
from nearcast.papers.ranked.group_pruned.kernels.group import (
    AFTER_SUM,
    ENTRIES,
    GROUPS,
    INNER,
    KEY,
    KEY0,
    KEY1,
    KEYWORD_SHARE,
    KEYWORD_SHARE0,
    KEYWORD_SHARE1,
    MOST,
    N_BOUNDS,
    N_FIELDS,
    SUM0,
    SUM1,
    WEIGHT,
    WEIGHT0,
    WEIGHT1,
    X0,
    X1,
    Y0,
    Y1,
    move_entry,
    sum_up,
)
from nearcast.papers.ranked.kernels import M_PER_DEGREE, distance_to_border, gap, rounded_down

# Factors of differences: of proximity, spatial weight, share of the keyword, shares of the keywords after it, keys.
LOCATION_FACTOR, WEIGHT_FACTOR, KEYWORD_SHARE_FACTOR, AFTER_FACTOR, KEY_FACTOR = 1.0, 4.0, 0.5, 0.5, 4.0


@inline_kernel
def location_scale(is_lonlat, max_distance):
    """The factor of a difference of coordinates."""
    return LOCATION_FACTOR * (M_PER_DEGREE if is_lonlat else 1.0) / max_distance


@inline_kernel
def dissimilarity(bound, group, scale, x, y, weight, share, after, key):
    """How far a subscription is outside the bounds of a group."""
    difference = scale * (gap(x, bound[X0, group], bound[X1, group]) + gap(y, bound[Y0, group], bound[Y1, group]))
    difference += WEIGHT_FACTOR * gap(weight, bound[WEIGHT0, group], bound[WEIGHT1, group])
    difference += KEYWORD_SHARE_FACTOR * gap(share, bound[KEYWORD_SHARE0, group], bound[KEYWORD_SHARE1, group])
    difference += AFTER_FACTOR * gap(after, bound[SUM0, group], bound[SUM1, group])
    return difference + KEY_FACTOR * gap(key, bound[KEY0, group], bound[KEY1, group])


@kernel
def nearest_group(lists, first, n, x, y, weight, share, after, key, grouping):
    """The group, of these, whose members are most similar to a subscription."""
    bound, scale = lists.bound, location_scale(grouping.is_lonlat, grouping.max_distance)
    best, least = first, -1.0
    for group in range(first, first + n):
        difference = dissimilarity(bound, group, scale, x, y, weight, share, after, key)
        if least < 0.0 or difference < least:
            best, least = group, difference
            if difference == 0.0:
                break
    return best


@kernel
def widen(lists, group, x, y, weight, share, after):
    """Extend the bounds of a group to a new member."""
    bound = lists.bound
    bound[X0, group], bound[X1, group] = min(bound[X0, group], x), max(bound[X1, group], x)
    bound[Y0, group], bound[Y1, group] = min(bound[Y0, group], y), max(bound[Y1, group], y)
    bound[WEIGHT0, group], bound[WEIGHT1, group] = min(bound[WEIGHT0, group], weight), max(bound[WEIGHT1, group], weight)
    bound[KEYWORD_SHARE0, group], bound[KEYWORD_SHARE1, group] = (
        min(bound[KEYWORD_SHARE0, group], share),
        max(bound[KEYWORD_SHARE1, group], share),
    )
    bound[SUM0, group], bound[SUM1, group] = min(bound[SUM0, group], after), max(bound[SUM1, group], after)


@kernel
def open_group(lists, word, entry_capacity):
    """A new, empty group at the end of those of a keyword."""
    n, capacity = lists.n_groups[word], lists.group_capacity[word]
    if n == capacity:
        grown = chunk_capacity(n + 1)
        first = take_chunk(lists.free_groups, lists.first_entry, lists.used, GROUPS, grown)
        old = lists.first_group[word]
        for i in range(n):
            move_group(lists, old + i, first + i)
        give_back(lists.free_groups, lists.first_entry, old, capacity)
        lists.first_group[word], lists.group_capacity[word] = first, grown
    group = lists.first_group[word] + n
    lists.n_groups[word] = n + 1
    lists.used[MOST] = max(lists.used[MOST], n + 1)
    lists.first_entry[group] = take_chunk(lists.free_entries, lists.subscription, lists.used, ENTRIES, entry_capacity)
    lists.n_entries[group], lists.entry_capacity[group] = 0, entry_capacity
    return group


@kernel
def move_group(lists, source, target):
    """Copy a group to another position; its entries stay where they are."""
    lists.first_entry[target], lists.n_entries[target] = lists.first_entry[source], lists.n_entries[source]
    lists.entry_capacity[target], lists.follows[target] = lists.entry_capacity[source], lists.follows[source]
    for i in range(N_BOUNDS):
        lists.bound[i, target] = lists.bound[i, source]


@kernel
def reserve(lists, group):
    """Give a full group capacity for one more entry."""
    n, capacity, old = lists.n_entries[group], lists.entry_capacity[group], lists.first_entry[group]
    if n < capacity:
        return
    grown = chunk_capacity(n + 1)
    first = take_chunk(lists.free_entries, lists.subscription, lists.used, ENTRIES, grown)
    for i in range(n):
        move_entry(lists, old + i, first + i)
    give_back(lists.free_entries, lists.subscription, old, capacity)
    lists.first_entry[group], lists.entry_capacity[group] = first, grown


@kernel
def halve(lists, word, group, subscriptions, grouping, value, order):
    """Divide a group where its members differ most; the upper half becomes a new group.

    Returns both groups, the lower and the upper half. `value` and `order` are scratch for as many entries as a group may have.
    """
    n, old, capacity = lists.n_entries[group], lists.first_entry[group], lists.entry_capacity[group]
    measure_spread(lists, group, subscriptions, grouping, value)
    for i in range(n):
        at = i
        while at > 0 and value[order[at - 1]] > value[i]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = i
    half = n // 2
    for i in range(n):
        # From here on: the half of each entry.
        value[order[i]] = 0.0 if i < half else 1.0
    position = group - lists.first_group[word]
    upper = open_group(lists, word, chunk_capacity(n - half))
    # Opening a group may have moved them.
    group = lists.first_group[word] + position
    first = take_chunk(lists.free_entries, lists.subscription, lists.used, ENTRIES, chunk_capacity(half + 1))
    n_lower = n_upper = 0
    for i in range(n):
        if value[i] == 0.0:
            move_entry(lists, old + i, first + n_lower)
            n_lower += 1
        else:
            move_entry(lists, old + i, lists.first_entry[upper] + n_upper)
            n_upper += 1
    give_back(lists.free_entries, lists.subscription, old, capacity)
    lists.first_entry[group], lists.entry_capacity[group] = first, chunk_capacity(half + 1)
    lists.n_entries[group], lists.n_entries[upper] = n_lower, n_upper
    measure(lists, group, subscriptions, grouping)
    measure(lists, upper, subscriptions, grouping)
    return group, upper


@kernel
def measure_spread(lists, group, subscriptions, grouping, value):
    """Write for each entry the value in which the members of the group differ most, by the factors above."""
    bound, entry, subscription = lists.bound, lists.entry, lists.subscription
    first = lists.first_entry[group]
    scale = location_scale(grouping.is_lonlat, grouping.max_distance)
    by_x = scale * (float(bound[X1, group]) - float(bound[X0, group]))
    by_y = scale * (float(bound[Y1, group]) - float(bound[Y0, group]))
    by_weight = WEIGHT_FACTOR * (bound[WEIGHT1, group] - bound[WEIGHT0, group])
    if by_weight <= WEIGHT_FACTOR * grouping.finest_weight:
        by_weight = 0.0
    by_share = KEYWORD_SHARE_FACTOR * (bound[KEYWORD_SHARE1, group] - bound[KEYWORD_SHARE0, group])
    by_after = AFTER_FACTOR * (bound[SUM1, group] - bound[SUM0, group])
    by_key = KEY_FACTOR * (bound[KEY1, group] - bound[KEY0, group])
    most = max(by_x, by_y, by_weight, by_share, by_after, by_key)
    for i in range(lists.n_entries[group]):
        at = first + i
        s = subscription[at]
        if most == by_x:
            value[i] = subscriptions.x[s]
        elif most == by_y:
            value[i] = subscriptions.y[s]
        elif most == by_weight:
            value[i] = entry[at * N_FIELDS + WEIGHT]
        elif most == by_share:
            value[i] = entry[at * N_FIELDS + KEYWORD_SHARE]
        elif most == by_after:
            value[i] = entry[at * N_FIELDS + AFTER_SUM]
        else:
            value[i] = entry[at * N_FIELDS + KEY]


@kernel
def measure(lists, group, subscriptions, grouping):
    """Compute the bounds of a group, and the inner distances of its entries."""
    bound, entry, subscription = lists.bound, lists.entry, lists.subscription
    first, n = lists.first_entry[group], lists.n_entries[group]
    for at in range(first, first + n):
        s, row = subscription[at], at * N_FIELDS
        weight, share, after = float(entry[row + WEIGHT]), float(entry[row + KEYWORD_SHARE]), float(entry[row + AFTER_SUM])
        if at == first:
            start_bounds(bound, group, subscriptions.x[s], subscriptions.y[s], weight, share, after)
        widen(lists, group, subscriptions.x[s], subscriptions.y[s], weight, share, after)
    box = (bound[X0, group], bound[Y0, group], bound[X1, group], bound[Y1, group])
    for at in range(first, first + n):
        s = subscription[at]
        distance = distance_to_border(grouping.is_lonlat, subscriptions.x[s], subscriptions.y[s], *box)
        entry[at * N_FIELDS + INNER] = rounded_down(distance)
    sum_up(lists, group, n - 1)


@kernel
def start_bounds(bound, group, x, y, weight, share, after):
    """The bounds of a group with one member."""
    bound[X0, group], bound[Y0, group], bound[X1, group], bound[Y1, group] = x, y, x, y
    bound[WEIGHT0, group], bound[WEIGHT1, group], bound[KEYWORD_SHARE0, group], bound[KEYWORD_SHARE1, group] = (
        weight,
        weight,
        share,
        share,
    )
    bound[SUM0, group], bound[SUM1, group] = after, after
