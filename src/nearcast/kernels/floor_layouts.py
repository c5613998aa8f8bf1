"""What lists above a floor are kept in: a line for each subscription, its messages in a pool, a calendar of their ends."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import inline_kernel


class FloorArrays(NamedTuple):
    """The best messages of every subscription, best first, all that rank before its guard, or are the guard.

    Of those beyond the best k some may be over. Messages are known by the lower half of their sequence numbers, which is
    enough to tell them apart as long as a window has fewer than 2^31.
    """

    row: np.ndarray  # int64[subscriptions · ROW], see below
    real: np.ndarray  # float64[], the same memory
    score: np.ndarray  # float64[pool]
    number: np.ndarray  # int32[pool]


# A row: where its messages begin in the pool; score, time and number of the guard (NO_GUARD: every message with a word in
# common is held); at which message it waits; how many messages it has; k with the room for messages; where it was last told of.
ROW = 8
START, FLOOR, GUARD_TIME, GUARD_NUMBER, WAITS_AT, SIZE, ROOMS, TOLD = range(8)
NO_GUARD = NOWHERE = NEVER = -1
_K_SHIFT = 32
LOWER_HALF = (1 << 32) - 1


@inline_kernel
def pack_rooms(k, room):
    return k << _K_SHIFT | room


@inline_kernel
def k_of(rooms):
    return rooms >> _K_SHIFT


@inline_kernel
def room_of(rooms):
    return rooms & LOWER_HALF


@inline_kernel
def kept_of(k, room):
    """How many messages a full list keeps: more than k, fewer than it has room for."""
    return k + max(1, (room - k) * 4 // 7)


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

    head: np.ndarray  # int64[2], at FREE and USED
    first: np.ndarray  # int32[places], a chunk or NO_CHUNK
    chunk: np.ndarray  # int32[chunks · CHUNK], the next chunk, how many subscriptions, and these


FREE, USED = 0, 1
CHUNK, NEXT, COUNT, MEMBERS = 16, 0, 1, 2
MOST_MEMBERS = CHUNK - MEMBERS
NO_CHUNK = -1


class FloorRunArrays(NamedTuple):
    """Where a run of ticks stands, and what it hands to its caller; `at` begins as in `kernels/ticks.py`."""

    at: np.ndarray  # int64[N_POSITIONS]
    clock: np.ndarray  # float64[3]
    heap: np.ndarray  # int64[room], living messages of a window of time, the oldest in front
    due: np.ndarray  # int64[room], messages that end in this tick
    lacking: np.ndarray  # int32[room], subscriptions to refill
    cut: np.ndarray  # int32[room], subscriptions whose floor rose


# Further positions of `at`: messages due and how many are done, the oldest living message, the last one that came late, changes
# told before those there are, where those of this tick begin, and how many were taken back.
N_DUE, N_DUE_DONE, OLDEST, LAST_LATE, TOLD_BEFORE, TICK_START, N_TAKEN_BACK, N_POSITIONS = 8, 9, 10, 11, 12, 13, 14, 16
DROP = 5
TAKEN_BACK = 0
