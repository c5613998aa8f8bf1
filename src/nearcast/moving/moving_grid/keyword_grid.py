"""One side of a moving grid, clauses or messages: owns the arrays and gives them room."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import aligned_zeros
from nearcast.kernels.hashing import LINE_SLOTS, rehash
from nearcast.moving.moving_grid.kernels.keys import N_OWN_BITS, N_SHARED_BITS
from nearcast.moving.moving_grid.kernels.lists import has_slots
from nearcast.moving.moving_grid.layout import (
    BLOCK,
    BLOCKS_OF_ENTRY,
    COUNT_SHIFT,
    CURSOR,
    HEAD_FIELDS,
    MOST_LEVELS,
    N_BLOCKS,
    N_ENTRIES,
    N_FILED,
    N_KEYS,
    N_OUTSIDE,
    N_ROOMS,
    SLACK,
    SideArrays,
)

_NEVER = np.iinfo(np.int64).max
_FEWEST_SLOTS = 64
_FEWEST_BLOCKS = 64
# Slots for a key, so that they are not full before the table has grown by a half.
_SLOTS_PER_KEY = 2.5


class Side:
    """Lists by owner, class and cell."""

    def __init__(self, limit: NDArray[np.int64]) -> None:
        self._limit = limit
        self.lists = self._empty(np.zeros(1, np.int64))

    def clear(self, count: NDArray[np.int64]) -> None:
        """Forget everything; owners get the levels for so many entries."""
        self.lists = self._empty(count)

    def _empty(self, count: NDArray[np.int64]) -> SideArrays:
        door = aligned_zeros(2 * len(count), np.int64)
        door[1::2] = levels_for(self._limit, count)
        head = np.zeros(HEAD_FIELDS, np.int64)
        head[N_BLOCKS] = 1
        return SideArrays(
            door=door,
            slot=np.zeros(2 * _FEWEST_SLOTS, np.int64),
            pool=np.zeros(_FEWEST_BLOCKS * BLOCK + SLACK, np.int32),
            free=np.zeros(N_ROOMS, np.int32),
            span=np.zeros(2 * (MOST_LEVELS + 1), np.int64),
            limit=self._limit,
            head=head,
        )

    @property
    def n_owners(self) -> int:
        return len(self.lists.door) // 2

    @property
    def n_entries(self) -> int:
        return int(self.lists.head[N_ENTRIES])

    @property
    def n_steps(self) -> int:
        """Of a round of the sweep."""
        return (len(self.lists.door) + len(self.lists.slot)) // 2

    @property
    def counts(self) -> tuple[int, int]:
        """Things that were filed since the build, and those of them outside the frame."""
        return int(self.lists.head[N_FILED]), int(self.lists.head[N_OUTSIDE])

    def widen(self, n_owners: int) -> None:
        """Make doors for more owners."""
        if n_owners > self.n_owners:
            door = aligned_zeros(2 * (n_owners + n_owners // 4), np.int64)
            door[: len(self.lists.door)] = self.lists.door
            self.lists = self.lists._replace(door=door)

    def entries_of(self, owner: int) -> int:
        return int(self.lists.door[2 * owner + 1]) >> COUNT_SHIFT

    def grow(self, n_more: int) -> None:
        """Make room for so many more keys, if it is the table that is short, or else for as many more blocks and then some."""
        lists = self.lists
        n_keys, n_blocks = int(lists.head[N_KEYS]) + n_more, int(lists.head[N_BLOCKS])
        if not has_slots(lists.slot, lists.head, n_more):
            # Whole cache lines, in which keys are looked for.
            slot = aligned_zeros(2 * LINE_SLOTS * int(_SLOTS_PER_KEY * n_keys / LINE_SLOTS + 1), np.int64)
            rehash(slot, lists.slot)
            # The order is another one: a round of the sweep begins again.
            lists.head[CURSOR] = 0
            self.lists = lists._replace(slot=slot)
            return
        pool = aligned_zeros(
            (n_blocks + n_blocks // 2 + BLOCKS_OF_ENTRY * (n_more + 1) + _FEWEST_BLOCKS) * BLOCK + SLACK, np.int32
        )
        n_used = n_blocks * BLOCK
        pool[:n_used] = lists.pool[:n_used]
        self.lists = lists._replace(pool=pool)

    def arrays(self) -> dict[str, NDArray[Any]]:
        n_used = int(self.lists.head[N_BLOCKS]) * BLOCK + SLACK
        return {**self.lists._asdict(), "pool": self.lists.pool[:n_used]}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.lists = SideArrays(**{name: arrays[name] for name in SideArrays._fields})

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for array in self.lists)


def limits_of(smallest: int, first_level: int, growth: int) -> NDArray[np.int64]:
    """Entries from which on a grid has each level, and from which on a finer one than each level is due."""
    limit = np.full(2 * (MOST_LEVELS + 1), _NEVER, np.int64)
    limit[0] = 0
    for level in range(first_level, MOST_LEVELS + 1):
        further = level - first_level
        limit[level] = smallest * (growth * 5 ** (further - 1) if further else 1)
    for level in range(MOST_LEVELS):
        limit[MOST_LEVELS + 1 + level] = min(limit[level + 1 : MOST_LEVELS + 1])
    return limit


def levels_for(limit: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """The level of the grid of each owner with so many entries."""
    level = np.zeros(len(count), np.int64)
    for wanted in range(1, MOST_LEVELS + 1):
        level[count >= limit[wanted]] = wanted
    return level


def due_owners(n: int, side: Side) -> NDArray[np.int64]:
    """Room for the owners that want another level, after their number."""
    due = np.empty(1 + min(n, side.n_owners), np.int64)
    due[0] = 0
    return due


def bits_of_frequent(frequency: NDArray[np.int64]) -> NDArray[np.int32]:
    """The bit of its own in a mask that each of the most frequent keywords has; 0 for the others."""
    own_bit = np.zeros(len(frequency), np.int32)
    n = min(N_OWN_BITS, len(frequency))
    own_bit[np.argpartition(frequency, len(frequency) - n)[len(frequency) - n :]] = 1 << np.arange(
        N_SHARED_BITS, N_SHARED_BITS + n
    )
    return own_bit
