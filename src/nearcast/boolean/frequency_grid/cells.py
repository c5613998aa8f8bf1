"""The cells of the grid, of all keywords together, for people to look at."""

from __future__ import annotations

import numpy as np

from nearcast.boolean.frequency_grid.layout import CELL_BITS, HEADER, LEVEL_MASK, LINES_BITS, GridArrays
from nearcast.boolean.index import IndexCells
from nearcast.model.regions import Box


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
