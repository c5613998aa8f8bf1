"""What lists above a floor are kept in: a line for each subscription, its messages in a pool, a calendar of their ends."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import inline_kernel
from nearcast.ranked.kernels.layouts import RankedSubscriptionArrays
from nearcast.ranked.kernels.simd_keys_plain import MOST_KEY


class FloorArrays(NamedTuple):
    """The messages of every subscription that rank before its guard, or are the guard, some of them over, as they came.

    A list is a run of the pool, in whole lines of memory: first the keys of its scores (`key_of`), 16 bits each, then, behind
    all the room there is for these (`lows_at`), the messages. Those are known by the lower half of their sequence numbers,
    which is enough to tell them apart as long as a window has fewer than 2^31.
    """

    row: np.ndarray  # int64[subscriptions · ROW], see below
    real: np.ndarray  # float64[], the same memory
    pool: np.ndarray  # int32[]
    key: np.ndarray  # uint16[], the same memory


# A row: where its run begins in the pool; score and number of the guard (NO_GUARD: every message with a word in common is
# held); at which message it waits; how many messages were put in (`held_of`, `next_of`); k with the room for messages and the
# base of its keys (`pack_rooms`); where it was last told of; the last of its best k (`pack_last`), NO_LAST while it has fewer.
ROW = 8
START, FLOOR, GUARD_NUMBER, WAITS_AT, SIZE, ROOMS, TOLD, LAST = range(8)
NO_GUARD = NOWHERE = NEVER = NO_LAST = -1
_HALF = 32
LOWER_HALF = (1 << 32) - 1
# Bits of k and of the room of a list; the base of its keys is above both, in so many steps.
_ROOM_BITS, _BASES = 24, 1 << 15
_ROOMS = (1 << _ROOM_BITS) - 1
_PER_LINE = 16


@inline_kernel
def pack_rooms(k, room, base):
    """`base`: see `base_below`."""
    return base << 2 * _ROOM_BITS | k << _ROOM_BITS | room


@inline_kernel
def k_of(rooms):
    return (rooms >> _ROOM_BITS) & _ROOMS


@inline_kernel
def room_of(rooms):
    return rooms & _ROOMS


@inline_kernel
def base_below(floor):
    """Where the keys of a list begin that holds no score below `floor`."""
    return min(int(floor * _BASES), _BASES - 1)


@inline_kernel
def key_of(score, rooms):
    """A score as a whole number: who has the larger key has the larger score. Of equal keys nothing follows.

    The steps are finest at the base, by which most of the messages of a list are.
    """
    base = (rooms >> 2 * _ROOM_BITS) / _BASES
    return min(int(math.sqrt(max(0.0, score - base) / (1.0 - base)) * MOST_KEY), MOST_KEY)


@inline_kernel
def seems_above(score, rooms, key):
    """Whether the key of a score is at least this one, as nearly as is told without a root: for what is only asked for."""
    base = (rooms >> 2 * _ROOM_BITS) / _BASES
    return (score - base) * (MOST_KEY * MOST_KEY) >= (1.0 - base) * (key * key)


@inline_kernel
def lows_at(start, room):
    """Where the messages of a list begin in the pool."""
    return start + (room + 1) // 2


@inline_kernel
def size_of_list(room):
    """How much of the pool a list takes."""
    return (lows_at(0, room) + room + _PER_LINE - 1) // _PER_LINE * _PER_LINE


@inline_kernel
def held_of(size, room):
    """How many messages a list holds."""
    return min(size, room)


@inline_kernel
def next_of(size, room):
    """Where the next message goes: in a full list to the place of the one that came first."""
    return size if size < room else size - room


@inline_kernel
def pack_last(key, low):
    """The key of a message and its number, as they are stored."""
    return int(key) << _HALF | (int(low) & LOWER_HALF)


@inline_kernel
def key_in(last):
    return last >> _HALF


@inline_kernel
def low_in(last):
    low = last & LOWER_HALF
    return low - (low >> 31 << 32)


@inline_kernel
def kept_of(k, room):
    """How many messages a full list keeps: more than k, fewer than it has room for."""
    return k + max(1, (room - k) * 9 // 14)


@inline_kernel
def lower_half(number):
    """What is stored of a sequence number."""
    low = number & LOWER_HALF
    return low - (low >> 31 << 32)


@inline_kernel
def full_number(low, base):
    """The sequence number that is stored, near to that of the first place of the window."""
    ahead = (int(low) - base) & LOWER_HALF
    return base + ahead - (ahead >> 31 << 32)


class EndArrays(NamedTuple):
    """Which subscriptions wait at which message of the window: chunks of them, linked; some wait no longer."""

    head: np.ndarray  # int64[3], at FREE, USED and N_FREE
    first: np.ndarray  # int32[places], a chunk or NO_CHUNK
    chunk: np.ndarray  # int32[chunks · CHUNK], the next chunk, how many subscriptions, and these


FREE, USED, N_FREE = 0, 1, 2
CHUNK, NEXT, COUNT, MEMBERS = 16, 0, 1, 2
MOST_MEMBERS = CHUNK - MEMBERS
NO_CHUNK = -1
# So many subscriptions are let wait together: what each of them reads is on its way from memory meanwhile.
MOST_PUT_OFF = 32


class FloorRunArrays(NamedTuple):
    """Where a run of ticks stands, and what it hands to its caller; `at` begins as in `ranked/kernels/layouts.py`."""

    at: np.ndarray  # int64[N_POSITIONS]
    clock: np.ndarray  # float64[3]
    heap: np.ndarray  # int64[room], living messages of a window of time, the oldest in front
    due: np.ndarray  # int64[room], messages that end in this tick
    lacking: np.ndarray  # int32[room], subscriptions to refill
    cut: np.ndarray  # int32[room], subscriptions whose floor rose
    scarce: np.ndarray  # int32[room], subscriptions that have been left with their best k
    put_off: np.ndarray  # int64[2 · MOST_PUT_OFF], subscriptions that are to wait at messages


# Further positions of `at`: messages due and how many are done, the oldest living message and the one before this tick, the
# last one that came late, changes told before those there are, where those of this tick begin, how many were taken back, and
# how many subscriptions are scarce.
N_DUE, N_DUE_DONE, OLDEST, LAST_LATE, TOLD_BEFORE, TICK_START, N_TAKEN_BACK, OLDEST_BEFORE, N_SCARCE = range(8, 17)
N_POSITIONS = 17
DROP = 5
TAKEN_BACK = 0


class ScorerArrays(NamedTuple):
    """What it takes to score exactly, and scratch for the messages of one list."""

    ground: tuple[bool, float]
    subscribers: RankedSubscriptionArrays
    common: np.ndarray  # float64[words]
    marked_key: np.ndarray  # uint16[most room + KEY_LANES], see `mark_over`
    marked_low: np.ndarray  # int32[most room]
    order: np.ndarray  # int64[most room], positions in a list
    score: np.ndarray  # float64[most room], by position
