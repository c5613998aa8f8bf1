"""File clauses or messages in the lists of the cells that they reach, and take them out again."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.hashing import find_value, home, insert
from nearcast.kernels.pools import chunk_capacity, give_back, take_chunk
from nearcast.kernels.quadtree import column_of
from nearcast.papers.moving.grid_lists.layout import (
    IS_SPACE_FIRST,
    MOST_CELLS,
    N_ENTRIES,
    N_FILED,
    N_ITEMS,
    N_LISTS,
    N_SLOTS_USED,
    NO_LIST,
    SIDE,
    WANTED_ITEMS,
    WANTED_LISTS,
    WANTED_SLOTS,
)

_OWNER_BITS = 32


@inline_kernel
def list_key(shape, owner, cell):
    """The key of a list, never 0: the lists of a cell, or of a keyword, have neighbouring keys."""
    if shape[IS_SPACE_FIRST]:
        return ((np.int64(cell) << np.int64(_OWNER_BITS)) | np.int64(owner)) + 1
    return np.int64(owner) * (shape[SIDE] * shape[SIDE] + 1) + np.int64(cell) + 1


@inline_kernel
def find_list(slot, shape, owner, cell):
    """The list of an owner and a cell, or NO_LIST."""
    key = list_key(shape, owner, cell)
    return find_value(slot, key, home(key, slot.size // 2), NO_LIST)


@inline_kernel
def cells_of(frame, side, x0, y0, x1, y1):
    """The first and last column, the first and last row that a box reaches; one monotone function for all boxes."""
    return (
        column_of(x0, frame[0], frame[1], frame[2], side),
        column_of(x1, frame[0], frame[1], frame[2], side),
        column_of(y0, frame[3], frame[4], frame[5], side),
        column_of(y1, frame[3], frame[4], frame[5], side),
    )


@inline_kernel
def is_grid_owner(is_grid, owner):
    return owner >= is_grid.size or is_grid[owner] != 0


@inline_kernel
def grown_room(size):
    """The room of a full list that takes one more."""
    return chunk_capacity(size + 1 + size // 4)


@inline_kernel
def wanted_items(slot, size, room, shape, owner, cell):
    """How many elements of `item` one more entry of a list may take, and whether the list is a new one."""
    number = find_list(slot, shape, owner, cell)
    if number == NO_LIST:
        return grown_room(0), 1
    return (grown_room(size[number]) if size[number] == room[number] else 0), 0


@inline_kernel
def append_to(slot, start, size, room, item, free, shape, head, owner, cell, value):
    """Append to a list, which is made if there is none; there is room."""
    key = list_key(shape, owner, cell)
    at, is_new = insert(slot, key, home(key, slot.size // 2))
    if is_new:
        number = head[N_LISTS]
        head[N_LISTS] += 1
        head[N_SLOTS_USED] += 1
        slot[2 * at + 1] = number
        start[number], size[number], room[number] = 0, 0, 0
    number = slot[2 * at + 1]
    n = size[number]
    if n == room[number]:
        wider = grown_room(n)
        moved = take_chunk(free, item, head, N_ITEMS, wider)
        for i in range(n):
            item[moved + i] = item[start[number] + i]
        give_back(free, item, start[number], room[number])
        start[number], room[number] = moved, wider
    item[start[number] + n] = value
    size[number] = n + 1
    head[N_ENTRIES] += 1


@inline_kernel
def remove_from(slot, start, size, item, shape, head, owner, cell, value):
    """Take a value out of a list; the last one moves to its place."""
    number = find_list(slot, shape, owner, cell)
    at = start[number]
    while item[at] != value:
        at += 1
    size[number] -= 1
    item[at] = item[start[number] + size[number]]
    head[N_ENTRIES] -= 1


@kernel
def file_postings(grid, owner, value, x0, y0, x1, y1, first, wanted):
    """File `value[i]` with box i under `owner[i]`, from `first` on; returns where room was short (see `wanted`), or the end."""
    slot, start, size, room, item, free = grid.slot, grid.start, grid.size, grid.room, grid.item, grid.free
    is_grid, frame, shape, head = grid.is_grid, grid.frame, grid.shape, grid.head
    side, most = shape[SIDE], shape[MOST_CELLS]
    for i in range(first, owner.size):
        column0, column1, row0, row1 = cells_of(frame, side, x0[i], y0[i], x1[i], y1[i])
        n_columns, n_cells = column1 - column0 + 1, (column1 - column0 + 1) * (row1 - row0 + 1)
        is_wide = n_cells > most or not is_grid_owner(is_grid, owner[i])
        n_cells = 1 if is_wide else n_cells
        n_new, n_items = 0, head[N_ITEMS]
        for at in range(n_cells):
            cell = side * side if is_wide else (row0 + at // n_columns) * side + column0 + at % n_columns
            more, new = wanted_items(slot, size, room, shape, owner[i], cell)
            n_items += more
            n_new += new
        wanted[WANTED_LISTS] = head[N_LISTS] + n_new
        wanted[WANTED_SLOTS] = 2 * (head[N_SLOTS_USED] + n_new)
        wanted[WANTED_ITEMS] = n_items
        if wanted[WANTED_LISTS] > start.size or wanted[WANTED_SLOTS] > slot.size // 2 or n_items > item.size:
            return i
        for at in range(n_cells):
            cell = side * side if is_wide else (row0 + at // n_columns) * side + column0 + at % n_columns
            append_to(slot, start, size, room, item, free, shape, head, owner[i], cell, value[i])
        head[N_FILED] += 1
    return owner.size


@kernel
def unfile_postings(grid, owner, value, x0, y0, x1, y1):
    """Take out what was filed with the same owners and boxes."""
    slot, start, size, item = grid.slot, grid.start, grid.size, grid.item
    is_grid, frame, shape, head = grid.is_grid, grid.frame, grid.shape, grid.head
    side, most = shape[SIDE], shape[MOST_CELLS]
    for i in range(owner.size):
        column0, column1, row0, row1 = cells_of(frame, side, x0[i], y0[i], x1[i], y1[i])
        n_columns, n_cells = column1 - column0 + 1, (column1 - column0 + 1) * (row1 - row0 + 1)
        is_wide = n_cells > most or not is_grid_owner(is_grid, owner[i])
        for at in range(1 if is_wide else n_cells):
            cell = side * side if is_wide else (row0 + at // n_columns) * side + column0 + at % n_columns
            remove_from(slot, start, size, item, shape, head, owner[i], cell, value[i])
        head[N_FILED] -= 1
