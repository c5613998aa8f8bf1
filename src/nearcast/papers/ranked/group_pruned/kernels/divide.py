"""Which group a subscription goes into, and how a full group is divided."""

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
    MOST,
    N_FIELDS,
    N_SIDES,
    OWN,
    OWN0,
    OWN1,
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

# What a difference is worth: of proximity, of spatial weight, of the share of the keyword, of what may follow it, of keys.
PLACE_WORTH, WEIGHT_WORTH, OWN_WORTH, AFTER_WORTH, KEY_WORTH = 1.0, 4.0, 0.5, 0.5, 4.0


@inline_kernel
def place_scale(is_lonlat, max_distance):
    """What a unit of a coordinate is worth."""
    return PLACE_WORTH * (M_PER_DEGREE if is_lonlat else 1.0) / max_distance


@inline_kernel
def unlikeness(side, group, scale, x, y, weight, own, after, key):
    """How far a subscription is from the sides of a group."""
    unlike = scale * (gap(x, side[X0, group], side[X1, group]) + gap(y, side[Y0, group], side[Y1, group]))
    unlike += WEIGHT_WORTH * gap(weight, side[WEIGHT0, group], side[WEIGHT1, group])
    unlike += OWN_WORTH * gap(own, side[OWN0, group], side[OWN1, group])
    unlike += AFTER_WORTH * gap(after, side[SUM0, group], side[SUM1, group])
    return unlike + KEY_WORTH * gap(key, side[KEY0, group], side[KEY1, group])


@kernel
def nearest_group(lists, first, n, x, y, weight, own, after, key, filing):
    """Of some groups the one whose members are most like a subscription."""
    side, scale = lists.side, place_scale(filing.is_lonlat, filing.max_distance)
    best, least = first, -1.0
    for group in range(first, first + n):
        unlike = unlikeness(side, group, scale, x, y, weight, own, after, key)
        if least < 0.0 or unlike < least:
            best, least = group, unlike
            if unlike == 0.0:
                break
    return best


@kernel
def widen(lists, group, x, y, weight, own, after):
    """Let the sides of a group hold one more."""
    side = lists.side
    side[X0, group], side[X1, group] = min(side[X0, group], x), max(side[X1, group], x)
    side[Y0, group], side[Y1, group] = min(side[Y0, group], y), max(side[Y1, group], y)
    side[WEIGHT0, group], side[WEIGHT1, group] = min(side[WEIGHT0, group], weight), max(side[WEIGHT1, group], weight)
    side[OWN0, group], side[OWN1, group] = min(side[OWN0, group], own), max(side[OWN1, group], own)
    side[SUM0, group], side[SUM1, group] = min(side[SUM0, group], after), max(side[SUM1, group], after)


@kernel
def open_group(lists, word, entry_room):
    """A new, empty group at the end of those of a keyword; returns it."""
    n, room = lists.n_groups[word], lists.group_room[word]
    if n == room:
        grown = chunk_capacity(n + 1)
        first = take_chunk(lists.free_groups, lists.first_entry, lists.used, GROUPS, grown)
        old = lists.first_group[word]
        for i in range(n):
            move_group(lists, old + i, first + i)
        give_back(lists.free_groups, lists.first_entry, old, room)
        lists.first_group[word], lists.group_room[word] = first, grown
    group = lists.first_group[word] + n
    lists.n_groups[word] = n + 1
    lists.used[MOST] = max(lists.used[MOST], n + 1)
    lists.first_entry[group] = take_chunk(lists.free_entries, lists.subscriber, lists.used, ENTRIES, entry_room)
    lists.n_entries[group], lists.entry_room[group] = 0, entry_room
    return group


@kernel
def move_group(lists, source, target):
    """Copy a group to another place; its entries stay where they are."""
    lists.first_entry[target], lists.n_entries[target] = lists.first_entry[source], lists.n_entries[source]
    lists.entry_room[target], lists.follows[target] = lists.entry_room[source], lists.follows[source]
    for i in range(N_SIDES):
        lists.side[i, target] = lists.side[i, source]


@kernel
def give_room(lists, group):
    """Let a full group have room for one more entry."""
    n, room, old = lists.n_entries[group], lists.entry_room[group], lists.first_entry[group]
    if n < room:
        return
    grown = chunk_capacity(n + 1)
    first = take_chunk(lists.free_entries, lists.subscriber, lists.used, ENTRIES, grown)
    for i in range(n):
        move_entry(lists, old + i, first + i)
    give_back(lists.free_entries, lists.subscriber, old, room)
    lists.first_entry[group], lists.entry_room[group] = first, grown


