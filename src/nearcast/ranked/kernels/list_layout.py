"""The arrays of result lists: a line for each subscription, its messages in a pool, and a calendar of their expiries."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import inline_kernel
from nearcast.ranked.kernels.layouts import RankedSubscriptionArrays
from nearcast.ranked.kernels.simd_keys_plain import MOST_KEY


class ResultListArrays(NamedTuple):
    """For each subscription the messages that rank before its guard, and the guard, in the order of arrival; some are expired.

    A list is a run of the pool, in whole lines of memory: first the keys of its scores (`key_of`), 16 bits each, up to its
    capacity, then its messages (from `start_of_numbers32` on). A message is stored as the lower 32 bits of its sequence number:
    enough to tell messages apart as long as a window has fewer than 2^31.
    """

    row: np.ndarray  # int64[subscriptions · ROW], see below
    real: np.ndarray  # float64[], the same memory
    pool: np.ndarray  # int32[]
    key: np.ndarray  # uint16[], the same memory


# A row: where the list begins in the pool; threshold and number of the guard (NO_GUARD: every message with a word in common is
# held); the message at which it is scheduled; how many messages were added (`held_of`, `next_of`); k, capacity and the base of
# keys (`pack_limits`); where its last change was recorded; the last of its best k (`pack_last`), NO_LAST while it has fewer.
ROW = 8
START, THRESHOLD, GUARD_NUMBER, SCHEDULED_AT, SIZE, LIMITS, RECORDED_AT, LAST = range(8)
NO_GUARD = NOWHERE = NEVER = NO_LAST = -1
_HALF = 32
LOWER_HALF = (1 << 32) - 1
# Bits of k and of the capacity; the base of the keys is above both, in 1 / _BASES.
_CAPACITY_BITS, _BASES = 24, 1 << 15
_CAPACITY_MASK = (1 << _CAPACITY_BITS) - 1
_PER_LINE = 16


@inline_kernel
def pack_limits(k, capacity, base):
    """`base`: see `base_below`."""
    return base << 2 * _CAPACITY_BITS | k << _CAPACITY_BITS | capacity


@inline_kernel
def k_of(limits):
    return (limits >> _CAPACITY_BITS) & _CAPACITY_MASK


@inline_kernel
def capacity_of(limits):
    return limits & _CAPACITY_MASK


@inline_kernel
def base_below(threshold):
    """The base of the keys of a list that holds no score below `threshold`."""
    return min(int(threshold * _BASES), _BASES - 1)


@inline_kernel
def key_of(score, limits):
    """A score as an integer of 16 bits: the larger key has the larger score; equal keys decide nothing.

    Steps are finest at the base, where most messages of a list are.
    """
    base = (limits >> 2 * _CAPACITY_BITS) / _BASES
    return min(int(math.sqrt(max(0.0, score - base) / (1.0 - base)) * MOST_KEY), MOST_KEY)


@inline_kernel
def is_roughly_above(score, limits, key):
    """Whether the key of a score is at least this one, up to rounding: computed without a root, for prefetching only."""
    base = (limits >> 2 * _CAPACITY_BITS) / _BASES
    return (score - base) * (MOST_KEY * MOST_KEY) >= (1.0 - base) * (key * key)


@inline_kernel
def start_of_numbers32(start, capacity):
    """Where the messages of a list begin in the pool."""
    return start + (capacity + 1) // 2


@inline_kernel
def size_of_list(capacity):
    """The part of the pool that a list takes."""
    return (start_of_numbers32(0, capacity) + capacity + _PER_LINE - 1) // _PER_LINE * _PER_LINE


@inline_kernel
def held_of(size, capacity):
    """The number of messages in a list."""
    return min(size, capacity)


@inline_kernel
def next_of(size, capacity):
    """Where the next message goes: in a full list, in place of the oldest arrival."""
    return size if size < capacity else size - capacity


@inline_kernel
def pack_last(key, number32):
    """The key and the number of a message, packed."""
    return int(key) << _HALF | (int(number32) & LOWER_HALF)


@inline_kernel
def key_in(last):
    return last >> _HALF


@inline_kernel
def number32_in(last):
    number32 = last & LOWER_HALF
    return number32 - (number32 >> 31 << 32)


@inline_kernel
def n_kept_when_full(k, capacity):
    """The number of messages a full list keeps: more than k, less than its capacity."""
    return k + max(1, (capacity - k) * 9 // 14)


@inline_kernel
def number32_of(number):
    """The lower 32 bits of a sequence number."""
    number32 = number & LOWER_HALF
    return number32 - (number32 >> 31 << 32)


@inline_kernel
def full_number(number32, base):
    """The sequence number with these lower 32 bits that is nearest to `base`."""
    ahead = (int(number32) - base) & LOWER_HALF
    return base + ahead - (ahead >> 31 << 32)


class ExpiryArrays(NamedTuple):
    """The subscriptions scheduled at each message of the window: linked chunks. Some have been rescheduled since."""

    head: np.ndarray  # int64[3], at FREE, USED and N_FREE
    first: np.ndarray  # int32[positions], a chunk or NO_CHUNK
    chunk: np.ndarray  # int32[chunks · CHUNK], the next chunk, how many subscriptions, and these


FREE, USED, N_FREE = 0, 1, 2
CHUNK, NEXT, COUNT, MEMBERS = 16, 0, 1, 2
MOST_MEMBERS = CHUNK - MEMBERS
NO_CHUNK = -1
# This many subscriptions are scheduled together, so that memory for each is prefetched meanwhile.
MAX_DEFERRED = 32


class RunArrays(NamedTuple):
    """Where a run of ticks stands, and what it returns; `at` begins as in `ranked/kernels/layouts.py`."""

    at: np.ndarray  # int64[N_POSITIONS]
    clock: np.ndarray  # float64[3]
    heap: np.ndarray  # int64[capacity], living messages of a window of time, the oldest in front
    due: np.ndarray  # int64[capacity], messages that expire in this tick
    needs_refill: np.ndarray  # int32[capacity], subscriptions to refill
    truncated: np.ndarray  # int32[capacity], subscriptions whose threshold rose
    low_reserve: np.ndarray  # int32[capacity], subscriptions that have been left with their best k
    deferred: np.ndarray  # int64[2 · MAX_DEFERRED], subscriptions to be scheduled, each with its message


# Further positions of `at`: messages due and how many are done, the oldest living message, the last late one, changes handed
# out before, the first change of this tick, cancelled changes, the oldest living message before this tick, lists with a low
# reserve.
N_DUE, N_DUE_DONE, OLDEST, LAST_LATE, CHANGES_BEFORE, TICK_START, N_CANCELLED, OLDEST_BEFORE, N_LOW_RESERVE = range(8, 17)
N_POSITIONS = 17
DROP = 5
CANCELLED = 0


class ScorerArrays(NamedTuple):
    """What exact scoring needs, and scratch for the messages of one list."""

    distances: tuple[bool, float]
    subscriptions: RankedSubscriptionArrays
    common: np.ndarray  # float64[words]
    marked_key: np.ndarray  # uint16[max capacity + KEY_LANES], see `mark_expired`
    marked_number32: np.ndarray  # int32[max capacity]
    order: np.ndarray  # int64[max capacity], positions in a list
    score: np.ndarray  # float64[max capacity], by position
