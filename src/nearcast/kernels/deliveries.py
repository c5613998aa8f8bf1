"""Matches kept message by message, turned into pairs or into the ids that are delivered."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import kernel
from nearcast.kernels.simd import prefetch

_AHEAD = 32


@kernel
def flatten_runs(clause, begin, end, out_message, out_clause):
    """Pairs of the runs `clause[begin[m]:end[m]]`, one after the other."""
    n_out = 0
    for message in range(begin.size):
        for at in range(begin[message], end[message]):
            out_message[n_out] = message
            out_clause[n_out] = clause[at]
            n_out += 1


@kernel
def flatten_groups(of, member, begin, end, out_of, out_member):
    """Pairs of `of[i]` with each of `member[begin[i]:end[i]]`, one after the other."""
    n_out = 0
    for i in range(of.size):
        for at in range(begin[i], end[i]):
            out_of[n_out] = of[i]
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
