"""Lists by keyword, in groups of subscriptions that are alike, as flat arrays.

Paper: Wang et al., Skype (VLDB 2016), §5: lists cut into groups, sorted by threshold, with maxima of what is left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import kernel

UNFILED = (1 << 31) - 1
"""The rank of a keyword that nobody has."""

# Sides of a group: the box around its members; the least and the largest of their spatial weights, of what the keyword is to
# them, of what may follow it, and of their keys; the largest length of what may follow.
X0, Y0, X1, Y1, WEIGHT0, WEIGHT1, OWN0, OWN1, SUM0, SUM1, KEY0, KEY1, NORM = range(13)
N_SIDES = 13

# Fields of an entry. Upper bounds are rounded up, lower bounds down.
KEY = 0  # at most the threshold of the subscription; ascending in a group
OWN = 1  # textual weight times the weight of the keyword in the unit vector of the subscription
AFTER_SUM = 2  # textual weight times the sum of the weights of its keywords that come after this one in the order
AFTER_NORM = 3  # textual weight times the length of the vector of these
WEIGHT = 4  # spatial weight
INNER = 5  # from the subscription to the border of the box of its group
X, Y = 6, 7  # its place, roughly
OWN_LEFT, SUM_LEFT, NORM_LEFT, WEIGHT_LEFT = 8, 9, 10, 11  # the largest of this and all later entries of the group
N_FIELDS = 12

# Positions in `used`: groups and entries given out so far; the rank of the last new keyword; filed subscriptions; the most
# groups that a keyword ever had.
GROUPS, ENTRIES, LAST_RANK, FILED, MOST = 0, 1, 2, 3, 4


class ListArrays(NamedTuple):
    """Groups of keyword `w` are `first_group[w]` … `first_group[w] + n_groups[w] - 1`; entries of a group likewise, by key."""

    rank: np.ndarray  # int32[keywords], the smaller the rarer, or UNFILED
    weight: np.ndarray  # float64[keywords], idf
    first_group: np.ndarray  # int64[keywords]
    n_groups: np.ndarray  # int32[keywords]
    group_room: np.ndarray  # int32[keywords]
    first_entry: np.ndarray  # int64[groups]; links free chunks
    n_entries: np.ndarray  # int32[groups]
    entry_room: np.ndarray  # int32[groups]
    side: np.ndarray  # float64[N_SIDES, groups]
    follows: np.ndarray  # int64[groups], all bits of `after` of their entries
    subscriber: np.ndarray  # int32[entries]; links free chunks
    entry: np.ndarray  # float32[entries * N_FIELDS]
    after: np.ndarray  # int64[entries], a bit for each keyword of the subscription that comes after this one
    free_groups: np.ndarray  # int64[N_CLASSES]
    free_entries: np.ndarray  # int64[N_CLASSES]
    used: np.ndarray  # int64[5]
    key: np.ndarray  # float64[subscriptions], the threshold each was filed with


class Filing(NamedTuple):
    """How subscriptions are put into groups: distances, most members of a group, and how unlike in weight they may be."""

    is_lonlat: bool
    max_distance: float
    group_size: int
    finest_weight: float


# -- One group: its entries stay sorted by key, with the largest of each bound from every entry on.


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