@kernel
def halve(lists, word, group, subscribers, filing, value, order):
    """Divide a group where its members differ most; the half above the middle becomes a group of its own.

    Returns both groups, the lower and the upper half. `value` and `order` are scratch for as many entries as a group may have.
    """
    n, old, room = lists.n_entries[group], lists.first_entry[group], lists.entry_room[group]
    measure_spread(lists, group, subscribers, filing, value)
    for i in range(n):
        at = i
        while at > 0 and value[order[at - 1]] > value[i]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = i
    half = n // 2
    for i in range(n):
        # From here on: which half.
        value[order[i]] = 0.0 if i < half else 1.0
    position = group - lists.first_group[word]
    upper = open_group(lists, word, chunk_capacity(n - half))
    # The groups may have moved.
    group = lists.first_group[word] + position
    first = take_chunk(lists.free_entries, lists.subscriber, lists.used, ENTRIES, chunk_capacity(half + 1))
    n_lower = n_upper = 0
    for i in range(n):
        if value[i] == 0.0:
            move_entry(lists, old + i, first + n_lower)
            n_lower += 1
        else:
            move_entry(lists, old + i, lists.first_entry[upper] + n_upper)
            n_upper += 1
    give_back(lists.free_entries, lists.subscriber, old, room)
    lists.first_entry[group], lists.entry_room[group] = first, chunk_capacity(half + 1)
    lists.n_entries[group], lists.n_entries[upper] = n_lower, n_upper
    measure(lists, group, subscribers, filing)
    measure(lists, upper, subscribers, filing)
    return group, upper


@kernel
def measure_spread(lists, group, subscribers, filing, value):
    """Write the value of each entry in which the members of a group differ most, as far as it matters."""
    side, entry, subscriber = lists.side, lists.entry, lists.subscriber
    first = lists.first_entry[group]
    scale = place_scale(filing.is_lonlat, filing.max_distance)
    by_x = scale * (float(side[X1, group]) - float(side[X0, group]))
    by_y = scale * (float(side[Y1, group]) - float(side[Y0, group]))
    by_weight = WEIGHT_WORTH * (side[WEIGHT1, group] - side[WEIGHT0, group])
    if by_weight <= WEIGHT_WORTH * filing.finest_weight:
        by_weight = 0.0
    by_own = OWN_WORTH * (side[OWN1, group] - side[OWN0, group])
    by_after = AFTER_WORTH * (side[SUM1, group] - side[SUM0, group])
    by_key = KEY_WORTH * (side[KEY1, group] - side[KEY0, group])
    most = max(by_x, by_y, by_weight, by_own, by_after, by_key)
    for i in range(lists.n_entries[group]):
        at = first + i
        s = subscriber[at]
        if most == by_x:
            value[i] = subscribers.x[s]
        elif most == by_y:
            value[i] = subscribers.y[s]
        elif most == by_weight:
            value[i] = entry[at * N_FIELDS + WEIGHT]
        elif most == by_own:
            value[i] = entry[at * N_FIELDS + OWN]
        elif most == by_after:
            value[i] = entry[at * N_FIELDS + AFTER_SUM]
        else:
            value[i] = entry[at * N_FIELDS + KEY]


@kernel
def measure(lists, group, subscribers, filing):
    """Write the sides of a group, and the inner distances of its entries, anew."""
    side, entry, subscriber = lists.side, lists.entry, lists.subscriber
    first, n = lists.first_entry[group], lists.n_entries[group]
    for at in range(first, first + n):
        s, row = subscriber[at], at * N_FIELDS
        weight, own, after = float(entry[row + WEIGHT]), float(entry[row + OWN]), float(entry[row + AFTER_SUM])
        if at == first:
            start_sides(side, group, subscribers.x[s], subscribers.y[s], weight, own, after)
        widen(lists, group, subscribers.x[s], subscribers.y[s], weight, own, after)
    box = (side[X0, group], side[Y0, group], side[X1, group], side[Y1, group])
    for at in range(first, first + n):
        s = subscriber[at]
        way = distance_to_border(filing.is_lonlat, subscribers.x[s], subscribers.y[s], *box)
        entry[at * N_FIELDS + INNER] = rounded_down(way)
    sum_up(lists, group, n - 1)


@kernel
def start_sides(side, group, x, y, weight, own, after):
    """The sides of a group with one member."""
    side[X0, group], side[Y0, group], side[X1, group], side[Y1, group] = x, y, x, y
    side[WEIGHT0, group], side[WEIGHT1, group], side[OWN0, group], side[OWN1, group] = weight, weight, own, own
    side[SUM0, group], side[SUM1, group] = after, after
