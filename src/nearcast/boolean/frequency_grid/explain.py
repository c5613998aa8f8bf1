"""Which lists contain a clause and whether a message visits them, in words; and the fullest cells, for display."""

from __future__ import annotations

import numpy as np

from nearcast.boolean.frequency_grid.kernels.delta import DELTA_LEVEL_MASK, MOST_CELLS
from nearcast.boolean.frequency_grid.kernels.levels import cells_of, first_column, first_row, last_column, last_row, n_cells_at
from nearcast.boolean.frequency_grid.layout import (
    CELL_BITS,
    HEADER,
    LEVEL_MASK,
    LINES_BITS,
    MAX_LEVEL,
    N_BUILT,
    NO_ANCHOR,
    DeltaArrays,
    GridArrays,
)
from nearcast.boolean.index import IndexCells
from nearcast.columns.messages import MessageBatch
from nearcast.kernels.keyword_sets import rarest_anchor
from nearcast.kernels.layouts import ClauseArrays
from nearcast.model.regions import Box


def explain_path(grid: GridArrays, delta: DeltaArrays, clauses: ClauseArrays, messages: MessageBatch, slot: int) -> list[str]:
    """The path of the first message to one clause."""
    arrays, max_level = messages.arrays, int(grid.head[MAX_LEVEL])
    anchor = int(rarest_anchor(clauses.keyword_start, clauses.keyword, grid.frequency, slot))
    is_delta = slot >= int(grid.head[N_BUILT])
    under = f"under keyword {anchor - 1}" if anchor != NO_ANCHOR else "without keyword"
    lines = [f"{'in a chain of the delta' if is_delta else 'listed'} {under}, the rarest when the grid was built"]
    if anchor != NO_ANCHOR and anchor - 1 not in arrays.keyword:
        return [*lines, "no list visited: the message lacks that keyword"]
    bounds = (clauses.x0, clauses.y0, clauses.x1, clauses.y1)
    clause_cells = _cells(grid, max_level, *(float(bound[slot]) for bound in bounds))
    if is_delta:
        level, limit = int(delta.level[anchor] & DELTA_LEVEL_MASK) - 1, float(MOST_CELLS)
    else:
        level, limit = int(grid.directory[2 * anchor] & LEVEL_MASK), float(grid.cell_limit[anchor])
    shift = max_level - level
    n_cells = int(n_cells_at(clause_cells, shift))
    if level == 0 or n_cells > limit:
        return [*lines, "in the list without a cell: visited by every message with the keyword near one of its clauses"]
    message_box = (float(bound[0]) for bound in (arrays.x0, arrays.y0, arrays.x1, arrays.y1))
    message_cells = _cells(grid, max_level, *message_box)
    is_met = all(
        int(first(clause_cells)) >> shift <= int(last(message_cells)) >> shift
        and int(first(message_cells)) >> shift <= int(last(clause_cells)) >> shift
        for first, last in ((first_column, last_column), (first_row, last_row))
    )
    verdict = "visited, each clause tested" if is_met else "not visited: the message lies elsewhere"
    return [*lines, f"in {n_cells} cells of a grid of {1 << level} by {1 << level}: {verdict}"]


def _cells(grid: GridArrays, max_level: int, x0: float, y0: float, x1: float, y1: float) -> int:
    return int(cells_of(grid.frame, 1 << max_level, x0, y0, x1, y1))


def cells_under(grid: GridArrays, box: Box, limit: int) -> IndexCells:
    """The fullest cells that meet a box, of all keywords together. Each keyword has its own level, so cells overlap."""
    key, start = grid.slot[::2], grid.slot[1::2] >> LINES_BITS
    is_used = key > 0
    key, start = key[is_used] - 1, start[is_used]
    level = grid.directory[2 * (key >> CELL_BITS)] & LEVEL_MASK
    cell = key & ((1 << CELL_BITS) - 1)
    bound = np.ldexp(1.0, -level.astype(np.int32))
    low, high = grid.frame[[0, 3]], grid.frame[[1, 4]]
    x0 = low[0] + (cell >> level) * bound * (high[0] - low[0])
    y0 = low[1] + (cell & ((1 << level) - 1)) * bound * (high[1] - low[1])
    x1, y1 = x0 + bound * (high[0] - low[0]), y0 + bound * (high[1] - low[1])
    is_met = (x0 <= box.x1) & (x1 >= box.x0) & (y0 <= box.y1) & (y1 >= box.y0)
    load = sum(grid.run[start[is_met] + count].astype(np.int64) for count in range(HEADER))
    # Cells of one level are told apart by their number, cells of several by a bit above it.
    cell_name, first, member = np.unique(((1 << level) << CELL_BITS | cell)[is_met], return_index=True, return_inverse=True)
    loads = np.zeros(len(cell_name), np.int64)
    np.add.at(loads, member, load)
    fullest = np.argsort(-loads, kind="stable")[:limit]
    shown = np.flatnonzero(is_met)[first[fullest]]
    return IndexCells(x0[shown], y0[shown], x1[shown], y1[shown], level[shown], loads[fullest])
