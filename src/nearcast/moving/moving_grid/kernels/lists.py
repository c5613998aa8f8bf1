"""Lists of blocks: found by a key, given room, taken back. Helpers are inlined; what is rare is a call."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.moving.kernels.live_messages import lives
from nearcast.moving.moving_grid.layout import (
    BLOCK,
    CLAUSE_BITS,
    MESSAGE_BITS,
    MESSAGES,
    N_BLOCKS,
    N_KEYS,
    NO_COORDINATE,
    NO_ROOM,
    NOWHERE,
    PLACE_SHIFT,
    ROOM_MASK,
    ROWS,
    SIZE_BITS,
    SIZE_MASK,
    SLACK,
)

# At most so many of ten slots are in use.
_FULL = 6
_LANE = (1 << MESSAGE_BITS) - 1


@inline_kernel
def has_slots(slot, head, n_more):
    """Whether so many more keys fit into the table."""
    return 10 * (head[N_KEYS] + n_more) <= _FULL * (slot.size // 2)


@inline_kernel
def room_of(number):
    """How many blocks a room of this class has: 1, 2, 3, 4, 6, 8, 12, ..."""
    half = np.int64(1) << (number >> 1)
    if number & 1:
        return 2 * half
    return half + (half >> 1) if number > 0 else half


@inline_kernel
def blocks_of(value, bits):
    """How many blocks of a list have entries, with 1 << `bits` entries in a block."""
    return ((value & SIZE_MASK) + (1 << bits) - 1) >> bits


@inline_kernel
def place_of(value):
    """The first block of a list."""
    return value >> PLACE_SHIFT


@inline_kernel
def entry_place(value, bits, entry):
    """Where a field that comes first in its block stands for an entry; others that are as wide stand as far behind theirs."""
    return ((value >> PLACE_SHIFT) + (entry >> bits)) * BLOCK + (entry & ((1 << bits) - 1))


@inline_kernel
def is_full(value, bits):
    return value == 0 or value & SIZE_MASK == room_of((value >> SIZE_BITS) & ROOM_MASK) << bits


@kernel
def take_blocks(pool, free, head, number):
    """The first of a run of free blocks of a room, all places free; NO_ROOM if the pool is too short."""
    room = room_of(number)
    first = np.int64(free[number])
    if first != 0:
        free[number] = pool[first * BLOCK]
    else:
        first = head[N_BLOCKS]
        if (first + room) * BLOCK + SLACK > pool.size:
            return np.int64(NO_ROOM)
        head[N_BLOCKS] += room
    for at in range(first * BLOCK, (first + room) * BLOCK, BLOCK):
        for first_coordinate in range(at, at + 4):
            pool[first_coordinate] = NOWHERE
    return first


@kernel
def give_back(pool, free, value):
    """Free the blocks of a list."""
    number, first = (value >> SIZE_BITS) & ROOM_MASK, value >> PLACE_SHIFT
    pool[first * BLOCK] = free[number]
    free[number] = first


@kernel
def resized(pool, free, head, value, number, bits):
    """A list in a room of another class, where it fits: what it is found at now, or NO_ROOM."""
    first = take_blocks(pool, free, head, number)
    if first == NO_ROOM:
        return np.int64(NO_ROOM)
    if value != 0:
        old = (value >> PLACE_SHIFT) * BLOCK
        for i in range(blocks_of(value, bits) * BLOCK):
            pool[first * BLOCK + i] = pool[old + i]
        give_back(pool, free, value)
    return (first << PLACE_SHIFT) | (np.int64(number) << SIZE_BITS) | (value & SIZE_MASK)


@inline_kernel
def wider_room(value):
    """The class of the room that a full list moves to."""
    return np.int64(0) if value == 0 else ((value >> SIZE_BITS) & ROOM_MASK) + 1


@kernel
def drop_dead(pool, value, alive_bits):
    """Take the dead out of a list of messages, in its room: what it is found at now."""
    half, size, kept = pool.view(np.uint16), value & SIZE_MASK, np.int64(0)
    while kept < size and lives(alive_bits, pool[entry_place(value, MESSAGE_BITS, kept) + MESSAGES]):
        kept += 1
    # Each is copied, and kept if it lives: which ones do cannot be guessed.
    for entry in range(kept, size):
        here, there = entry_place(value, MESSAGE_BITS, entry), entry_place(value, MESSAGE_BITS, kept)
        at, to = 2 * here - (here & _LANE), 2 * there - (there & _LANE)
        pool[there + MESSAGES] = pool[here + MESSAGES]
        half[to], half[to + 2 * ROWS] = half[at], half[at + 2 * ROWS]
        kept += lives(alive_bits, pool[here + MESSAGES])
    for entry in range(kept, size):
        there = entry_place(value, MESSAGE_BITS, entry)
        half[2 * there - (there & _LANE)] = NO_COORDINATE
    return value - (size - kept)


@inline_kernel
def close_gap(pool, value, entry):
    """Take an entry out of a list of clauses: the last one moves to its place. Returns what the list is found at."""
    last = (value & SIZE_MASK) - 1
    here, there = entry_place(value, CLAUSE_BITS, entry), entry_place(value, CLAUSE_BITS, last)
    for field in range(0, BLOCK, 4):
        pool[here + field] = pool[there + field]
    pool[there] = NOWHERE
    return value - 1
