"""Matches kept message by message, turned into pairs or into the ids that are delivered."""

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
def fill_owners(clause, begin, end, owner, out):
    """The subscription number of the clause of each pair; an empty `owner` says that every clause is its own number."""
    n_out = 0
    for message in range(begin.size):
        n = end[message] - begin[message]
        # Slices, since an index that might be negative keeps the compiler from taking many elements at once.
        found, own = clause[begin[message] : end[message]], out[n_out : n_out + n]
        for i in range(n):
            own[i] = found[i]
        n_out += n
    if owner.size:
        look_up(owner, out)


@kernel
def fill_ids(clause, begin, end, owner, number, first_number, out):
    """The id of the subscription of each pair, as int64.

    An empty `owner` says that every clause is its own number; an empty `number` that ids count up from `first_number`.
    """
    fill_owners(clause, begin, end, owner, out)
    if number.size:
        look_up(number, out)
    elif first_number != 0:
        for i in range(out.size):
            out[i] += first_number


@kernel
def look_up(value, places):
    """Put the value in the stead of each place, asking for it some places ahead."""
    n_asked = max(0, places.size - _AHEAD)
    for i in range(n_asked):
        prefetch(value, np.int64(places[i + _AHEAD]))
        places[i] = value[places[i]]
    for i in range(n_asked, places.size):
        places[i] = value[places[i]]


# -- Ids and spans of clauses by number, and the last row of each number, whole columns at a time.

_AHEAD = 32


@kernel
def look_up_ids(ids, places, first, out):
    """Fill `out` with the ids at these places, which count from `first`, asked for ahead."""
    n = places.size
    for i in range(max(0, n - _AHEAD)):
        prefetch(ids, places[i + _AHEAD] - first)
        out[i] = ids[places[i] - first]
    for i in range(max(0, n - _AHEAD), n):
        out[i] = ids[places[i] - first]


@kernel
def fill_group_ids(of, member, begin, end, of_id, member_id, first_id, of_out, member_out):
    """The ids of pairs kept in groups, `of[i]` with each of `member[begin[i]:end[i]]`, asked for ahead.

    An empty `member_id` says that ids of members count up from `first_id`.
    """
    n_out, last = 0, member.size - 1
    for i in range(of.size):
        if begin[i] == end[i]:
            continue
        own = of_id[of[i]]
        if member_id.size == 0:
            for at in range(begin[i], end[i]):
                of_out[n_out] = own
                member_out[n_out] = member[at] + first_id
                n_out += 1
            continue
        for at in range(begin[i], end[i]):
            prefetch(member_id, member[min(at + _AHEAD, last)])
            of_out[n_out] = own
            member_out[n_out] = member_id[member[at]]
            n_out += 1


@kernel
def fill_spans(first_clause, n_clauses, owners, first, count):
    """Where the clauses of subscriptions begin and how many there are, asked for ahead; 0 and 0 of unknown ones."""
    n = owners.size
    for i in range(n):
        if i + _AHEAD < n:
            prefetch(first_clause, owners[i + _AHEAD])
            prefetch(n_clauses, owners[i + _AHEAD])
        owner = owners[i]
        is_known = owner >= 0 and owner < n_clauses.size
        first[i] = first_clause[owner] if is_known else 0
        count[i] = n_clauses[owner] if is_known else 0


@kernel
def last_of_each(number, rows, last):
    """Keep the last of several rows with one number, in order: returns how many are at the front of `rows`.

    `last` has a place for every number.
    """
    for i in range(rows.size):
        last[number[rows[i]]] = rows[i]
    n_kept = 0
    for i in range(rows.size):
        if last[number[rows[i]]] == rows[i]:
            rows[n_kept] = rows[i]
            n_kept += 1
    return n_kept
