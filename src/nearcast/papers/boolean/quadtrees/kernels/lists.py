"""File and unfile single clauses: find or make their lists, append and remove entries, grow the table."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.hashing import find_value, home, insert
from nearcast.kernels.pools import FIRST_CAPACITY, append_item, remove_item
from nearcast.kernels.quadtree import cell_code, column_of, cover_box, depth_of_code
from nearcast.papers.boolean.keyword_first.kernels import rarest_list
from nearcast.papers.boolean.quadtrees.layout import (
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
    OWNER_SHIFT,
    ROOT_CODE,
    ROOT_LIST,
)

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


# Fields of what `post_clauses` says it is short of.
WANTED_LISTS, WANTED_SLOTS, WANTED_ENTRIES, WANTED_BOUND = range(4)
WANTED_FIELDS = 4


@inline_kernel
def owner_of_key(key):
    return key >> OWNER_SHIFT


@inline_kernel
def code_of_key(key):
    return key & CODE_MASK


@kernel
def enter_list(lists, number):
    """Make a new list findable: by door or table, by the chain of its owner, and count it in its cell."""
    slot, door, chain, head = lists.slot, lists.door, lists.chain, lists.head
    key = lists.list_key[number]
    owner, code = owner_of_key(key), code_of_key(key)
    lists.list_next[number] = chain[2 * owner + FIRST_LIST]
    chain[2 * owner + FIRST_LIST] = number
    chain[2 * owner + N_LISTS_OF] += 1
    if code == ROOT_CODE:
        door[2 * owner + ROOT_LIST] = number
        return
    depth = depth_of_code(code)
    door[2 * owner + DEPTHS] |= 1 << depth
    head[DEPTHS_OF_ALL] |= 1 << depth
    n_slots = slot.size // 2
    at, _ = insert(slot, key, home(key, n_slots))
    slot[2 * at + 1] = number
    at, is_new = insert(slot, cell_key(code), home(cell_key(code), n_slots))
    slot[2 * at + 1] += 1
    head[N_SLOTS_USED] += 1 + is_new


@kernel
def enter_lists(lists, n_lists):
    """Enter every list into an empty table (after a build)."""
    for number in range(n_lists):
        enter_list(lists, number)


@inline_kernel
def find_list(slot, door, owner, code):
    if code == ROOT_CODE:
        return np.int64(door[2 * owner + ROOT_LIST])
    key = list_key(owner, code)
    return find_value(slot, key, home(key, slot.size // 2), NO_LIST)


@kernel
def wanted_room(lists, owner, cells, n_cells, wanted):
    """Fill `wanted` with the sizes that hold one more clause in these cells."""
    head, pool = lists.head, lists.pool
    n_new, n_entries = 0, pool.n_items[0]
    for at in range(n_cells):
        number = find_list(lists.slot, lists.door, owner, cells[at])
        if number == NO_LIST:
            n_new += 1
            n_entries += FIRST_CAPACITY
        elif pool.size[number] == pool.capacity[number]:
            n_entries += max(FIRST_CAPACITY, 2 * pool.size[number])
    wanted[WANTED_LISTS] = head[N_LISTS] + n_new
    wanted[WANTED_SLOTS] = 3 * (head[N_SLOTS_USED] + 2 * n_new) // 2 + 1
    wanted[WANTED_ENTRIES] = n_entries
    wanted[WANTED_BOUND] = head[N_BOUND] + n_cells


@kernel
def has_room(lists, wanted):
    return (
        wanted[WANTED_LISTS] <= lists.list_key.size
        and wanted[WANTED_SLOTS] <= lists.slot.size // 2
        and wanted[WANTED_ENTRIES] <= lists.pool.item.size
        and wanted[WANTED_BOUND] <= lists.bound.size
    )


@kernel
def append_entry(lists, clauses, number, clause, signature):
    """Append a clause to a list; box and signature follow where the pool moves the list."""
    pool, box, signatures = lists.pool, lists.box, lists.signature
    before, size = pool.start[number], pool.size[number]
    append_item(pool, number, clause)
    start = pool.start[number]
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
def post_clauses(lists, clauses, places, update_cost, slots, first, room, wanted):
    """File clauses from position `first` of `slots` on; returns where room was short (see `wanted`), or the end."""
    max_depth = np.int64(places.facts[MAX_DEPTH])
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    head, pool, cells = lists.head, lists.pool, room[2]
    for i in range(first, slots.size):
        clause = slots[i]
        owner = rarest_list(keyword_start, keyword, lists.frequency, clause)
        n_cells = 1
        cells[0] = ROOT_CODE
        if lists.is_tree[owner]:
            n_cells = cover_clause(clauses, places, lists.weight[owner], update_cost, max_depth, clause, owner, room)
        wanted_room(lists, owner, cells, n_cells, wanted)
        if not has_room(lists, wanted):
            return i
        signature = signature_of(keyword, keyword_start[clause], keyword_start[clause + 1], owner)
        lists.bound_start[clause] = head[N_BOUND]
        lists.n_bound[clause] = n_cells
        for at in range(n_cells):
            number = find_list(lists.slot, lists.door, owner, cells[at])
            if number == NO_LIST:
                number = head[N_LISTS]
                head[N_LISTS] += 1
                lists.list_key[number] = list_key(owner, cells[at])
                pool.start[number], pool.size[number], pool.capacity[number] = 0, 0, 0
                enter_list(lists, number)
            append_entry(lists, clauses, number, clause, signature)
            lists.bound[head[N_BOUND]] = number
            head[N_BOUND] += 1
        head[N_FILED] += 1
    return slots.size


@kernel
def withdraw_clauses(lists, slots):
    """Take clauses out of the lists they are bound to."""
    pool, box, signatures = lists.pool, lists.box, lists.signature
    start, size, item = pool.start, pool.size, pool.item
    for i in range(slots.size):
        clause = slots[i]
        for at in range(lists.bound_start[clause], lists.bound_start[clause] + lists.n_bound[clause]):
            number = lists.bound[at]
            position = 0
            while item[start[number] + position] != clause:
                position += 1
            remove_item(pool, number, position)
            entry, last = start[number] + position, start[number] + size[number]
            signatures[entry] = signatures[last]
            for side in range(4):
                box[4 * entry + side] = box[4 * last + side]
        if lists.n_bound[clause] > 0:
            lists.head[N_FILED] -= 1
        lists.n_bound[clause] = 0
