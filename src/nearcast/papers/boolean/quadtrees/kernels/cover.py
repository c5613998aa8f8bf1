"""Bind clauses to cells: columns of a box, signature of its keywords, its cheapest cover."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.quadtree import cell_code, column_of, cover_box
from nearcast.papers.boolean.quadtrees.layout import MAX_DEPTH, OWNER_SHIFT

_SIGNATURE_BITS = 62


@inline_kernel
def keyword_bit(keyword):
    """The bit of a keyword in a signature; several keywords share one."""
    return np.int64(1) << (((np.int64(keyword) * 2654435761) >> 16) % _SIGNATURE_BITS)


@inline_kernel
def signature_of(keyword, start, stop, owner):
    """The bits of the keywords besides the one the clause is posted under."""
    bits = np.int64(0)
    for at in range(start, stop):
        if 1 + keyword[at] != owner:
            bits |= keyword_bit(keyword[at])
    return bits


@inline_kernel
def list_key(owner, code):
    return (np.int64(owner) << OWNER_SHIFT) | np.int64(code)


@inline_kernel
def cell_key(code):
    """The key under which a cell itself is counted: no list has a negative one."""
    return np.int64(-2) - np.int64(code)


@inline_kernel
def code_of_cell_key(key):
    return np.int64(-2) - key


@kernel
def place_points(frame, max_depth, x, y, place):
    """Fill `place` with the cell of the greatest depth of each point, without the leading one."""
    n_columns = 1 << max_depth
    for i in range(x.size):
        column = column_of(x[i], frame[0], frame[1], frame[2], n_columns)
        row = column_of(y[i], frame[3], frame[4], frame[5], n_columns)
        place[i] = cell_code(max_depth, column, row) - (1 << (2 * max_depth))


@kernel
def cover_clause(clauses, places, weight, update_cost, max_depth, clause, owner, room):
    """Write the cells of one clause into the scratch; returns how many."""
    frame = places.frame
    n_columns = 1 << max_depth
    box = (
        column_of(clauses.x0[clause], frame[0], frame[1], frame[2], n_columns),
        column_of(clauses.y0[clause], frame[3], frame[4], frame[5], n_columns),
        column_of(clauses.x1[clause], frame[0], frame[1], frame[2], n_columns),
        column_of(clauses.y1[clause], frame[3], frame[4], frame[5], n_columns),
    )
    first, last = np.int64(0), np.int64(0)
    if owner + 1 < places.own_start.size:
        first, last = places.own_start[owner], places.own_start[owner + 1]
    place = (places.all_place, places.own_place, first, last)
    return cover_box(box, (weight, update_cost, max_depth), place, room[0], room[1], room[2])


@kernel
def bind_clauses(clauses, places, slots, owners, cost, first, n_keys, keys, counts, room):
    """Append the list keys of the clauses from position `first` on; returns where `keys` was full, or the end, and how many."""
    weight, is_tree, update_cost = cost
    max_depth = np.int64(places.facts[MAX_DEPTH])
    cells = room[2]
    for i in range(first, slots.size):
        owner = owners[i]
        n_cells = 1
        cells[0] = 1
        if is_tree[owner]:
            n_cells = cover_clause(clauses, places, weight[owner], update_cost, max_depth, slots[i], owner, room)
        if n_keys + n_cells > keys.size:
            return i, n_keys
        for at in range(n_cells):
            keys[n_keys + at] = list_key(owner, cells[at])
        n_keys += n_cells
        counts[i] = n_cells
    return slots.size, n_keys


@kernel
def fill_signatures(keyword_start, keyword, item, owner, signature):
    for entry in range(item.size):
        start, stop = keyword_start[item[entry]], keyword_start[item[entry] + 1]
        signature[entry] = signature_of(keyword, start, stop, owner[entry])
