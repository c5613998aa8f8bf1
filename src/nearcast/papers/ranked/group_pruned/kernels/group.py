"""The arrays of lists by keyword in groups of similar subscriptions, and the order of the entries within a group.

Paper: Wang et al., Skype (VLDB 2016), §5: lists in groups, sorted by threshold, with maxima of what is left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import kernel

UNRANKED = (1 << 31) - 1
"""The rank of a keyword that no subscription has."""

# Bounds of a group: the box around its members; least and largest spatial weight, share of the keyword, share of the keywords
# after it, and key; the largest length of the vector of the keywords after it.
X0, Y0, X1, Y1, WEIGHT0, WEIGHT1, KEYWORD_SHARE0, KEYWORD_SHARE1, SUM0, SUM1, KEY0, KEY1, NORM = range(13)
N_BOUNDS = 13

# Fields of an entry. Upper bounds are rounded up, lower bounds down.
KEY = 0  # at most the threshold of the subscription; ascending in a group
KEYWORD_SHARE = 1  # textual weight times the weight of the keyword in the unit vector of the subscription
AFTER_SUM = 2  # textual weight times the sum of the weights of its keywords that come after this one in the order
AFTER_NORM = 3  # textual weight times the length of the vector of these
WEIGHT = 4  # spatial weight
INNER = 5  # from the subscription to the border of the box of its group
X, Y = 6, 7  # its location, rounded
KEYWORD_SHARE_LEFT, SUM_LEFT, NORM_LEFT, WEIGHT_LEFT = 8, 9, 10, 11  # the largest of this and all later entries of the group
N_FIELDS = 12

# Positions in `used`: groups and entries allocated; the rank of the last new keyword; filed subscriptions; the most groups that
# a keyword ever had.
GROUPS, ENTRIES, LAST_RANK, FILED, MOST = 0, 1, 2, 3, 4


class GroupedListArrays(NamedTuple):
    """Groups of keyword `w` are `first_group[w]` … `first_group[w] + n_groups[w] - 1`; entries of a group likewise, by key."""

    rank: np.ndarray  # int32[keywords], the smaller the rarer, or UNFILED
    weight: np.ndarray  # float64[keywords], idf
    first_group: np.ndarray  # int64[keywords]
    n_groups: np.ndarray  # int32[keywords]
    group_capacity: np.ndarray  # int32[keywords]
    first_entry: np.ndarray  # int64[groups]; links free chunks
    n_entries: np.ndarray  # int32[groups]
    entry_capacity: np.ndarray  # int32[groups]
    bound: np.ndarray  # float64[N_SIDES, groups]
    follows: np.ndarray  # int64[groups], all bits of `after` of their entries
    subscription: np.ndarray  # int32[entries]; links free chunks
    entry: np.ndarray  # float32[entries * N_FIELDS]
    after: np.ndarray  # int64[entries], a bit for each keyword of the subscription that comes after this one
    free_groups: np.ndarray  # int64[N_CLASSES]
    free_entries: np.ndarray  # int64[N_CLASSES]
    used: np.ndarray  # int64[5]
    key: np.ndarray  # float64[subscriptions], the threshold each was filed with


class GroupingRules(NamedTuple):
    """How subscriptions are grouped: distances, most members of a group, and the finest difference of spatial weights."""

    is_lonlat: bool
    max_distance: float
    group_size: int
    finest_weight: float


# --- entries stay sorted by key, with the largest of each bound from every entry on -------------------------------


@kernel
def move_entry(lists, source, target):
    """Copy an entry to another position."""
    lists.subscription[target], lists.after[target] = lists.subscription[source], lists.after[source]
    for field in range(N_FIELDS):
        lists.entry[target * N_FIELDS + field] = lists.entry[source * N_FIELDS + field]


@kernel
def sum_up(lists, group, last):
    """Update the maxima from entry number `last` of a group down to its first, and the bounds of the group."""
    entry, bound = lists.entry, lists.bound
    first, n = lists.first_entry[group], lists.n_entries[group]
    for at in range(first + min(last, n - 1), first - 1, -1):
        row = at * N_FIELDS
        share, after_sum, after_norm = entry[row + KEYWORD_SHARE], entry[row + AFTER_SUM], entry[row + AFTER_NORM]
        weight = entry[row + WEIGHT]
        if at + 1 < first + n:
            later = row + N_FIELDS
            share, after_sum = max(share, entry[later + KEYWORD_SHARE_LEFT]), max(after_sum, entry[later + SUM_LEFT])
            after_norm, weight = max(after_norm, entry[later + NORM_LEFT]), max(weight, entry[later + WEIGHT_LEFT])
        entry[row + KEYWORD_SHARE_LEFT], entry[row + SUM_LEFT], entry[row + NORM_LEFT] = share, after_sum, after_norm
        entry[row + WEIGHT_LEFT] = weight
    follows = 0
    for at in range(first, first + n):
        follows |= lists.after[at]
    lists.follows[group] = follows
    row = first * N_FIELDS
    bound[KEYWORD_SHARE1, group], bound[SUM1, group] = entry[row + KEYWORD_SHARE_LEFT], entry[row + SUM_LEFT]
    bound[NORM, group], bound[WEIGHT1, group] = entry[row + NORM_LEFT], entry[row + WEIGHT_LEFT]
    bound[KEY0, group], bound[KEY1, group] = entry[row + KEY], entry[(first + n - 1) * N_FIELDS + KEY]


@kernel
def insert_gap(lists, group, key):
    """Make space for an entry with this key in a group that has capacity; returns its position. The caller calls `sum_up`."""
    entry, first = lists.entry, lists.first_entry[group]
    at = first + lists.n_entries[group]
    while at > first and entry[(at - 1) * N_FIELDS + KEY] > key:
        move_entry(lists, at - 1, at)
        at -= 1
    lists.n_entries[group] += 1
    return at


@kernel
def remove_entry(lists, group, at):
    """Remove an entry from a group; the caller calls `sum_up` if others are left."""
    last = lists.first_entry[group] + lists.n_entries[group] - 1
    for position in range(at, last):
        move_entry(lists, position + 1, position)
    lists.n_entries[group] -= 1


@kernel
def rekey(lists, group, at, key):
    """Change the key of an entry, and move it to its position."""
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
    subscription, after, entry = lists.subscription, lists.after, lists.entry
    subscription[a], subscription[b] = subscription[b], subscription[a]
    after[a], after[b] = after[b], after[a]
    for field in range(N_FIELDS):
        one, other = a * N_FIELDS + field, b * N_FIELDS + field
        entry[one], entry[other] = entry[other], entry[one]
