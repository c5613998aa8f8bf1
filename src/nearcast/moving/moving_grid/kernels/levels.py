"""Make the grid of an anchor finer or coarser: remove everything from its lists and file it again."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import kernel
from nearcast.kernels.hashing import find, home, remove
from nearcast.moving.moving_grid.kernels.clauses import file_clause
from nearcast.moving.moving_grid.kernels.keys import anchor_of_key, level_for, list_key
from nearcast.moving.moving_grid.kernels.lists import entry_position, free_blocks, has_slots
from nearcast.moving.moving_grid.kernels.messages import file_message
from nearcast.moving.moving_grid.layout import (
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
    RANGE_CLASS,
    ROUTED,
    SIZE_MASK,
    SLACK,
)


@kernel
def has_capacity(grid, anchor):
    """Whether all entries of an anchor can be filed again without checks of capacity."""
    head, count = grid.head, grid.directory[2 * anchor + 1] >> COUNT_SHIFT
    n_blocks = head[N_BLOCKS] + BLOCKS_OF_ENTRY * (count + 1)
    return has_slots(grid.slot, head, count + 1) and n_blocks * BLOCK + SLACK <= grid.pool.size


@kernel
def empty_list(grid, bits, field, value, out, n_out):
    """Copy the clauses or messages of a list and free its blocks."""
    pool = grid.pool
    for entry in range(value & SIZE_MASK):
        out[n_out] = pool[entry_position(value, bits, entry) + field]
        n_out += 1
    if value != 0:
        free_blocks(pool, grid.free, value)
    return n_out


@kernel
def empty_slot(grid, bits, field, at, out, n_out):
    """Copy the clauses or messages of the list of a slot, and free the slot.

    Keys of messages stay in the table without a list: `collect_dead` must find every other key at or behind its place.
    """
    slot = grid.slot
    n_out = empty_list(grid, bits, field, slot[2 * at + 1], out, n_out)
    slot[2 * at + 1] = 0
    if field == CLAUSES:
        remove(slot, at)
        grid.head[N_KEYS] -= 1
    return n_out


@kernel
def empty_anchor(grid, bits, field, anchor, out):
    """Remove everything from the lists of an anchor and write it to `out`; returns how many."""
    directory, slot = grid.directory, grid.slot
    n_slots = slot.size // 2
    n_out = empty_list(grid, bits, field, directory[2 * anchor], out, 0)
    level = directory[2 * anchor + 1] & LEVEL_MASK
    classes = (directory[2 * anchor + 1] >> LEVEL_BITS) & CLASSES_MASK
    if np.int64(1) << (2 * level) > n_slots:
        at = 0
        while at < n_slots:
            is_of_anchor = slot[2 * at] != 0 and anchor_of_key(slot[2 * at]) == anchor
            if is_of_anchor:
                n_out = empty_slot(grid, bits, field, at, out, n_out)
            # Another key may have moved up to this slot.
            at += 0 if is_of_anchor and field == CLAUSES else 1
    else:
        for fit in range(1, level + 1):
            # Points have the finest class, which is not in `classes`.
            if fit != level and (classes >> fit) & 1 == 0:
                continue
            for kind in (fit, fit + RANGE_CLASS):
                for cell in range(np.int64(1) << (2 * fit)):
                    column, row = (
                        (cell >> fit) << (FINE - fit),
                        (cell & ((1 << fit) - 1)) << (FINE - fit),
                    )
                    key = list_key(anchor, kind, fit, column, row)
                    at = find(slot, key, home(key, n_slots))
                    if slot[2 * at] == key:
                        n_out = empty_slot(grid, bits, field, at, out, n_out)
    grid.head[N_ENTRIES] -= n_out
    directory[2 * anchor] = 0
    directory[2 * anchor + 1] &= ROUTED
    return n_out


@kernel
def relevel_clauses(grid, frame, clauses, record, to_relevel, first):
    """Give the anchors in `to_relevel` from `first` on their new level; returns where capacity ran out, or the end."""
    directory, limit = grid.directory, grid.limit
    x0, y0, x1, y1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    for i in range(first, to_relevel[0] + 1):
        anchor = to_relevel[i]
        if not has_capacity(grid, anchor):
            return i
        out = np.empty(directory[2 * anchor + 1] >> COUNT_SHIFT, np.int32)
        n_out = empty_anchor(grid, CLAUSE_BITS, CLAUSES, anchor, out)
        directory[2 * anchor + 1] |= level_for(limit, n_out)
        for j in range(n_out):
            clause = out[j]
            file_clause(grid, frame, x0[clause], y0[clause], x1[clause], y1[clause], record, clause)
    return to_relevel[0] + 1


@kernel
def relevel_messages(grid, frame, live, to_relevel, first):
    """As `relevel_clauses`, for messages; the dead are dropped."""
    directory, limit = grid.directory, grid.limit
    x0, y0, x1, y1, is_alive = live.x0, live.y0, live.x1, live.y1, live.is_alive
    for i in range(first, to_relevel[0] + 1):
        anchor = to_relevel[i]
        if not has_capacity(grid, anchor):
            return i
        out = np.empty(directory[2 * anchor + 1] >> COUNT_SHIFT, np.int32)
        n_out = empty_anchor(grid, MESSAGE_BITS, MESSAGES, anchor, out)
        # The count includes the dead: as many messages follow, and an anchor near a limit should not change in every round.
        directory[2 * anchor + 1] |= level_for(limit, n_out)
        for j in range(n_out):
            m = out[j]
            if is_alive[m]:
                file_message(grid, frame, anchor, m, x0[m], y0[m], x1[m], y1[m])
    return to_relevel[0] + 1
