"""Build the arrays of a grid from a store of clauses, step by step, and those of an empty or larger delta."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.boolean.frequency_grid.kernels import build, levels
from nearcast.boolean.frequency_grid.kernels.delta import MOST_CELLS, rehash_with_bloom
from nearcast.boolean.frequency_grid.layout import (
    BLOCK_SIZE,
    DELTA_FIELDS,
    HEAD_FIELDS,
    LINE,
    MAX_LEVEL,
    N_ANCHORS,
    N_BLOCKS,
    N_BUILT,
    N_CLAUSES,
    N_ENTRIES,
    N_KEYS,
    N_LISTS,
    N_RUN,
    SLACK,
    DeltaArrays,
    GridArrays,
    MessageEstimate,
)
from nearcast.columns.growing import aligned_empty, aligned_zeros
from nearcast.kernels import sorting
from nearcast.kernels.hashing import LINE_SLOTS, fill_table
from nearcast.kernels.layouts import ClauseArrays

_SLOTS_PER_LIST = 2
# The first list begins here, since position 0 means that there is no list.
_FIRST_LIST = LINE
_COST_STEP = 4.0


class CopyBudget(NamedTuple):
    """What one more copy of a clause costs, in tests of a candidate per message, and the most copies of a clause on average."""

    cost: float
    most_copies: float


def empty_grid(max_level: int) -> GridArrays:
    """A grid without clauses."""
    head = np.zeros(HEAD_FIELDS, np.int64)
    head[MAX_LEVEL] = max_level
    return GridArrays(
        np.zeros(2, np.int64),
        free_slots(0),
        aligned_empty(_FIRST_LIST + SLACK, np.int32),
        np.zeros(0, np.int32),
        np.zeros(6),
        np.zeros(1, np.float32),
        head,
    )


def empty_delta(n_anchors: int) -> DeltaArrays:
    """A delta without clauses; block 0 is never used."""
    head = np.zeros(DELTA_FIELDS, np.int64)
    head[N_BLOCKS] = 1
    slot = free_slots(0)
    return DeltaArrays(np.zeros(n_anchors, np.uint8), slot, _empty_bloom(slot), np.zeros(BLOCK_SIZE, np.int32), head)


def free_slots(n_keys: int) -> NDArray[np.int64]:
    """A table that is half full with `n_keys` and begins at a cache line."""
    n_slots = (_SLOTS_PER_LIST * n_keys // LINE_SLOTS + 1) * LINE_SLOTS
    return aligned_zeros(2 * n_slots, np.int64)


def living_slots(clauses: ClauseArrays) -> NDArray[np.int32]:
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
    estimate: MessageEstimate,
    max_level: int,
    probe_cost: float,
    budget: CopyBudget,
) -> GridArrays:
    """Build the grid of the clauses at `slots`. Only kernels work on long arrays, so other threads keep running."""
    n_anchors, copy_cost = len(frequency) + 1, budget.cost
    anchor_start, order = _by_anchor(clauses, slots, frequency, n_anchors)
    cells = np.empty(len(order), np.int64)
    levels.fill_cells(clauses, estimate.frame, max_level, order, cells)
    level, cell_limit, list_sizes = (
        np.zeros(n_anchors, np.int64),
        np.empty(n_anchors, np.float32),
        np.empty(n_anchors, np.int64),
    )
    while True:
        levels.choose_levels(anchor_start, cells, estimate, max_level, probe_cost, copy_cost, level)
        levels.fill_cell_limits(estimate.keyword_share, copy_cost, cell_limit)
        n_entries, most_copies, most_clauses, n_lists = build.count_entries(
            anchor_start, order, clauses.keyword_start, cells, level, cell_limit, max_level, list_sizes
        )
        if n_entries <= budget.most_copies * len(order):
            break
        # If every message has every keyword, no copy seems too expensive: raise the cost until the budget is kept.
        copy_cost *= _COST_STEP
    directory = np.zeros(2 * n_anchors, np.int64)
    run = aligned_empty(_FIRST_LIST + int(list_sizes.sum()) + SLACK, np.int32)
    cell_lists = (np.empty(n_lists, np.int64), np.empty(n_lists, np.int64))
    end, n_cell_lists = build.fill_lists(
        clauses,
        anchor_start,
        order,
        cells,
        frequency,
        level,
        cell_limit,
        max_level,
        (0, n_anchors),
        _FIRST_LIST,
        (directory, run, run.view(np.float32)),
        (most_copies, most_clauses),
        cell_lists,
    )
    run[:_FIRST_LIST] = 0
    run[end : end + SLACK] = 0
    slot = free_slots(n_cell_lists)
    fill_table(slot, *cell_lists, n_cell_lists)
    head = np.zeros(HEAD_FIELDS, np.int64)
    head[N_BUILT], head[N_CLAUSES], head[N_LISTS] = len(clauses.is_alive), len(slots), n_cell_lists
    head[N_ENTRIES], head[N_ANCHORS], head[N_RUN], head[MAX_LEVEL] = n_entries, n_anchors, end, max_level
    return GridArrays(directory, slot, run[: end + SLACK], frequency, estimate.frame, cell_limit, head)


def _by_anchor(
    clauses: ClauseArrays, slots: NDArray[np.int32], frequency: NDArray[np.int32], n_anchors: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The clauses ordered by anchor, and where those of each anchor begin."""
    anchors, sizes = np.empty(len(slots), np.int32), np.zeros(n_anchors, np.int64)
    build.fill_anchors(clauses, frequency, slots, anchors, sizes)
    anchor_start = np.zeros(n_anchors + 1, np.int64)
    sorting.offsets_from_counts(sizes, anchor_start)
    order = np.empty(len(slots), np.int32)
    sorting.fill_lists(anchors, slots, anchor_start[:-1].copy(), order)
    return anchor_start, order


def resized_delta(delta: DeltaArrays, n_anchors: int) -> DeltaArrays:
    """The same for more anchors, which keywords of later clauses are."""
    missing = n_anchors - len(delta.level)
    return delta if missing <= 0 else delta._replace(level=np.concatenate([delta.level, np.zeros(missing, np.uint8)]))


def reserve_blocks(delta: DeltaArrays, least_blocks: int) -> DeltaArrays:
    """The same with capacity for at least `least_blocks` more blocks, as many keys, and one more clause of many cells."""
    n_blocks, n_keys = int(delta.head[N_BLOCKS]), int(delta.head[N_KEYS])
    n_more = max(least_blocks, n_blocks // 4) + MOST_CELLS
    block = aligned_empty((n_blocks + n_more) * BLOCK_SIZE + SLACK, np.int32)
    block[n_blocks * BLOCK_SIZE :] = 0
    block[: n_blocks * BLOCK_SIZE] = delta.block[: n_blocks * BLOCK_SIZE]
    slot = free_slots(n_keys + n_more)
    bloom = _empty_bloom(slot)
    rehash_with_bloom(delta.slot, slot, bloom)
    return delta._replace(slot=slot, bloom=bloom, block=block)


def _empty_bloom(slot: NDArray[np.int64]) -> NDArray[np.uint8]:
    return np.zeros(len(slot) // 2, np.uint8)
