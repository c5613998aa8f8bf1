"""Clauses that come after the grid was built: chains of small blocks by anchor and cell of a coarser grid."""

from __future__ import annotations

import numpy as np

from nearcast.boolean.frequency_grid.kernels.keys import bloom_bit, list_key, to_float32
from nearcast.boolean.frequency_grid.kernels.levels import cells_of, first_column, first_row, last_column, last_row
from nearcast.boolean.frequency_grid.layout import (
    BLOCK_CAPACITY,
    BLOCK_HEADER,
    BLOCK_SIZE,
    CELL_BITS,
    DELTA_COARSER,
    FREE_BLOCK,
    HAS_OTHERS,
    LEVEL_MASK,
    MAX_LEVEL,
    N_BLOCKS,
    N_DELTA,
    N_KEYS,
)
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.hashing import FREE, find, home, insert, rehash
from nearcast.kernels.keyword_sets import filter_bit, rarest_anchor
from nearcast.kernels.simd import prefetch

# A clause over more cells of the delta than this is in the chain of its anchor that has no cell.
MOST_CELLS = 16
WIDE_CELL = (1 << CELL_BITS) - 1
HAS_WIDE = 64  # a bit next to the level
DELTA_LEVEL_MASK = HAS_WIDE - 1
_CLAUSE_FIELD = 5
_SIGNATURE_FIELD = 4
_BLOCK = 32


@inline_kernel
def level_for(directory, anchor):
    """The level of an anchor's grid in the delta: coarser than the one that was built; 0 if that is a plain list."""
    if 2 * anchor >= directory.size:
        return 0
    return max(0, np.int64(directory[2 * anchor] & LEVEL_MASK) - DELTA_COARSER)


@inline_kernel
def delta_cells(grid_frame, max_level, level, clauses_box, clause):
    """First column, first row, last column and last row of a clause in a grid of the delta."""
    x0, y0, x1, y1 = clauses_box
    cells = cells_of(grid_frame, 1 << max_level, x0[clause], y0[clause], x1[clause], y1[clause])
    shift = max_level - level
    return first_column(cells) >> shift, first_row(cells) >> shift, last_column(cells) >> shift, last_row(cells) >> shift


@inline_kernel
def may_contain(bloom, key):
    """1 if a key may have been filed; 0 if it was not: most such keys are recognized by their bit."""
    bit = bloom_bit(key, 8 * bloom.size)
    return (np.int64(bloom[bit >> 3]) >> (bit & 7)) & 1


@inline_kernel
def bloom_add(bloom, key):
    """Record that a key is filed."""
    bit = bloom_bit(key, 8 * bloom.size)
    bloom[bit >> 3] |= np.uint8(1 << (bit & 7))


@kernel
def signature_of(keyword_start, keyword, anchor, clause):
    """Up to three keywords of a clause other than the anchor, as bits of a filter; bit 0, which every message has, means none.

    HAS_OTHERS is added if there are any.
    """
    signature, n_named = 0, 0
    for at in range(keyword_start[clause], keyword_start[clause + 1]):
        if 1 + keyword[at] != anchor and n_named < 3:
            signature |= filter_bit(keyword[at]) << (9 * n_named)
            n_named += 1
    return signature | HAS_OTHERS if n_named > 0 else signature


@inline_kernel
def append_entry(block, delta_box, slot, at, head, clauses_box, clause, signature):
    """Add a clause to the newest block of a chain, or to a new one. A block is free."""
    newest = slot[2 * at + 1]
    if newest == 0 or block[newest * BLOCK_SIZE + 1] == BLOCK_CAPACITY:
        added = head[FREE_BLOCK]
        if added != 0:
            head[FREE_BLOCK] = block[added * BLOCK_SIZE]
        else:
            added = head[N_BLOCKS]
            head[N_BLOCKS] += 1
        block[added * BLOCK_SIZE], block[added * BLOCK_SIZE + 1] = newest, 0
        slot[2 * at + 1] = added
        newest = added
    n = block[newest * BLOCK_SIZE + 1]
    entry = newest * BLOCK_SIZE + BLOCK_HEADER + n
    x0, y0, x1, y1 = clauses_box
    delta_box[entry], delta_box[entry + BLOCK_CAPACITY] = to_float32(x0[clause]), to_float32(y0[clause])
    delta_box[entry + 2 * BLOCK_CAPACITY], delta_box[entry + 3 * BLOCK_CAPACITY] = (
        to_float32(x1[clause]),
        to_float32(y1[clause]),
    )
    block[entry + _SIGNATURE_FIELD * BLOCK_CAPACITY] = signature
    block[entry + _CLAUSE_FIELD * BLOCK_CAPACITY] = clause
    block[newest * BLOCK_SIZE + 1] = n + 1


