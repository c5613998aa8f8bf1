"""Clauses that come after the grid was built: chains of small blocks by owner and cell of a coarser grid."""

from __future__ import annotations

import numpy as np

from nearcast.boolean.frequency_grid.kernels.keys import list_key, narrow, owner_of, sieve_bit
from nearcast.boolean.frequency_grid.kernels.levels import cells_of, first_column, first_row, last_column, last_row
from nearcast.boolean.frequency_grid.layout import (
    BLOCK_HEADER,
    BLOCK_ROOM,
    BLOCK_SIZE,
    CELL_BITS,
    FREE_BLOCK,
    HAS_OTHERS,
    LATE_COARSER,
    LEVEL_MASK,
    MAX_LEVEL,
    N_BLOCKS,
    N_KEYS,
    N_LATE,
)
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.hashing import FREE, find, home, insert, rehash
from nearcast.kernels.keyword_sets import filter_bit
from nearcast.kernels.simd import prefetch

# A clause over more late cells than this stands in a chain of its owner's that has no cell.
MOST_CELLS = 16
WIDE_CELL = (1 << CELL_BITS) - 1
HAS_WIDE = 64  # beside the level
LATE_LEVEL_MASK = HAS_WIDE - 1
_CLAUSE_FIELD = 5
_SIGNATURE_FIELD = 4
_BLOCK = 32


@inline_kernel
def level_for(door, owner):
    """The level of an owner's late grid: coarser than the one that was built, none if that had none."""
    if 2 * owner >= door.size:
        return 0
    return max(0, np.int64(door[2 * owner] & LEVEL_MASK) - LATE_COARSER)


@inline_kernel
def late_cells(grid_frame, max_level, level, clauses_box, clause):
    """Columns and rows of a clause in a late grid: first column, first row, last column, last row."""
    x0, y0, x1, y1 = clauses_box
    cells = cells_of(grid_frame, 1 << max_level, x0[clause], y0[clause], x1[clause], y1[clause])
    shift = max_level - level
    return first_column(cells) >> shift, first_row(cells) >> shift, last_column(cells) >> shift, last_row(cells) >> shift


@inline_kernel
def may_hold(sieve, key):
    """1 if a key may have been filed, else 0; most that were not are known by their bit."""
    bit = sieve_bit(key, 8 * sieve.size)
    return (np.int64(sieve[bit >> 3]) >> (bit & 7)) & 1


@inline_kernel
def let_through(sieve, key):
    """Remember that a key is filed."""
    bit = sieve_bit(key, 8 * sieve.size)
    sieve[bit >> 3] |= np.uint8(1 << (bit & 7))


@kernel
def signature_of(keyword_start, keyword, owner, clause):
    """Up to three of a clause's other keywords as bits of a filter; bit 0, which every message has, stands for none.

    Beside them HAS_OTHERS, if there are any.
    """
    signature, n_named = 0, 0
    for at in range(keyword_start[clause], keyword_start[clause + 1]):
        if 1 + keyword[at] != owner and n_named < 3:
            signature |= filter_bit(keyword[at]) << (9 * n_named)
            n_named += 1
    return signature | HAS_OTHERS if n_named > 0 else signature


@inline_kernel
def append_entry(block, late_box, slot, at, head, clauses_box, clause, signature):
    """Put a clause into the newest block of a chain, or into a new one. There is a block left."""
    newest = slot[2 * at + 1]
    if newest == 0 or block[newest * BLOCK_SIZE + 1] == BLOCK_ROOM:
        fresh = head[FREE_BLOCK]
        if fresh != 0:
            head[FREE_BLOCK] = block[fresh * BLOCK_SIZE]
        else:
            fresh = head[N_BLOCKS]
            head[N_BLOCKS] += 1
        block[fresh * BLOCK_SIZE], block[fresh * BLOCK_SIZE + 1] = newest, 0
        slot[2 * at + 1] = fresh
        newest = fresh
    n = block[newest * BLOCK_SIZE + 1]
    entry = newest * BLOCK_SIZE + BLOCK_HEADER + n
    x0, y0, x1, y1 = clauses_box
    late_box[entry], late_box[entry + BLOCK_ROOM] = narrow(x0[clause]), narrow(y0[clause])
    late_box[entry + 2 * BLOCK_ROOM], late_box[entry + 3 * BLOCK_ROOM] = narrow(x1[clause]), narrow(y1[clause])
    block[entry + _SIGNATURE_FIELD * BLOCK_ROOM] = signature
    block[entry + _CLAUSE_FIELD * BLOCK_ROOM] = clause
    block[newest * BLOCK_SIZE + 1] = n + 1


