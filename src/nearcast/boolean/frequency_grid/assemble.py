"""Arrays of a grid from a store of clauses: the steps of building, in order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.boolean.frequency_grid.kernels import build, levels
from nearcast.boolean.frequency_grid.kernels.delta import MOST_CELLS, refill_slots
from nearcast.boolean.frequency_grid.layout import (
    BLOCK_SIZE,
    HEAD_FIELDS,
    LATE_FIELDS,
    LINE,
    MAX_LEVEL,
    N_BLOCKS,
    N_BUILT,
    N_CLAUSES,
    N_ENTRIES,
    N_KEYS,
    N_LISTS,
    N_OWNERS,
    N_RUN,
    SLACK,
    ExpectationArrays,
    GridArrays,
    LateArrays,
)
from nearcast.columns.growing import aligned_empty, aligned_zeros
from nearcast.kernels import sorting
from nearcast.kernels.hashing import LINE_SLOTS, fill_table
from nearcast.kernels.layouts import ClauseArrays

_SLOTS_PER_LIST = 2
# The first place of a list: 0 means that there is none.
_FIRST_PLACE = LINE
_DEARER = 4.0


class CopyBudget(NamedTuple):
    """What one more copy of a clause costs, in tests of a candidate per message; and how many a clause may have on average."""

    cost: float
    most_copies: float


def no_grid(max_level: int) -> GridArrays:
    """Nothing is filed."""
    head = np.zeros(HEAD_FIELDS, np.int64)
    head[MAX_LEVEL] = max_level
    return GridArrays(
        np.zeros(2, np.int64),
        free_slots(0),
        aligned_empty(_FIRST_PLACE + SLACK, np.int32),
        np.zeros(0, np.int32),
        np.zeros(6),
        np.zeros(1, np.float32),
        head,
    )


def no_late(n_owners: int) -> LateArrays:
    """Nothing is late; block 0 is never used."""
    head = np.zeros(LATE_FIELDS, np.int64)
    head[N_BLOCKS] = 1
    slot = free_slots(0)
    return LateArrays(np.zeros(n_owners, np.uint8), slot, _free_sieve(slot), np.zeros(BLOCK_SIZE, np.int32), head)


def free_slots(n_keys: int) -> NDArray[np.int64]:
    """A table for `n_keys` that begins with a cache line and is half full then."""
    n_slots = (_SLOTS_PER_LIST * n_keys // LINE_SLOTS + 1) * LINE_SLOTS
    return aligned_zeros(2 * n_slots, np.int64)


def living(clauses: ClauseArrays) -> NDArray[np.int32]:
    slots = np.empty(len(clauses.is_alive), np.int32)
    return slots[: build.alive_slots(clauses.is_alive, slots)]


def frequency_of(clauses: ClauseArrays, slots: NDArray[np.int32], n_keywords: int) -> NDArray[np.int32]:
    frequency = np.zeros(n_keywords, np.int32)
    build.count_frequency(clauses, slots, frequency)
    return frequency


def assemble(
    clauses: ClauseArrays,
    slots: NDArray[np.int32],
    frequency: NDArray[np.int32],
    expected: ExpectationArrays,
    max_level: int,
    probe_cost: float,
    budget: CopyBudget,
) -> GridArrays:
    """Every list of the clauses at `slots`. Only kernels work on long arrays: other threads go on meanwhile."""
    n_owners, copy_cost = len(frequency) + 1, budget.cost
    owner_start, order = _by_owner(clauses, slots, frequency, n_owners)
    cells = np.empty(len(order), np.int64)
    levels.fill_cells(clauses, expected.frame, max_level, order, cells)
    level, wide, room = np.zeros(n_owners, np.int64), np.empty(n_owners, np.float32), np.empty(n_owners, np.int64)
    while True:
        levels.choose_levels(owner_start, cells, expected, max_level, probe_cost, copy_cost, level)
        levels.fill_wide(expected.hit, copy_cost, wide)
        n_entries, most_copies, most_clauses, n_lists = build.count_entries(
            owner_start, order, clauses.keyword_start, cells, level, wide, max_level, room
        )
        if n_entries <= budget.most_copies * len(order):
            break
        # Where each message has every keyword, no copy would be too dear.
        copy_cost *= _DEARER
    door = np.zeros(2 * n_owners, np.int64)
    run = aligned_empty(_FIRST_PLACE + int(room.sum()) + SLACK, np.int32)
    found = (np.empty(n_lists, np.int64), np.empty(n_lists, np.int64))
    end, n_found = build.fill_lists(
        clauses,
        owner_start,
        order,
        cells,
        frequency,
        level,
        wide,
        max_level,
        (0, n_owners),
        _FIRST_PLACE,
        (door, run, run.view(np.float32)),
        (most_copies, most_clauses),
        found,
    )
    run[:_FIRST_PLACE] = 0
    run[end : end + SLACK] = 0
    slot = free_slots(n_found)
    fill_table(slot, *found, n_found)
    head = np.zeros(HEAD_FIELDS, np.int64)
    head[N_BUILT], head[N_CLAUSES], head[N_LISTS] = len(clauses.is_alive), len(slots), n_found
    head[N_ENTRIES], head[N_OWNERS], head[N_RUN], head[MAX_LEVEL] = n_entries, n_owners, end, max_level
    return GridArrays(door, slot, run[: end + SLACK], frequency, expected.frame, wide, head)


def _by_owner(
    clauses: ClauseArrays, slots: NDArray[np.int32], frequency: NDArray[np.int32], n_owners: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The clauses in the order of their owners, and where each owner's begin."""
    owners, sizes = np.empty(len(slots), np.int32), np.zeros(n_owners, np.int64)
    build.fill_owners(clauses, frequency, slots, owners, sizes)
    owner_start = np.zeros(n_owners + 1, np.int64)
    sorting.offsets_from_counts(sizes, owner_start)
    order = np.empty(len(slots), np.int32)
    sorting.fill_lists(owners, slots, owner_start[:-1].copy(), order)
    return owner_start, order


def widened_late(late: LateArrays, n_owners: int) -> LateArrays:
    """The same with room for owners that came later."""
    missing = n_owners - len(late.level)
    return late if missing <= 0 else late._replace(level=np.concatenate([late.level, np.zeros(missing, np.uint8)]))


def with_more_room(late: LateArrays, least_blocks: int) -> LateArrays:
    """The same with room for `least_blocks` more blocks at least, as many keys, and one more clause of many cells."""
    n_blocks, n_keys = int(late.head[N_BLOCKS]), int(late.head[N_KEYS])
    grown = max(least_blocks, n_blocks // 4) + MOST_CELLS
    block = aligned_empty((n_blocks + grown) * BLOCK_SIZE + SLACK, np.int32)
    block[n_blocks * BLOCK_SIZE :] = 0
    block[: n_blocks * BLOCK_SIZE] = late.block[: n_blocks * BLOCK_SIZE]
    slot = free_slots(n_keys + grown)
    sieve = _free_sieve(slot)
    refill_slots(late.slot, slot, sieve)
    return late._replace(slot=slot, sieve=sieve, block=block)


def _free_sieve(slot: NDArray[np.int64]) -> NDArray[np.uint8]:
    return np.zeros(len(slot) // 2, np.uint8)
