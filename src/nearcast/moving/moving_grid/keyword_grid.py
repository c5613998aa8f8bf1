"""The lists of a moving grid, of clauses or of messages: owns the arrays and lets them grow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import aligned_zeros
from nearcast.kernels.hashing import LINE_SLOTS, rehash
from nearcast.moving.moving_grid.kernels.keys import N_RESERVED_BITS, N_SHARED_BITS
from nearcast.moving.moving_grid.kernels.lists import has_slots
from nearcast.moving.moving_grid.layout import (
    BLOCK,
    BLOCKS_OF_ENTRY,
    COUNT_SHIFT,
    CURSOR,
    HEAD_FIELDS,
    MOST_LEVELS,
    N_BLOCKS,
    N_CAPACITIES,
    N_ENTRIES,
    N_FILED,
    N_KEYS,
    N_OUTSIDE,
    SLACK,
    KeywordGridArrays,
)

_NEVER = np.iinfo(np.int64).max
_FEWEST_SLOTS = 64
_FEWEST_BLOCKS = 64
# Slots per key: the table is not full before it has half as many keys more.
_SLOTS_PER_KEY = 2.5


class KeywordGrid:
    """Lists by anchor, class and cell."""

    def __init__(self, limit: NDArray[np.int64]) -> None:
        self._limit = limit
        self.lists = self._empty(np.zeros(1, np.int64))

    def clear(self, count: NDArray[np.int64]) -> None:
        """Drop everything. Each anchor gets the level for the number of entries in `count`."""
        self.lists = self._empty(count)

    def _empty(self, count: NDArray[np.int64]) -> KeywordGridArrays:
        directory = aligned_zeros(2 * len(count), np.int64)
        directory[1::2] = levels_for(self._limit, count)
        head = np.zeros(HEAD_FIELDS, np.int64)
        head[N_BLOCKS] = 1
        return KeywordGridArrays(
            directory=directory,
            slot=np.zeros(2 * _FEWEST_SLOTS, np.int64),
            pool=np.zeros(_FEWEST_BLOCKS * BLOCK + SLACK, np.int32),
            free=np.zeros(N_CAPACITIES, np.int32),
            span=np.zeros(2 * (MOST_LEVELS + 1), np.int64),
            limit=self._limit,
            head=head,
        )

    @property
    def n_anchors(self) -> int:
        return len(self.lists.directory) // 2

    @property
    def n_entries(self) -> int:
        return int(self.lists.head[N_ENTRIES])

    @property
    def n_steps(self) -> int:
        """The number of steps of a round of `collect_dead`."""
        return (len(self.lists.directory) + len(self.lists.slot)) // 2

    @property
    def counts(self) -> tuple[int, int]:
        """How many clauses or messages were filed since the build, and how many of them lie outside the frame."""
        return int(self.lists.head[N_FILED]), int(self.lists.head[N_OUTSIDE])

    def widen(self, n_anchors: int) -> None:
        """Make the directory long enough for `n_anchors`."""
        if n_anchors > self.n_anchors:
            directory = aligned_zeros(2 * (n_anchors + n_anchors // 4), np.int64)
            directory[: len(self.lists.directory)] = self.lists.directory
            self.lists = self.lists._replace(directory=directory)

    def entries_of(self, anchor: int) -> int:
        return int(self.lists.directory[2 * anchor + 1]) >> COUNT_SHIFT

    def grow(self, n_more: int) -> None:
        """Grow the table for `n_more` keys if it is too full, else the pool for as many more entries, and by half."""
        lists = self.lists
        n_keys, n_blocks = int(lists.head[N_KEYS]) + n_more, int(lists.head[N_BLOCKS])
        if not has_slots(lists.slot, lists.head, n_more):
            # Whole cache lines, because keys are searched line by line.
            slot = aligned_zeros(2 * LINE_SLOTS * int(_SLOTS_PER_KEY * n_keys / LINE_SLOTS + 1), np.int64)
            rehash(slot, lists.slot)
            # The order of slots is another one: a round of `collect_dead` begins again.
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
        self.lists = KeywordGridArrays(**{name: arrays[name] for name in KeywordGridArrays._fields})

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for array in self.lists)


def level_limits(smallest: int, first_level: int, growth: int) -> NDArray[np.int64]:
    """The number of entries at which a grid gets each level, and at which it needs a finer one than each level."""
    limit = np.full(2 * (MOST_LEVELS + 1), _NEVER, np.int64)
    limit[0] = 0
    for level in range(first_level, MOST_LEVELS + 1):
        further = level - first_level
        limit[level] = smallest * (growth * 5 ** (further - 1) if further else 1)
    for level in range(MOST_LEVELS):
        limit[MOST_LEVELS + 1 + level] = min(limit[level + 1 : MOST_LEVELS + 1])
    return limit


def levels_for(limit: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """The level of the grid of each anchor with `count` entries."""
    level = np.zeros(len(count), np.int64)
    for finer in range(1, MOST_LEVELS + 1):
        level[count >= limit[finer]] = finer
    return level


def anchors_to_relevel(n: int, grid: KeywordGrid) -> NDArray[np.int64]:
    """An array for the anchors whose grid needs another level; the first element counts them."""
    to_relevel = np.empty(1 + min(n, grid.n_anchors), np.int64)
    to_relevel[0] = 0
    return to_relevel


def reserved_bits(frequency: NDArray[np.int64]) -> NDArray[np.int32]:
    """The mask bit reserved for each of the most frequent keywords; 0 for all others."""
    reserved_bit = np.zeros(len(frequency), np.int32)
    n = min(N_RESERVED_BITS, len(frequency))
    reserved_bit[np.argpartition(frequency, len(frequency) - n)[len(frequency) - n :]] = 1 << np.arange(
        N_SHARED_BITS, N_SHARED_BITS + n
    )
    return reserved_bit
