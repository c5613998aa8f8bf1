"""Drop dead messages in small steps: a round goes through all lists, a part of it with every batch of messages."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.hashing import remove
from nearcast.kernels.simd import prefetch
from nearcast.moving.moving_grid.kernels.keys import anchor_of_key
from nearcast.moving.moving_grid.kernels.lists import blocks_of, capacity_of, drop_dead, free_blocks, resize_list
from nearcast.moving.moving_grid.layout import (
    BLOCK,
    BLOCK_SHIFT,
    CAPACITY_MASK,
    COUNT_SHIFT,
    CURSOR,
    LEVEL_MASK,
    MESSAGE_BITS,
    N_ENTRIES,
    N_KEYS,
    NO_CAPACITY,
    ONE_ENTRY,
    SIZE_BITS,
    SIZE_MASK,
)

_AHEAD = 12
# A list moves to a smaller capacity if this many times its blocks would fit.
_SHRINK = 4


@inline_kernel
def compact_list(pool, free, head, value, alive_bits):
    """Drop the dead from a list; returns the new list value, 0 if nothing is left."""
    value = drop_dead(pool, value, alive_bits)
    if value & SIZE_MASK == 0:
        free_blocks(pool, free, value)
        return np.int64(0)
    number, n_blocks = (value >> SIZE_BITS) & CAPACITY_MASK, blocks_of(value, MESSAGE_BITS)
    if _SHRINK * n_blocks <= capacity_of(number):
        while capacity_of(number - 1) >= 2 * n_blocks:
            number -= 1
        smaller = resize_list(pool, free, head, value, number, MESSAGE_BITS)
        if smaller != NO_CAPACITY:
            return smaller
    return value


@kernel
def collect_dead(grid, alive_bits, n_steps, to_relevel):
    """Continue the round for `n_steps` steps, one for each directory entry or slot. True if the round ends, and then the call.

    Anchors whose grid needs a coarser level go to `to_relevel`; `to_relevel[0]` counts them.
    """
    directory, slot, pool, free, limit, head = grid.directory, grid.slot, grid.pool, grid.free, grid.limit, grid.head
    n_directory, n_slots = directory.size // 2, slot.size // 2
    cursor = head[CURSOR]
    for _ in range(n_steps):
        if cursor >= n_directory + n_slots:
            head[CURSOR] = 0
            return True
        is_directory = cursor < n_directory
        at = cursor - n_directory
        if is_directory:
            anchor, value = cursor, directory[2 * cursor]
        else:
            if at + _AHEAD < n_slots:
                prefetch(pool, (slot[2 * (at + _AHEAD) + 1] >> BLOCK_SHIFT) * BLOCK)
            anchor, value = anchor_of_key(slot[2 * at]), slot[2 * at + 1]
            if slot[2 * at] != 0 and value == 0:
                # A key that was inserted when there were no blocks for its list.
                remove(slot, at)
                head[N_KEYS] -= 1
                continue
        if value == 0:
            cursor += 1
            continue
        n_before = value & SIZE_MASK
        value = compact_list(pool, free, head, value, alive_bits)
        n_expired = n_before - (value & SIZE_MASK)
        if is_directory:
            directory[2 * anchor] = value
            cursor += 1
        elif value == 0:
            # The key that moves up to this slot is next.
            remove(slot, at)
            head[N_KEYS] -= 1
        else:
            slot[2 * at + 1] = value
            cursor += 1
        if n_expired > 0:
            head[N_ENTRIES] -= n_expired
            directory[2 * anchor + 1] -= n_expired * ONE_ENTRY
            level, count = directory[2 * anchor + 1] & LEVEL_MASK, directory[2 * anchor + 1] >> COUNT_SHIFT
            lowest = limit[level] >> 3
            if level > 0 and count <= lowest and lowest < count + n_expired:
                to_relevel[0] += 1
                to_relevel[to_relevel[0]] = anchor
    head[CURSOR] = cursor
    return False
