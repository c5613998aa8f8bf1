"""Lists of blocks in a pool: capacity, blocks, entries. A list value packs first block, capacity class and size."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.moving.kernels.live_messages import is_live
from nearcast.moving.moving_grid.layout import (
    BLOCK,
    BLOCK_SHIFT,
    CAPACITY_MASK,
    CLAUSE_BITS,
    FREE_ENTRY,
    MESSAGE_BITS,
    MESSAGES,
    N_BLOCKS,
    N_KEYS,
    NO_CAPACITY,
    NO_COORDINATE,
    ROWS,
    SIZE_BITS,
    SIZE_MASK,
    SLACK,
)

# At most this many of ten slots are in use.
_FULL = 6
_LANE = (1 << MESSAGE_BITS) - 1


@inline_kernel
def has_slots(slot, head, n_more):
    """Whether `n_more` keys fit into the table."""
    return 10 * (head[N_KEYS] + n_more) <= _FULL * (slot.size // 2)


@inline_kernel
def capacity_of(number):
    """The number of blocks of a capacity class: 1, 2, 3, 4, 6, 8, 12, ..."""
    half = np.int64(1) << (number >> 1)
    if number & 1:
        return 2 * half
    return half + (half >> 1) if number > 0 else half


@inline_kernel
def blocks_of(value, bits):
    """The number of blocks of a list that have entries, with 1 << `bits` entries in a block."""
    return ((value & SIZE_MASK) + (1 << bits) - 1) >> bits


@inline_kernel
def first_block(value):
    """The first block of a list."""
    return value >> BLOCK_SHIFT


@inline_kernel
def entry_position(value, bits, entry):
    """The position of the first field of an entry. Fields of the same width follow at fixed distances."""
    return ((value >> BLOCK_SHIFT) + (entry >> bits)) * BLOCK + (entry & ((1 << bits) - 1))


@inline_kernel
def is_full(value, bits):
    return value == 0 or value & SIZE_MASK == capacity_of((value >> SIZE_BITS) & CAPACITY_MASK) << bits


@kernel
def take_blocks(pool, free, head, number):
    """Take a run of free blocks of a capacity class; returns its first block, or NO_CAPACITY. All its entries are free."""
    capacity = capacity_of(number)
    first = np.int64(free[number])
    if first != 0:
        free[number] = pool[first * BLOCK]
    else:
        first = head[N_BLOCKS]
        if (first + capacity) * BLOCK + SLACK > pool.size:
            return np.int64(NO_CAPACITY)
        head[N_BLOCKS] += capacity
    for at in range(first * BLOCK, (first + capacity) * BLOCK, BLOCK):
        for first_coordinate in range(at, at + 4):
            pool[first_coordinate] = FREE_ENTRY
    return first


@kernel
def free_blocks(pool, free, value):
    """Free the blocks of a list."""
    number, first = (value >> SIZE_BITS) & CAPACITY_MASK, value >> BLOCK_SHIFT
    pool[first * BLOCK] = free[number]
    free[number] = first


@kernel
def resize_list(pool, free, head, value, number, bits):
    """Move a list to another capacity class, where it fits; returns the new list value, or NO_CAPACITY."""
    first = take_blocks(pool, free, head, number)
    if first == NO_CAPACITY:
        return np.int64(NO_CAPACITY)
    if value != 0:
        old = (value >> BLOCK_SHIFT) * BLOCK
        for i in range(blocks_of(value, bits) * BLOCK):
            pool[first * BLOCK + i] = pool[old + i]
        free_blocks(pool, free, value)
    return (first << BLOCK_SHIFT) | (np.int64(number) << SIZE_BITS) | (value & SIZE_MASK)


@inline_kernel
def next_capacity(value):
    """The capacity class that a full list moves to."""
    return np.int64(0) if value == 0 else ((value >> SIZE_BITS) & CAPACITY_MASK) + 1


@kernel
def drop_dead(pool, value, alive_bits):
    """Drop the dead from a list of messages, without a move; returns the new list value."""
    half, size, n_live = pool.view(np.uint16), value & SIZE_MASK, np.int64(0)
    while n_live < size and is_live(alive_bits, pool[entry_position(value, MESSAGE_BITS, n_live) + MESSAGES]):
        n_live += 1
    # Each message is copied, and counted if it is alive: the processor cannot predict which ones are.
    for entry in range(n_live, size):
        source, target = entry_position(value, MESSAGE_BITS, entry), entry_position(value, MESSAGE_BITS, n_live)
        at, to = 2 * source - (source & _LANE), 2 * target - (target & _LANE)
        pool[target + MESSAGES] = pool[source + MESSAGES]
        half[to], half[to + 2 * ROWS] = half[at], half[at + 2 * ROWS]
        n_live += is_live(alive_bits, pool[source + MESSAGES])
    for entry in range(n_live, size):
        target = entry_position(value, MESSAGE_BITS, entry)
        half[2 * target - (target & _LANE)] = NO_COORDINATE
    return value - (size - n_live)


@inline_kernel
def close_gap(pool, value, entry):
    """Remove an entry from a list of clauses: the last entry takes its place. Returns the new list value."""
    last = (value & SIZE_MASK) - 1
    target, source = entry_position(value, CLAUSE_BITS, entry), entry_position(value, CLAUSE_BITS, last)
    for field in range(0, BLOCK, 4):
        pool[target + field] = pool[source + field]
    pool[source] = FREE_ENTRY
    return value - 1
