"""Pairs in groups, `key[i]` with each of `member[begin[i]:end[i]]`, as plain pairs or as the ids that are delivered."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import kernel
from nearcast.kernels.simd import prefetch

_AHEAD = 32


@kernel
def flatten_groups(key, member, begin, end, out_key, out_member):
    """Write the key and the member of each pair."""
    n_out = 0
    for i in range(key.size):
        for at in range(begin[i], end[i]):
            out_key[n_out] = key[i]
            out_member[n_out] = member[at]
            n_out += 1


@kernel
def fill_message_ids(begin, end, row, message_id, out):
    """The id of the message of each pair; message `m` of the groups is at `row[m]`."""
    n_out = 0
    for message in range(begin.size):
        n = end[message] - begin[message]
        out[n_out : n_out + n] = message_id[row[message]]
        n_out += n


@kernel
def fill_subscriptions(clause, begin, end, subscription, out):
    """The subscription number of the clause of each pair; with an empty `subscription` every clause has its number."""
    n_out = 0
    for message in range(begin.size):
        n = end[message] - begin[message]
        # Slices, because the compiler vectorizes only loops whose indexes cannot be negative.
        source, target = clause[begin[message] : end[message]], out[n_out : n_out + n]
        for i in range(n):
            target[i] = source[i]
        n_out += n
    if subscription.size:
        look_up(subscription, out)


@kernel
def fill_ids(clause, begin, end, subscription, number, first_number, out):
    """The id of the subscription of each pair, as int64.

    With an empty `subscription` every clause has the number of its subscription; with an empty `number` ids count up from
    `first_number`.
    """
    fill_subscriptions(clause, begin, end, subscription, out)
    if number.size:
        look_up(number, out)
    elif first_number != 0:
        for i in range(out.size):
            out[i] += first_number


@kernel
def look_up(value, positions):
    """Replace each position by the value there; values are prefetched."""
    n_prefetched = max(0, positions.size - _AHEAD)
    for i in range(n_prefetched):
        prefetch(value, np.int64(positions[i + _AHEAD]))
        positions[i] = value[positions[i]]
    for i in range(n_prefetched, positions.size):
        positions[i] = value[positions[i]]


@kernel
def look_up_ids(ids, positions, first, out):
    """Fill `out` with the ids at these positions, which count from `first`; ids are prefetched."""
    n = positions.size
    for i in range(max(0, n - _AHEAD)):
        prefetch(ids, positions[i + _AHEAD] - first)
        out[i] = ids[positions[i] - first]
    for i in range(max(0, n - _AHEAD), n):
        out[i] = ids[positions[i] - first]


@kernel
def fill_group_ids(key, member, begin, end, key_id, member_id, first_id, out_key, out_member):
    """The ids of the key and the member of each pair; with an empty `member_id` the ids of members count up from `first_id`."""
    n_out, last = 0, member.size - 1
    for i in range(key.size):
        if begin[i] == end[i]:
            continue
        id = key_id[key[i]]
        if member_id.size == 0:
            for at in range(begin[i], end[i]):
                out_key[n_out] = id
                out_member[n_out] = member[at] + first_id
                n_out += 1
            continue
        for at in range(begin[i], end[i]):
            prefetch(member_id, member[min(at + _AHEAD, last)])
            out_key[n_out] = id
            out_member[n_out] = member_id[member[at]]
            n_out += 1


@kernel
def fill_spans(first_clause, n_clauses, subscriptions, first, count):
    """The first clause of each subscription and its number of clauses, which is 0 for unknown ones."""
    n = subscriptions.size
    for i in range(n):
        if i + _AHEAD < n:
            prefetch(first_clause, subscriptions[i + _AHEAD])
            prefetch(n_clauses, subscriptions[i + _AHEAD])
        number = subscriptions[i]
        is_known = number >= 0 and number < n_clauses.size
        first[i] = first_clause[number] if is_known else 0
        count[i] = n_clauses[number] if is_known else 0


@kernel
def last_of_each(number, rows, last):
    """Keep the last of several rows with the same number, in order; returns how many are at the front of `rows`.

    `last` is scratch with an element for every number.
    """
    for i in range(rows.size):
        last[number[rows[i]]] = rows[i]
    n_rows = 0
    for i in range(rows.size):
        if last[number[rows[i]]] == rows[i]:
            rows[n_rows] = rows[i]
            n_rows += 1
    return n_rows
