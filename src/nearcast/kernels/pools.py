"""Memory for many lists in one growing array.

Three allocators, by what is known of the lists:

- *Chunks* of any size (`take_chunk`, `give_back`). Sizes are rounded up to classes; a freed chunk serves the next list of its
  class. Free chunks of a class are linked through their first element, so no memory is spent on them.
- A *list pool* (`ListPool`): int32 lists that grow one element at a time. A list that outgrows its capacity moves to the end.
- `FreeList`: lists whose capacity never changes, given out from Python for a column of subscriptions at a time.

`moving_grid` has blocks of its own, because it packs the class of a list into the value of its hash table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.compile import inline_kernel, kernel

NO_CHUNK = -1
N_CLASSES = 256
FIRST_CAPACITY = 4
FULL = -1

_FINEST = 64  # up to here every even size has a class of its own
_STEPS = 8  # sizes per doubling above


@inline_kernel
def chunk_capacity(size):
    """The capacity of the smallest chunk for `size` elements: at most one element, or an eighth, more."""
    if size <= _FINEST:
        return size + (size & 1)
    shift = 3
    while (size - 1) >> shift >= 2 * _STEPS:
        shift += 1
    return (((size - 1) >> shift) + 1) << shift


@inline_kernel
def size_class(capacity):
    """The class of a capacity that `chunk_capacity` returned."""
    if capacity <= _FINEST:
        return capacity >> 1
    shift = 3
    while (capacity - 1) >> shift >= 2 * _STEPS:
        shift += 1
    return _FINEST // 2 + _STEPS * (shift - 4) + ((capacity - 1) >> shift) + 1


@kernel
def take_chunk(free, link, used, field, capacity):
    """The start of a chunk: a freed one, or the next of the unused part, which must be large enough.

    `free[class]` is the first free chunk of a class; its first element in `link` leads to the next. `used[field]` counts
    elements.
    """
    number = size_class(capacity)
    first = int(free[number])
    if first == NO_CHUNK:
        first = int(used[field])
        used[field] += capacity
    else:
        free[number] = int(link[first])
    return first


@kernel
def give_back(free, link, first, capacity):
    """Free a chunk for the next list of its class."""
    if capacity > 0:
        number = size_class(capacity)
        link[first] = free[number]
        free[number] = first


class ListPool(NamedTuple):
    """List `i` is `item[start[i]:start[i] + size[i]]` and may grow up to `start[i] + capacity[i]`."""

    start: np.ndarray  # int64[n_lists]
    size: np.ndarray  # int32[n_lists]
    capacity: np.ndarray  # int32[n_lists]
    item: np.ndarray  # int32[pool capacity]
    n_items: np.ndarray  # int64[1]: end of the used part of the pool


@kernel
def append_item(pool, list_id, value):
    """Append to a list; returns the position inside it, or FULL if the pool must grow first."""
    size = pool.size[list_id]
    if size == pool.capacity[list_id]:
        capacity = max(FIRST_CAPACITY, 2 * size)
        begin = pool.n_items[0]
        if begin + capacity > pool.item.size:
            return FULL
        for i in range(size):
            pool.item[begin + i] = pool.item[pool.start[list_id] + i]
        pool.start[list_id] = begin
        pool.capacity[list_id] = capacity
        pool.n_items[0] = begin + capacity
    pool.item[pool.start[list_id] + size] = value
    pool.size[list_id] = size + 1
    return size


@kernel
def remove_item(pool, list_id, position):
    """Remove the item at `position` by moving the last one there; returns the moved item (itself if it was last)."""
    last = pool.size[list_id] - 1
    moved = pool.item[pool.start[list_id] + last]
    pool.item[pool.start[list_id] + position] = moved
    pool.size[list_id] = last
    return moved


class FreeList:
    """Starts of freed lists by their capacity."""

    def __init__(self, saved: NDArray[np.int64] | None = None) -> None:
        self._starts: dict[int, list[int]] = {}
        if saved is not None:
            rows = saved.reshape(-1, 2)
            self.give_back(rows[:, 1], rows[:, 0])

    def take(self, capacity: int, length: int, n_lists: int, n_used: int) -> tuple[NDArray[np.int64], int]:
        """The starts of `n_lists` lists, freed ones first, and how many of them are new.

        New ones lie `length` elements apart from `n_used`, the end of the used part, on.
        """
        freed = self._starts.get(capacity, [])
        n_freed = min(len(freed), n_lists)
        start = np.empty(n_lists, np.int64)
        start[:n_freed] = freed[len(freed) - n_freed :]
        del freed[len(freed) - n_freed :]
        n_new = n_lists - n_freed
        start[n_freed:] = n_used + length * np.arange(n_new)
        return start, n_new

    def give_back(self, starts: NDArray[np.int64], capacities: NDArray[np.integer]) -> None:
        """Free lists for the next ones of their capacities."""
        for start, capacity in zip(starts.tolist(), capacities.tolist(), strict=True):
            self._starts.setdefault(capacity, []).append(start)

    def array(self) -> NDArray[np.int64]:
        """Everything that must be saved: a row of capacity and start for each list."""
        rows = [(capacity, start) for capacity, starts in self._starts.items() for start in starts]
        return np.array(rows, np.int64).reshape(-1, 2)
