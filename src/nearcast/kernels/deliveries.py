"""Turn groups of matches into pairs or ids, and look up ids and clauses of subscriptions, whole columns at a time."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import kernel
from nearcast.kernels.simd import prefetch

_AHEAD = 32


@kernel
def flatten_groups(key, member, begin, end, out_key, out_member):
    """Write the pairs of `key[i]` with each of `member[begin[i]:end[i]]`, one after the other."""
    n_out = 0
    for i in range(key.size):
        for at in range(begin[i], end[i]):
            out_key[n_out] = key[i]
            out_member[n_out] = member[at]
            n_out += 1


@kernel
def fill_message_ids(begin, end, row, message_id, out):
    """The id of the message of each pair."""
    n_out = 0
    for message in range(begin.size):
        n = end[message] - begin[message]
        out[n_out : n_out + n] = message_id[row[message]]
        n_out += n


@kernel
def fill_subscriptions(clause, begin, end, subscription, out):
    """The subscription number of the clause of each pair; an empty `subscription` says that every clause is its own number."""
    n_out = 0
    for message in range(begin.size):
        n = end[message] - begin[message]
        # Slices, since an index that might be negative keeps the compiler from taking many elements at once.
        clauses, run = clause[begin[message] : end[message]], out[n_out : n_out + n]
        for i in range(n):
            run[i] = clauses[i]
        n_out += n
    if subscription.size:
        look_up(subscription, out)


@kernel
def fill_ids(clause, begin, end, subscription, number, first_number, out):
    """The id of the subscription of each pair, as int64.

    An empty `subscription` says that every clause is its own number; an empty `number` that ids count up from `first_number`.
    """
    fill_subscriptions(clause, begin, end, subscription, out)
    if number.size:
        look_up(number, out)
    elif first_number != 0:
        for i in range(out.size):
            out[i] += first_number


@kernel
def look_up(value, position):
    """Replace each position by the value there, prefetching values."""
    n_asked = max(0, position.size - _AHEAD)
    for i in range(n_asked):
        prefetch(value, np.int64(position[i + _AHEAD]))
        position[i] = value[position[i]]
    for i in range(n_asked, position.size):
        position[i] = value[position[i]]


@kernel
def look_up_ids(ids, position, first, out):
    """Fill `out` with the ids at these positions, which count from `first`, prefetching them."""
    n = position.size
    for i in range(max(0, n - _AHEAD)):
        prefetch(ids, position[i + _AHEAD] - first)
        out[i] = ids[position[i] - first]
    for i in range(max(0, n - _AHEAD), n):
        out[i] = ids[position[i] - first]


@kernel
def fill_group_ids(key, member, begin, end, key_id, member_id, first_id, key_out, member_out):
    """The ids of pairs kept in groups, `key[i]` with each of `member[begin[i]:end[i]]`. Prefetches the ids.

    An empty `member_id` says that ids of members count up from `first_id`.
    """
    n_out, last = 0, member.size - 1
    for i in range(key.size):
        if begin[i] == end[i]:
            continue
        id_of_key = key_id[key[i]]
        if member_id.size == 0:
            for at in range(begin[i], end[i]):
                key_out[n_out] = id_of_key
                member_out[n_out] = member[at] + first_id
                n_out += 1
            continue
        for at in range(begin[i], end[i]):
            prefetch(member_id, member[min(at + _AHEAD, last)])
            key_out[n_out] = id_of_key
            member_out[n_out] = member_id[member[at]]
            n_out += 1


@kernel
def fill_spans(first_clause, n_clauses, subscriptions, first, count):
    """Where the clauses of subscriptions begin and how many there are; 0 and 0 of unknown ones. Prefetches both."""
    n = subscriptions.size
    for i in range(n):
        if i + _AHEAD < n:
            prefetch(first_clause, subscriptions[i + _AHEAD])
            prefetch(n_clauses, subscriptions[i + _AHEAD])
        subscription = subscriptions[i]
        is_known = subscription >= 0 and subscription < n_clauses.size
        first[i] = first_clause[subscription] if is_known else 0
        count[i] = n_clauses[subscription] if is_known else 0


@kernel
def last_of_each(number, rows, last):
    """Keep the last of several rows with one number, in order: returns how many are at the front of `rows`.

    `last` has an element for every number.
    """
    for i in range(rows.size):
        last[number[rows[i]]] = rows[i]
    n_kept = 0
    for i in range(rows.size):
        if last[number[rows[i]]] == rows[i]:
            rows[n_kept] = rows[i]
            n_kept += 1
    return n_kept