@kernel
def insert_clauses(grid, delta, clauses, slots, first):
    """File clauses from position `first` of `slots` on; returns the position where capacity ran out, or the end.

    Works in blocks: hash slots of all clauses of a block are prefetched before the first is filed.
    """
    directory, frequency, frame, max_level = grid.directory, grid.frequency, grid.frame, grid.head[MAX_LEVEL]
    level, slot, bloom, block, head = delta.level, delta.slot, delta.bloom, delta.block, delta.head
    delta_box = block.view(np.float32)
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    clauses_box = (clauses.x0, clauses.y0, clauses.x1, clauses.y1)
    n_slots, n_capacity = slot.size // 2, block.size // BLOCK_SIZE
    anchors, keys, n_keys = np.empty(_BLOCK, np.int64), np.empty(_BLOCK * MOST_CELLS, np.int64), np.empty(_BLOCK, np.int64)
    for begin in range(first, slots.size, _BLOCK):
        n_block = min(_BLOCK, slots.size - begin)
        for i in range(n_block):
            anchor = rarest_anchor(keyword_start, keyword, frequency, slots[begin + i])
            if level[anchor] & DELTA_LEVEL_MASK == 0:
                level[anchor] = 1 + level_for(directory, anchor)
            anchor_level = np.int64(level[anchor] & DELTA_LEVEL_MASK) - 1
            column0, row0, column1, row1 = delta_cells(frame, max_level, anchor_level, clauses_box, slots[begin + i])
            anchors[i], n_keys[i] = anchor, 0
            if (column1 - column0 + 1) * (row1 - row0 + 1) > MOST_CELLS:
                level[anchor] |= HAS_WIDE
                keys[MOST_CELLS * i], n_keys[i] = list_key(anchor, WIDE_CELL), 1
                continue
            for column in range(column0, column1 + 1):
                for row in range(row0, row1 + 1):
                    key = list_key(anchor, (column << anchor_level) | row)
                    prefetch(slot, 2 * home(key, n_slots))
                    keys[MOST_CELLS * i + n_keys[i]] = key
                    n_keys[i] += 1
        for i in range(n_block):
            # Every cell may need a new block and a new slot.
            if head[N_BLOCKS] + MOST_CELLS > n_capacity or 3 * (head[N_KEYS] + MOST_CELLS) > 2 * n_slots:
                return begin + i
            clause = slots[begin + i]
            signature = signature_of(keyword_start, keyword, anchors[i], clause)
            for j in range(MOST_CELLS * i, MOST_CELLS * i + n_keys[i]):
                at, is_new = insert(slot, keys[j], home(keys[j], n_slots))
                if is_new:
                    bloom_add(bloom, keys[j])
                    head[N_KEYS] += 1
                append_entry(block, delta_box, slot, at, head, clauses_box, clause, signature)
            head[N_DELTA] += 1
    return slots.size


@inline_kernel
def remove_entry(block, slot, at, head, clause):
    """Remove a clause from a chain: the last entry of the newest block replaces it."""
    newest = slot[2 * at + 1]
    current = newest
    position = -1
    while position < 0:
        for i in range(block[current * BLOCK_SIZE + 1]):
            entry = current * BLOCK_SIZE + BLOCK_HEADER + i
            if block[entry + _CLAUSE_FIELD * BLOCK_CAPACITY] == clause:
                position = entry
        if position < 0:
            current = np.int64(block[current * BLOCK_SIZE])
    last = newest * BLOCK_SIZE + BLOCK_HEADER + block[newest * BLOCK_SIZE + 1] - 1
    for field in range(_CLAUSE_FIELD + 1):
        block[position + field * BLOCK_CAPACITY] = block[last + field * BLOCK_CAPACITY]
    block[newest * BLOCK_SIZE + 1] -= np.int32(1)
    if block[newest * BLOCK_SIZE + 1] == 0:
        slot[2 * at + 1] = block[newest * BLOCK_SIZE]
        block[newest * BLOCK_SIZE] = head[FREE_BLOCK]
        head[FREE_BLOCK] = newest


@kernel
def remove_clauses(grid, delta, clauses, slots):
    """Remove clauses from their chains."""
    frequency, frame, max_level = grid.frequency, grid.frame, grid.head[MAX_LEVEL]
    level, slot, block, head = delta.level, delta.slot, delta.block, delta.head
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    clauses_box = (clauses.x0, clauses.y0, clauses.x1, clauses.y1)
    for i in range(slots.size):
        clause = slots[i]
        anchor = rarest_anchor(keyword_start, keyword, frequency, clause)
        anchor_level = np.int64(level[anchor] & DELTA_LEVEL_MASK) - 1
        column0, row0, column1, row1 = delta_cells(frame, max_level, anchor_level, clauses_box, clause)
        is_wide = (column1 - column0 + 1) * (row1 - row0 + 1) > MOST_CELLS
        if is_wide:
            column0, row0, column1, row1 = 0, 0, 0, 0
        for column in range(column0, column1 + 1):
            for row in range(row0, row1 + 1):
                key = list_key(anchor, WIDE_CELL if is_wide else (column << anchor_level) | row)
                remove_entry(block, slot, find(slot, key, home(key, slot.size // 2)), head, clause)
        head[N_DELTA] -= 1


@kernel
def rehash_with_bloom(old, new, bloom):
    """Copy the keys of a table to a larger one and to its Bloom filter."""
    rehash(new, old)
    for at in range(0, old.size, 2):
        if old[at] != FREE:
            bloom_add(bloom, old[at])