@kernel
def insert_clauses(grid, late, clauses, slots, first):
    """File clauses from position `first` of `slots` on; returns where room was lacking, or the end.

    Works in blocks: the slots of all clauses of a block are asked for before the first is filed.
    """
    door, frequency, frame, max_level = grid.door, grid.frequency, grid.frame, grid.head[MAX_LEVEL]
    level, slot, sieve, block, head = late.level, late.slot, late.sieve, late.block, late.head
    late_box = block.view(np.float32)
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    clauses_box = (clauses.x0, clauses.y0, clauses.x1, clauses.y1)
    n_slots, n_room = slot.size // 2, block.size // BLOCK_SIZE
    owners, keys, n_keys = np.empty(_BLOCK, np.int64), np.empty(_BLOCK * MOST_CELLS, np.int64), np.empty(_BLOCK, np.int64)
    for begin in range(first, slots.size, _BLOCK):
        n_block = min(_BLOCK, slots.size - begin)
        for i in range(n_block):
            owner = owner_of(keyword_start, keyword, frequency, slots[begin + i])
            if level[owner] & LATE_LEVEL_MASK == 0:
                level[owner] = 1 + level_for(door, owner)
            own_level = np.int64(level[owner] & LATE_LEVEL_MASK) - 1
            column0, row0, column1, row1 = late_cells(frame, max_level, own_level, clauses_box, slots[begin + i])
            owners[i], n_keys[i] = owner, 0
            if (column1 - column0 + 1) * (row1 - row0 + 1) > MOST_CELLS:
                level[owner] |= HAS_WIDE
                keys[MOST_CELLS * i], n_keys[i] = list_key(owner, WIDE_CELL), 1
                continue
            for column in range(column0, column1 + 1):
                for row in range(row0, row1 + 1):
                    key = list_key(owner, (column << own_level) | row)
                    prefetch(slot, 2 * home(key, n_slots))
                    keys[MOST_CELLS * i + n_keys[i]] = key
                    n_keys[i] += 1
        for i in range(n_block):
            # Every cell may need a new block and a new slot.
            if head[N_BLOCKS] + MOST_CELLS > n_room or 3 * (head[N_KEYS] + MOST_CELLS) > 2 * n_slots:
                return begin + i
            clause = slots[begin + i]
            signature = signature_of(keyword_start, keyword, owners[i], clause)
            for j in range(MOST_CELLS * i, MOST_CELLS * i + n_keys[i]):
                at, is_new = insert(slot, keys[j], home(keys[j], n_slots))
                if is_new:
                    let_through(sieve, keys[j])
                    head[N_KEYS] += 1
                append_entry(block, late_box, slot, at, head, clauses_box, clause, signature)
            head[N_LATE] += 1
    return slots.size


@inline_kernel
def remove_entry(block, slot, at, head, clause):
    """Take a clause out of a chain: the last entry of the newest block takes its place."""
    newest = slot[2 * at + 1]
    own = newest
    place = -1
    while place < 0:
        for i in range(block[own * BLOCK_SIZE + 1]):
            entry = own * BLOCK_SIZE + BLOCK_HEADER + i
            if block[entry + _CLAUSE_FIELD * BLOCK_ROOM] == clause:
                place = entry
        if place < 0:
            own = np.int64(block[own * BLOCK_SIZE])
    last = newest * BLOCK_SIZE + BLOCK_HEADER + block[newest * BLOCK_SIZE + 1] - 1
    for field in range(_CLAUSE_FIELD + 1):
        block[place + field * BLOCK_ROOM] = block[last + field * BLOCK_ROOM]
    block[newest * BLOCK_SIZE + 1] -= np.int32(1)
    if block[newest * BLOCK_SIZE + 1] == 0:
        slot[2 * at + 1] = block[newest * BLOCK_SIZE]
        block[newest * BLOCK_SIZE] = head[FREE_BLOCK]
        head[FREE_BLOCK] = newest


@kernel
def remove_clauses(grid, late, clauses, slots):
    """Take late clauses out of their chains."""
    frequency, frame, max_level = grid.frequency, grid.frame, grid.head[MAX_LEVEL]
    level, slot, block, head = late.level, late.slot, late.block, late.head
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    clauses_box = (clauses.x0, clauses.y0, clauses.x1, clauses.y1)
    for i in range(slots.size):
        clause = slots[i]
        owner = owner_of(keyword_start, keyword, frequency, clause)
        own_level = np.int64(level[owner] & LATE_LEVEL_MASK) - 1
        column0, row0, column1, row1 = late_cells(frame, max_level, own_level, clauses_box, clause)
        is_wide = (column1 - column0 + 1) * (row1 - row0 + 1) > MOST_CELLS
        if is_wide:
            column0, row0, column1, row1 = 0, 0, 0, 0
        for column in range(column0, column1 + 1):
            for row in range(row0, row1 + 1):
                key = list_key(owner, WIDE_CELL if is_wide else (column << own_level) | row)
                remove_entry(block, slot, find(slot, key, home(key, slot.size // 2)), head, clause)
        head[N_LATE] -= 1


@kernel
def refill_slots(old, new, sieve):
    """File what the slots of a table hold in a larger one, and in its sieve."""
    rehash(new, old)
    for at in range(0, old.size, 2):
        if old[at] != FREE:
            let_through(sieve, old[at])
