"""In words: which lists hold a clause, and whether a message visits them."""

from __future__ import annotations

import numpy as np

from nearcast.boolean.frequency_grid.kernels.delta import LATE_LEVEL_MASK, MOST_CELLS
from nearcast.boolean.frequency_grid.kernels.keys import owner_of
from nearcast.boolean.frequency_grid.kernels.levels import cells_of, first_column, first_row, last_column, last_row, n_cells_at
from nearcast.boolean.frequency_grid.layout import (
    CATCH_ALL,
    CELL_BITS,
    HEADER,
    LEVEL_MASK,
    LINES_BITS,
    MAX_LEVEL,
    N_BUILT,
    GridArrays,
    LateArrays,
)
from nearcast.boolean.index import IndexCells
from nearcast.columns.messages import MessageBatch
from nearcast.kernels.layouts import ClauseArrays
from nearcast.model.regions import Box


def explain_path(grid: GridArrays, late: LateArrays, clauses: ClauseArrays, messages: MessageBatch, slot: int) -> list[str]:
    """The way of the first message towards one clause."""
    arrays, max_level = messages.arrays, int(grid.head[MAX_LEVEL])
    owner = int(owner_of(clauses.keyword_start, clauses.keyword, grid.frequency, slot))
    is_late = slot >= int(grid.head[N_BUILT])
    under = f"under keyword {owner - 1}" if owner != CATCH_ALL else "without keyword"
    told = [f"{'late clause, in a chain' if is_late else 'listed'} {under}, the rarest when the grid was built"]
    if owner != CATCH_ALL and owner - 1 not in arrays.keyword:
        return [*told, "no list visited: the message lacks that keyword"]
    sides = (clauses.x0, clauses.y0, clauses.x1, clauses.y1)
    own = _cells(grid, max_level, *(float(side[slot]) for side in sides))
    if is_late:
        level, most = int(late.level[owner] & LATE_LEVEL_MASK) - 1, float(MOST_CELLS)
    else:
        level, most = int(grid.door[2 * owner] & LEVEL_MASK), float(grid.wide[owner])
    shift = max_level - level
    n_cells = int(n_cells_at(own, shift))
    if level == 0 or n_cells > most:
        return [*told, "in the list without a cell: visited by every message with the keyword near one of its clauses"]
    message_box = (float(side[0]) for side in (arrays.x0, arrays.y0, arrays.x1, arrays.y1))
    there = _cells(grid, max_level, *message_box)
    is_met = all(
        int(first(own)) >> shift <= int(last(there)) >> shift and int(first(there)) >> shift <= int(last(own)) >> shift
        for first, last in ((first_column, last_column), (first_row, last_row))
    )
    verdict = "visited, each clause tested" if is_met else "not visited: the message lies elsewhere"
    return [*told, f"in {n_cells} cells of a grid of {1 << level} by {1 << level}: {verdict}"]


def _cells(grid: GridArrays, max_level: int, x0: float, y0: float, x1: float, y1: float) -> int:
    return int(cells_of(grid.frame, 1 << max_level, x0, y0, x1, y1))


# -- The cells of the grid, of all keywords together, for people to look at.


def cells_under(grid: GridArrays, box: Box, most: int) -> IndexCells:
    """The fullest cells that meet a box; each keyword has a level of its own, so cells lie over each other."""
    key, place = grid.slot[::2], grid.slot[1::2] >> LINES_BITS
    is_used = key > 0
    key, place = key[is_used] - 1, place[is_used]
    level = grid.door[2 * (key >> CELL_BITS)] & LEVEL_MASK
    cell = key & ((1 << CELL_BITS) - 1)
    side = np.ldexp(1.0, -level.astype(np.int32))
    low, high = grid.frame[[0, 3]], grid.frame[[1, 4]]
    x0 = low[0] + (cell >> level) * side * (high[0] - low[0])
    y0 = low[1] + (cell & ((1 << level) - 1)) * side * (high[1] - low[1])
    x1, y1 = x0 + side * (high[0] - low[0]), y0 + side * (high[1] - low[1])
    is_met = (x0 <= box.x1) & (x1 >= box.x0) & (y0 <= box.y1) & (y1 >= box.y0)
    load = sum(grid.run[place[is_met] + count].astype(np.int64) for count in range(HEADER))
    # Cells of one level are told apart by their number, cells of several by a bit above it.
    name, first, same = np.unique(((1 << level) << CELL_BITS | cell)[is_met], return_index=True, return_inverse=True)
    loads = np.zeros(len(name), np.int64)
    np.add.at(loads, same, load)
    fullest = np.argsort(-loads, kind="stable")[:most]
    at = np.flatnonzero(is_met)[first[fullest]]
    return IndexCells(x0[at], y0[at], x1[at], y1[at], level[at], loads[fullest])
