"""Keywords of messages and clauses: sorted sets, marks, filters of bits, counts."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.simd import LANES, prefetch
from nearcast.kernels.sorting import sort_into

_KNUTH = 2654435761


@kernel
def gather_sets(list_start, ids, set_start, sets, count):
    """Turn each list of ids into a sorted set without its negative ids, and count how often each member is in its list.

    `sets` holds as many as `ids`, and so does `count`, or nothing if nobody asks. `list_start` counts from its own first entry,
    so that slices of a larger column work.
    """
    n_lists = list_start.size - 1
    base, longest = list_start[0], 0
    for i in range(n_lists):
        longest = max(longest, list_start[i + 1] - list_start[i])
    known = np.empty(longest, np.int32)
    n_out = 0
    set_start[0] = 0
    for i in range(n_lists):
        n = 0
        for at in range(list_start[i] - base, list_start[i + 1] - base):
            known[n] = ids[at]
            n += ids[at] >= 0
        sort_into(known, 0, n, sets, n_out)
        before, kept = -1, n_out - 1
        for at in range(n_out, n_out + n):
            member = sets[at]
            # What is written never passes what is read.
            kept += member != before
            sets[kept] = member
            if count.size:
                count[kept] = 1 if member != before else count[kept] + 1
            before = member
        n_out = kept + 1
        set_start[i + 1] = n_out
    return n_out


@inline_kernel
def mark_keywords(stamp, mark, keyword, start, stop):
    """Stamp the keywords of the current message, so that membership is one look-up."""
    for at in range(start, stop):
        stamp[keyword[at]] = mark


@inline_kernel
def has_all(stamp, mark, keyword, start, stop):
    """Whether every keyword of the run was stamped with the current mark."""
    for at in range(start, stop):
        if stamp[keyword[at]] != mark:
            return False
    return True


@inline_kernel
def has_any(stamp, mark, keyword, start, stop):
    """Whether some keyword of the run was stamped with the current mark."""
    for at in range(start, stop):
        if stamp[keyword[at]] == mark:
            return True
    return False


@kernel
def count_keywords(keyword, counts):
    """Add one to `counts` for each occurrence."""
    for at in range(keyword.size):
        counts[keyword[at]] += np.int64(1)


@kernel
def count_clauses(keyword_start, keyword, slots, frequency, step):
    """Add `step` to the frequency of every keyword of the clauses at `slots`."""
    for i in range(slots.size):
        for at in range(keyword_start[slots[i]], keyword_start[slots[i] + 1]):
            frequency[keyword[at]] += step


@inline_kernel
def filter_bit(keyword):
    """Which of the 512 bits of a message's filter stands for a keyword."""
    return ((np.int64(keyword) * _KNUTH) & 0xFFFFFFFF) >> 23


@kernel
def fill_filters(message_start, keyword, first, last, filters):
    """The keywords of each message as sixteen int32 of bits; bit 0 is always set, for clauses without a further keyword."""
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
def prefetch_directory(door, message_start, keyword, first, last):
    """Ask for the doors of the keywords of some messages: two numbers for each owner, keyword w being owner 1 + w."""
    n_owners = door.size // 2
    for at in range(message_start[first], message_start[last]):
        owner = 1 + np.int64(keyword[at])
        if owner < n_owners:
            prefetch(door, 2 * owner)
