"""Many growing lists of int32 in one array: a list that outgrows its room moves to the end of the pool."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import kernel

FIRST_ROOM = 4
FULL = -1


class PoolArrays(NamedTuple):
    """List `i` is `item[start[i]:start[i] + size[i]]`, with room up to `start[i] + room[i]`."""

    start: np.ndarray  # int64[n_lists]
    size: np.ndarray  # int32[n_lists]
    room: np.ndarray  # int32[n_lists]
    item: np.ndarray  # int32[pool capacity]
    n_items: np.ndarray  # int64[1]: end of the used part of the pool


@kernel
def append_item(pool, owner, value):
    """Append to a list; returns the position inside it, or FULL if the pool must grow first."""
    size = pool.size[owner]
    if size == pool.room[owner]:
        wanted = max(FIRST_ROOM, 2 * size)
        begin = pool.n_items[0]
        if begin + wanted > pool.item.size:
            return FULL
        for i in range(size):
            pool.item[begin + i] = pool.item[pool.start[owner] + i]
        pool.start[owner] = begin
        pool.room[owner] = wanted
        pool.n_items[0] = begin + wanted
    pool.item[pool.start[owner] + size] = value
    pool.size[owner] = size + 1
    return size


@kernel
def remove_item(pool, owner, position):
    """Take the item at `position` out by moving the last one there; returns the moved item (itself if it was last)."""
    last = pool.size[owner] - 1
    moved = pool.item[pool.start[owner] + last]
    pool.item[pool.start[owner] + position] = moved
    pool.size[owner] = last
    return moved
