"""Make the grid of an owner finer or coarser: everything is taken out of its lists and filed anew."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import kernel
from nearcast.kernels.hashing import find, home, remove
from nearcast.moving.moving_grid.kernels.clauses import file_clause
from nearcast.moving.moving_grid.kernels.keys import level_for, list_key, owner_of_key
from nearcast.moving.moving_grid.kernels.lists import entry_place, give_back, has_slots
from nearcast.moving.moving_grid.kernels.messages import file_message
from nearcast.moving.moving_grid.layout import (
    AREA_CLASS,
    BLOCK,
    BLOCKS_OF_ENTRY,
    CLASSES_MASK,
    CLAUSE_BITS,
    CLAUSES,
    COUNT_SHIFT,
    FINE,
    LEVEL_BITS,
    LEVEL_MASK,
    MESSAGE_BITS,
    MESSAGES,
    N_BLOCKS,
    N_ENTRIES,
    N_KEYS,
    ROUTED,
    SIZE_MASK,
    SLACK,
)


@kernel
def has_room(side, owner):
    """Whether everything of an owner can be filed anew without a look at the room."""
    head, count = side.head, side.door[2 * owner + 1] >> COUNT_SHIFT
    n_blocks = head[N_BLOCKS] + BLOCKS_OF_ENTRY * (count + 1)
    return has_slots(side.slot, head, count + 1) and n_blocks * BLOCK + SLACK <= side.pool.size


@kernel
def empty_list(side, bits, field, value, out, n_out):
    """Copy what a list names and free its blocks."""
    pool = side.pool
    for entry in range(value & SIZE_MASK):
        out[n_out] = pool[entry_place(value, bits, entry) + field]
        n_out += 1
    if value != 0:
        give_back(pool, side.free, value)
    return n_out


@kernel
def empty_slot(side, bits, field, at, out, n_out):
    """Copy what the list of a slot names and free the slot.

    Keys of messages stay in the table without a list: the sweep must find every other key at or behind where it is.
    """
    slot = side.slot
    n_out = empty_list(side, bits, field, slot[2 * at + 1], out, n_out)
    slot[2 * at + 1] = 0
    if field == CLAUSES:
        remove(slot, at)
        side.head[N_KEYS] -= 1
    return n_out


@kernel
def empty_owner(side, bits, field, owner, out):
    """Take everything of an owner out of its lists: what they named is in `out` afterwards. Returns how many."""
    door, slot = side.door, side.slot
    n_slots = slot.size // 2
    n_out = empty_list(side, bits, field, door[2 * owner], out, 0)
    level = door[2 * owner + 1] & LEVEL_MASK
    classes = (door[2 * owner + 1] >> LEVEL_BITS) & CLASSES_MASK
    if np.int64(1) << (2 * level) > n_slots:
        at = 0
        while at < n_slots:
            is_own = slot[2 * at] != 0 and owner_of_key(slot[2 * at]) == owner
            if is_own:
                n_out = empty_slot(side, bits, field, at, out, n_out)
            # Another key may have moved up to this slot.
            at += 0 if is_own and field == CLAUSES else 1
    else:
        for own in range(1, level + 1):
            # Points are of the finest class, whatever the classes say.
            if own != level and (classes >> own) & 1 == 0:
                continue
            for kind in (own, own + AREA_CLASS):
                for cell in range(np.int64(1) << (2 * own)):
                    column, row = (cell >> own) << (FINE - own), (cell & ((1 << own) - 1)) << (FINE - own)
                    key = list_key(owner, kind, own, column, row)
                    at = find(slot, key, home(key, n_slots))
                    if slot[2 * at] == key:
                        n_out = empty_slot(side, bits, field, at, out, n_out)
    side.head[N_ENTRIES] -= n_out
    door[2 * owner] = 0
    door[2 * owner + 1] &= ROUTED
    return n_out


@kernel
def level_clauses(side, bounds, clauses, record, due, first):
    """Give the owners in `due`, from place `first` on, the level they should have; returns where room was short, or the end."""
    door, limit = side.door, side.limit
    x0, y0, x1, y1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    for i in range(first, due[0] + 1):
        owner = due[i]
        if not has_room(side, owner):
            return i
        out = np.empty(door[2 * owner + 1] >> COUNT_SHIFT, np.int32)
        n_out = empty_owner(side, CLAUSE_BITS, CLAUSES, owner, out)
        door[2 * owner + 1] |= level_for(limit, n_out)
        for j in range(n_out):
            clause = out[j]
            file_clause(side, bounds, x0[clause], y0[clause], x1[clause], y1[clause], record, clause)
    return due[0] + 1


@kernel
def level_messages(side, bounds, live, due, first):
    """The same for messages; the dead are left out."""
    door, limit = side.door, side.limit
    x0, y0, x1, y1, is_alive = live.x0, live.y0, live.x1, live.y1, live.is_alive
    for i in range(first, due[0] + 1):
        owner = due[i]
        if not has_room(side, owner):
            return i
        out = np.empty(door[2 * owner + 1] >> COUNT_SHIFT, np.int32)
        n_out = empty_owner(side, MESSAGE_BITS, MESSAGES, owner, out)
        # With the dead: they come again, and an owner near a limit should not change with every sweep.
        door[2 * owner + 1] |= level_for(limit, n_out)
        for j in range(n_out):
            m = out[j]
            if is_alive[m]:
                file_message(side, bounds, owner, m, x0[m], y0[m], x1[m], y1[m])
    return due[0] + 1
