"""Matches kept message by message, turned into pairs or into the ids that are delivered."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import kernel
from nearcast.kernels.simd import prefetch

_AHEAD = 24


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
def fill_message_ids(begin, end, row, message_id, out):
    """The id of the message of each pair."""
    n_out = 0
    for message in range(begin.size):
        own = message_id[row[message]]
        for _ in range(end[message] - begin[message]):
            out[n_out] = own
            n_out += 1


@kernel
def fill_owners(clause, begin, end, owner, out):
    """The subscription number of the clause of each pair; an empty `owner` says that every clause is its own number."""
    n_out, is_own = 0, owner.size == 0
    for message in range(begin.size):
        first, last = begin[message], end[message]
        if is_own:
            for at in range(first, last):
                out[n_out + at - first] = clause[at]
        else:
            for at in range(first, last):
                if at + _AHEAD < last:
                    prefetch(owner, np.int64(clause[at + _AHEAD]))
                out[n_out + at - first] = owner[clause[at]]
        n_out += last - first


@kernel
def fill_ids(clause, begin, end, owner, number, first_number, out):
    """The id of the subscription of each pair, as int64.

    An empty `owner` says that every clause is its own number; an empty `number` that ids count up from `first_number`.
    """
    n_out, is_own, is_counting = 0, owner.size == 0, number.size == 0
    for message in range(begin.size):
        first, last = begin[message], end[message]
        if is_own and is_counting:
            for at in range(first, last):
                out[n_out + at - first] = first_number + clause[at]
        else:
            for at in range(first, last):
                if at + _AHEAD < last and is_own:
                    prefetch(number, np.int64(clause[at + _AHEAD]))
                subscription = np.int64(clause[at]) if is_own else np.int64(owner[clause[at]])
                out[n_out + at - first] = first_number + subscription if is_counting else number[subscription]
        n_out += last - first
