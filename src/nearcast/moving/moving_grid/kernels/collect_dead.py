"""Forget dead messages bit by bit: a round goes through all lists, a part of it with every batch of messages."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.hashing import remove
from nearcast.kernels.simd import prefetch
from nearcast.moving.moving_grid.kernels.keys import owner_of_key
from nearcast.moving.moving_grid.kernels.lists import blocks_of, drop_dead, give_back, resized, room_of
from nearcast.moving.moving_grid.layout import (
    BLOCK,
    COUNT_SHIFT,
    CURSOR,
    LEVEL_MASK,
    MESSAGE_BITS,
    N_ENTRIES,
    N_KEYS,
    NO_ROOM,
    ONE_ENTRY,
    PLACE_SHIFT,
    ROOM_MASK,
    SIZE_BITS,
    SIZE_MASK,
)

_AHEAD = 12
# A list moves to a smaller room when so many of these would do.
_SHRINK = 4


@inline_kernel
def without_dead(pool, free, head, value, alive_bits):
    """A list without its dead: what it is found at now, 0 if nothing is left."""
    value = drop_dead(pool, value, alive_bits)
    if value & SIZE_MASK == 0:
        give_back(pool, free, value)
        return np.int64(0)
    number, n_blocks = (value >> SIZE_BITS) & ROOM_MASK, blocks_of(value, MESSAGE_BITS)
    if _SHRINK * n_blocks <= room_of(number):
        while room_of(number - 1) >= 2 * n_blocks:
            number -= 1
        smaller = resized(pool, free, head, value, number, MESSAGE_BITS)
        if smaller != NO_ROOM:
            return smaller
    return value


@kernel
def sweep(side, alive_bits, n_steps, due):
    """Go on for so many steps, a step being a door or a slot; True when a round ends, which ends the call.

    Owners that want a coarser level go to `due`, which `due[0]` counts.
    """
    door, slot, pool, free, limit, head = side.door, side.slot, side.pool, side.free, side.limit, side.head
    n_doors, n_slots = door.size // 2, slot.size // 2
    cursor = head[CURSOR]
    for _ in range(n_steps):
        if cursor >= n_doors + n_slots:
            head[CURSOR] = 0
            return True
        is_door = cursor < n_doors
        at = cursor - n_doors
        if is_door:
            owner, value = cursor, door[2 * cursor]
        else:
            if at + _AHEAD < n_slots:
                prefetch(pool, (slot[2 * (at + _AHEAD) + 1] >> PLACE_SHIFT) * BLOCK)
            owner, value = owner_of_key(slot[2 * at]), slot[2 * at + 1]
            if slot[2 * at] != 0 and value == 0:
                # A key that was claimed when there was no room for its list.
                remove(slot, at)
                head[N_KEYS] -= 1
                continue
        if value == 0:
            cursor += 1
            continue
        n_before = value & SIZE_MASK
        value = without_dead(pool, free, head, value, alive_bits)
        n_gone = n_before - (value & SIZE_MASK)
        if is_door:
            door[2 * owner] = value
            cursor += 1
        elif value == 0:
            # What moves up to this slot is next.
            remove(slot, at)
            head[N_KEYS] -= 1
        else:
            slot[2 * at + 1] = value
            cursor += 1
        if n_gone > 0:
            head[N_ENTRIES] -= n_gone
            door[2 * owner + 1] -= n_gone * ONE_ENTRY
            level, count = door[2 * owner + 1] & LEVEL_MASK, door[2 * owner + 1] >> COUNT_SHIFT
            lowest = limit[level] >> 3
            if level > 0 and count <= lowest and lowest < count + n_gone:
                due[0] += 1
                due[due[0]] = owner
    head[CURSOR] = cursor
    return False
