"""Bind clauses to their cheapest cells, and file and remove single clauses in the lists of these cells."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.hashing import find_value, home, insert
from nearcast.kernels.keyword_sets import rarest_anchor
from nearcast.kernels.pools import FIRST_CAPACITY, append_item, remove_item
from nearcast.kernels.quadtree import cell_code, column_of, cover_box, depth_of_code
from nearcast.papers.boolean.quadtrees.layout import (
    ANCHOR_SHIFT,
    CODE_MASK,
    DEPTHS,
    DEPTHS_OF_ALL,
    FIRST_LIST,
    MAX_DEPTH,
    N_BOUND,
    N_FILED,
    N_LISTS,
    N_LISTS_OF,
    N_SLOTS_USED,
    NO_LIST,
    ROOT_CODE,
    ROOT_LIST,
)

_SIGNATURE_BITS = 62


@inline_kernel
def keyword_bit(keyword):
    """The bit of a keyword in a signature; several keywords share one."""
    return np.int64(1) << (((np.int64(keyword) * 2654435761) >> 16) % _SIGNATURE_BITS)


@inline_kernel
def signature_of(keyword, start, stop, anchor):
    """The bits of the keywords other than the anchor."""
    bits = np.int64(0)
    for at in range(start, stop):
        if 1 + keyword[at] != anchor:
            bits |= keyword_bit(keyword[at])
    return bits


@inline_kernel
def list_key(anchor, code):
    return (np.int64(anchor) << ANCHOR_SHIFT) | np.int64(code)


@inline_kernel
def cell_key(code):
    """The key under which a cell itself is counted: no list has a negative one."""
    return np.int64(-2) - np.int64(code)


@inline_kernel
def code_of_cell_key(key):
    return np.int64(-2) - key


@kernel
def fill_point_cells(frame, max_depth, x, y, point_cell):
    """Fill `point_cell` with the cell of the greatest depth of each point, without the leading one."""
    n_columns = 1 << max_depth
    for i in range(x.size):
        column = column_of(x[i], frame[0], frame[1], frame[2], n_columns)
        row = column_of(y[i], frame[3], frame[4], frame[5], n_columns)
        point_cell[i] = cell_code(max_depth, column, row) - (1 << (2 * max_depth))


@kernel
def cover_clause(clauses, locations, weight, update_cost, max_depth, clause, anchor, scratch):
    """Write the cells of one clause into the scratch; returns how many."""
    frame = locations.frame
    n_columns = 1 << max_depth
    box = (
        column_of(clauses.x0[clause], frame[0], frame[1], frame[2], n_columns),
        column_of(clauses.y0[clause], frame[3], frame[4], frame[5], n_columns),
        column_of(clauses.x1[clause], frame[0], frame[1], frame[2], n_columns),
        column_of(clauses.y1[clause], frame[3], frame[4], frame[5], n_columns),
    )
    first, last = np.int64(0), np.int64(0)
    if anchor + 1 < locations.anchor_start.size:
        first, last = locations.anchor_start[anchor], locations.anchor_start[anchor + 1]
    message_cells = (locations.cell, locations.anchor_cell, first, last)
    return cover_box(box, (weight, update_cost, max_depth), message_cells, scratch[0], scratch[1], scratch[2])


@kernel
def bind_clauses(clauses, locations, slots, anchors, cost, first, n_keys, keys, counts, scratch):
    """Append the list keys of the clauses from position `first` on; returns where `keys` was full, or the end, and how many."""
    weight, is_tree, update_cost = cost
    max_depth = np.int64(locations.facts[MAX_DEPTH])
    cells = scratch[2]
    for i in range(first, slots.size):
        anchor = anchors[i]
        n_cells = 1
        cells[0] = 1
        if is_tree[anchor]:
            n_cells = cover_clause(clauses, locations, weight[anchor], update_cost, max_depth, slots[i], anchor, scratch)
        if n_keys + n_cells > keys.size:
            return i, n_keys
        for at in range(n_cells):
            keys[n_keys + at] = list_key(anchor, cells[at])
        n_keys += n_cells
        counts[i] = n_cells
    return slots.size, n_keys


@kernel
def fill_signatures(keyword_start, keyword, item, anchor, signature):
    for entry in range(item.size):
        start, stop = keyword_start[item[entry]], keyword_start[item[entry] + 1]
        signature[entry] = signature_of(keyword, start, stop, anchor[entry])


# Sizes that `post_clauses` needs when capacity ran out.
NEEDED_LISTS, NEEDED_SLOTS, NEEDED_ENTRIES, NEEDED_BOUND = range(4)
NEEDED_FIELDS = 4


@inline_kernel
def anchor_of_key(key):
    return key >> ANCHOR_SHIFT


@inline_kernel
def code_of_key(key):
    return key & CODE_MASK


@kernel
def enter_list(lists, list_id):
    """Enter a new list in the directory or the table and in the chain of its anchor, and count it in its cell."""
    slot, directory, chain, head = lists.slot, lists.directory, lists.chain, lists.head
    key = lists.list_key[list_id]
    anchor, code = anchor_of_key(key), code_of_key(key)
    lists.list_next[list_id] = chain[2 * anchor + FIRST_LIST]
    chain[2 * anchor + FIRST_LIST] = list_id
    chain[2 * anchor + N_LISTS_OF] += 1
    if code == ROOT_CODE:
        directory[2 * anchor + ROOT_LIST] = list_id
        return
    depth = depth_of_code(code)
    directory[2 * anchor + DEPTHS] |= 1 << depth
    head[DEPTHS_OF_ALL] |= 1 << depth
    n_slots = slot.size // 2
    at, _ = insert(slot, key, home(key, n_slots))
    slot[2 * at + 1] = list_id
    at, is_new = insert(slot, cell_key(code), home(cell_key(code), n_slots))
    slot[2 * at + 1] += 1
    head[N_SLOTS_USED] += 1 + is_new


@kernel
def enter_lists(lists, n_lists):
    """Enter every list into an empty table (after a build)."""
    for list_id in range(n_lists):
        enter_list(lists, list_id)


@inline_kernel
def find_list(slot, directory, anchor, code):
    if code == ROOT_CODE:
        return np.int64(directory[2 * anchor + ROOT_LIST])
    key = list_key(anchor, code)
    return find_value(slot, key, home(key, slot.size // 2), NO_LIST)


@kernel
def needed_sizes(lists, anchor, cells, n_cells, needed):
    """Fill `needed` with the sizes for one more clause in these cells."""
    head, pool = lists.head, lists.pool
    n_new, n_entries = 0, pool.n_items[0]
    for at in range(n_cells):
        list_id = find_list(lists.slot, lists.directory, anchor, cells[at])
        if list_id == NO_LIST:
            n_new += 1
            n_entries += FIRST_CAPACITY
        elif pool.size[list_id] == pool.capacity[list_id]:
            n_entries += max(FIRST_CAPACITY, 2 * pool.size[list_id])
    needed[NEEDED_LISTS] = head[N_LISTS] + n_new
    needed[NEEDED_SLOTS] = 3 * (head[N_SLOTS_USED] + 2 * n_new) // 2 + 1
    needed[NEEDED_ENTRIES] = n_entries
    needed[NEEDED_BOUND] = head[N_BOUND] + n_cells


@kernel
def has_capacity(lists, needed):
    return (
        needed[NEEDED_LISTS] <= lists.list_key.size
        and needed[NEEDED_SLOTS] <= lists.slot.size // 2
        and needed[NEEDED_ENTRIES] <= lists.pool.item.size
        and needed[NEEDED_BOUND] <= lists.bound.size
    )


@kernel
def append_entry(lists, clauses, list_id, clause, signature):
    """Append a clause to a list; box and signature follow where the pool moves the list."""
    pool, box, signatures = lists.pool, lists.box, lists.signature
    before, size = pool.start[list_id], pool.size[list_id]
    append_item(pool, list_id, clause)
    start = pool.start[list_id]
    if start != before:
        for i in range(size):
            signatures[start + i] = signatures[before + i]
        for i in range(4 * size):
            box[4 * start + i] = box[4 * before + i]
    entry = start + size
    signatures[entry] = signature
    box[4 * entry], box[4 * entry + 1] = clauses.x0[clause], clauses.y0[clause]
    box[4 * entry + 2], box[4 * entry + 3] = clauses.x1[clause], clauses.y1[clause]


@kernel
def post_clauses(lists, clauses, locations, update_cost, slots, first, scratch, needed):
    """File clauses from position `first` on; returns the position where capacity ran out (see `needed`), or the end."""
    max_depth = np.int64(locations.facts[MAX_DEPTH])
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    head, pool, cells = lists.head, lists.pool, scratch[2]
    for i in range(first, slots.size):
        clause = slots[i]
        anchor = rarest_anchor(keyword_start, keyword, lists.frequency, clause)
        n_cells = 1
        cells[0] = ROOT_CODE
        if lists.is_tree[anchor]:
            n_cells = cover_clause(clauses, locations, lists.weight[anchor], update_cost, max_depth, clause, anchor, scratch)
        needed_sizes(lists, anchor, cells, n_cells, needed)
        if not has_capacity(lists, needed):
            return i
        signature = signature_of(keyword, keyword_start[clause], keyword_start[clause + 1], anchor)
        lists.bound_start[clause] = head[N_BOUND]
        lists.n_bound[clause] = n_cells
        for at in range(n_cells):
            list_id = find_list(lists.slot, lists.directory, anchor, cells[at])
            if list_id == NO_LIST:
                list_id = head[N_LISTS]
                head[N_LISTS] += 1
                lists.list_key[list_id] = list_key(anchor, cells[at])
                pool.start[list_id], pool.size[list_id], pool.capacity[list_id] = 0, 0, 0
                enter_list(lists, list_id)
            append_entry(lists, clauses, list_id, clause, signature)
            lists.bound[head[N_BOUND]] = list_id
            head[N_BOUND] += 1
        head[N_FILED] += 1
    return slots.size


@kernel
def remove_clauses(lists, slots):
    """Remove clauses from the lists they are bound to."""
    pool, box, signatures = lists.pool, lists.box, lists.signature
    start, size, item = pool.start, pool.size, pool.item
    for i in range(slots.size):
        clause = slots[i]
        for at in range(lists.bound_start[clause], lists.bound_start[clause] + lists.n_bound[clause]):
            list_id = lists.bound[at]
            position = 0
            while item[start[list_id] + position] != clause:
                position += 1
            remove_item(pool, list_id, position)
            entry, last = start[list_id] + position, start[list_id] + size[list_id]
            signatures[entry] = signatures[last]
            for coordinate in range(4):
                box[4 * entry + coordinate] = box[4 * last + coordinate]
        if lists.n_bound[clause] > 0:
            lists.head[N_FILED] -= 1
        lists.n_bound[clause] = 0
