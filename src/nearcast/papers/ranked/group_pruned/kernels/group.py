"""One group: its entries stay sorted by key, with the largest of each bound from every entry on."""

from __future__ import annotations

from nearcast.kernels.compile import kernel
from nearcast.papers.ranked.group_pruned.layout import (
    AFTER_NORM,
    AFTER_SUM,
    KEY,
    KEY0,
    KEY1,
    N_FIELDS,
    NORM,
    NORM_LEFT,
    OWN,
    OWN1,
    OWN_LEFT,
    SUM1,
    SUM_LEFT,
    WEIGHT,
    WEIGHT1,
    WEIGHT_LEFT,
)


@kernel
def move_entry(lists, source, target):
    """Copy an entry to another place."""
    lists.subscriber[target], lists.after[target] = lists.subscriber[source], lists.after[source]
    for field in range(N_FIELDS):
        lists.entry[target * N_FIELDS + field] = lists.entry[source * N_FIELDS + field]


@kernel
def sum_up(lists, group, last):
    """Make good what is left from entry number `last` of a group down to its first, and its sides."""
    entry, side = lists.entry, lists.side
    first, n = lists.first_entry[group], lists.n_entries[group]
    for at in range(first + min(last, n - 1), first - 1, -1):
        row = at * N_FIELDS
        own, after_sum, after_norm = entry[row + OWN], entry[row + AFTER_SUM], entry[row + AFTER_NORM]
        weight = entry[row + WEIGHT]
        if at + 1 < first + n:
            later = row + N_FIELDS
            own, after_sum = max(own, entry[later + OWN_LEFT]), max(after_sum, entry[later + SUM_LEFT])
            after_norm, weight = max(after_norm, entry[later + NORM_LEFT]), max(weight, entry[later + WEIGHT_LEFT])
        entry[row + OWN_LEFT], entry[row + SUM_LEFT], entry[row + NORM_LEFT] = own, after_sum, after_norm
        entry[row + WEIGHT_LEFT] = weight
    follows = 0
    for at in range(first, first + n):
        follows |= lists.after[at]
    lists.follows[group] = follows
    row = first * N_FIELDS
    side[OWN1, group], side[SUM1, group] = entry[row + OWN_LEFT], entry[row + SUM_LEFT]
    side[NORM, group], side[WEIGHT1, group] = entry[row + NORM_LEFT], entry[row + WEIGHT_LEFT]
    side[KEY0, group], side[KEY1, group] = entry[row + KEY], entry[(first + n - 1) * N_FIELDS + KEY]


@kernel
def open_place(lists, group, key):
    """Make a place for an entry of this key, in a group that has room; returns it. The caller sums up."""
    entry, first = lists.entry, lists.first_entry[group]
    at = first + lists.n_entries[group]
    while at > first and entry[(at - 1) * N_FIELDS + KEY] > key:
        move_entry(lists, at - 1, at)
        at -= 1
    lists.n_entries[group] += 1
    return at


@kernel
def close_place(lists, group, at):
    """Take an entry out of a group; the caller sums up, if others are left."""
    last = lists.first_entry[group] + lists.n_entries[group] - 1
    for place in range(at, last):
        move_entry(lists, place + 1, place)
    lists.n_entries[group] -= 1


@kernel
def rekey(lists, group, at, key):
    """Give an entry another key, and the place that goes with it."""
    entry = lists.entry
    first, end = lists.first_entry[group], lists.first_entry[group] + lists.n_entries[group]
    entry[at * N_FIELDS + KEY] = key
    highest = at
    while at > first and entry[(at - 1) * N_FIELDS + KEY] > entry[at * N_FIELDS + KEY]:
        swap_entries(lists, at, at - 1)
        at -= 1
    while at + 1 < end and entry[(at + 1) * N_FIELDS + KEY] < entry[at * N_FIELDS + KEY]:
        swap_entries(lists, at, at + 1)
        at += 1
        highest = at
    sum_up(lists, group, highest - first)


@kernel
def swap_entries(lists, a, b):
    subscriber, after, entry = lists.subscriber, lists.after, lists.entry
    subscriber[a], subscriber[b] = subscriber[b], subscriber[a]
    after[a], after[b] = after[b], after[a]
    for field in range(N_FIELDS):
        one, other = a * N_FIELDS + field, b * N_FIELDS + field
        entry[one], entry[other] = entry[other], entry[one]
