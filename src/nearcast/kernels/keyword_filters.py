"""The keywords of a message as bits of a filter, and what is asked of memory for them ahead."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.simd import LANES, prefetch

_KNUTH = 2654435761


@inline_kernel
def filter_bit(keyword):
    """Which of the 512 bits of a message's filter stands for a keyword."""
    return ((np.int64(keyword) * _KNUTH) & 0xFFFFFFFF) >> 23


@kernel
def fill_filters(message_start, keyword, first, last, filters):
    """The keywords of each message as sixteen int32 of bits; bit 0 is always there, for clauses that name no other keyword."""
    filters[:] = 0
    for message in range(first, last):
        base = LANES * (message - first)
        filters[base] = 1
        for at in range(message_start[message], message_start[message + 1]):
            bit = filter_bit(keyword[at])
            low = bit & 31
            # The highest bit of an int32 is its sign.
            filters[base + (bit >> 5)] |= np.int32((1 << low) - ((1 << (low + 1)) & (1 << 32)))


@kernel
def ask_for_doors(door, message_start, keyword, first, last):
    """Ask for the doors of the keywords of some messages: two numbers for each owner, keyword w being owner 1 + w."""
    n_owners = door.size // 2
    for at in range(message_start[first], message_start[last]):
        owner = 1 + np.int64(keyword[at])
        if owner < n_owners:
            prefetch(door, 2 * owner)
