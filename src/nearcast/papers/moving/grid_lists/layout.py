"""The arrays of one side of a grid index: lists of clauses or of messages by keyword and cell."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

CATCH_ALL = 0  # the owner for clauses without keywords, and for every message; keyword w is owner 1 + w
NO_LIST = -1

# Fields of `head`: lists, slots in use, elements of `item` in use, entries; postings that are filed, and that were when built.
N_LISTS, N_SLOTS_USED, N_ITEMS, N_ENTRIES, N_FILED, N_BUILT = range(6)
HEAD_FIELDS = 6

# Fields of `wanted`.
WANTED_LISTS, WANTED_SLOTS, WANTED_ITEMS = range(3)
WANTED_FIELDS = 3

# Fields of `shape`: columns (and rows), the most cells something may stand in, whether lists are found by cell first.
SIDE, MOST_CELLS, IS_SPACE_FIRST = range(3)
SHAPE_FIELDS = 3


class GridArrays(NamedTuple):
    """The list of an owner and a cell is found in a table; cell `side * side` stands for no cell: what is spread over too many.

    An owner that is not a grid has everything in its list without a cell.
    """

    slot: np.ndarray  # int64[2 * n_slots]: key and list; a power of two
    start: np.ndarray  # int64[n_lists]
    size: np.ndarray  # int32[n_lists]
    room: np.ndarray  # int32[n_lists]
    item: np.ndarray  # int32[]
    free: np.ndarray  # int32[N_CLASSES]
    is_grid: np.ndarray  # uint8[n_owners]; owners beyond are grids
    frame: np.ndarray  # float64[6]: low, high, columns per half unit of x, then of y
    shape: np.ndarray  # int64[SHAPE_FIELDS]
    head: np.ndarray  # int64[HEAD_FIELDS]
