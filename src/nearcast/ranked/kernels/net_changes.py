"""Sums of changes of ranks."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.hashing import EMPTY_SLOT, number_home
from nearcast.kernels.simd import prefetch

_AHEAD = 32
_HALF = 32


@inline_kernel
def _home_of_pair(first, second, n_slots):
    return number_home(np.int64(first) << _HALF | np.int64(second), n_slots)


@kernel
def add_up_changes(subscriber, message, score, change, slot, total):
    """The sum of all changes of a message in a list with the same score, at the first of them; 0 at the others.

    `slot` is scratch: a power of two of places, more than there are changes, all EMPTY_SLOT.
    """
    n = message.size
    for i in range(n):
        if i + _AHEAD < n:
            prefetch(slot, _home_of_pair(subscriber[i + _AHEAD], message[i + _AHEAD], slot.size))
        at, first = _home_of_pair(subscriber[i], message[i], slot.size), i
        while slot[at] != EMPTY_SLOT:
            other = slot[at]
            if message[other] == message[i] and subscriber[other] == subscriber[i] and score[other] == score[i]:
                first = other
                break
            at = (at + 1) & (slot.size - 1)
        total[i] = 0
        total[first] += change[i]
        slot[at] = first
