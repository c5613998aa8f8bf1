"""Make single nodes: a leaf with its entries, a block, a child on the stack, the region of a cell."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.pools import chunk_capacity, take_chunk
from nearcast.papers.boolean.adaptive_tree.layout import (
    ALLOWED,
    BOUNDS,
    DEEPEST,
    DEPTH,
    EXTRA,
    FIRST,
    FREE_NODE,
    ITEM_FIELDS,
    KIND,
    LEAF,
    N_BLOCK,
    N_CHANGES,
    N_CHECKED,
    N_DIVIDED,
    N_ENTRIES,
    N_ITEMS,
    N_NODES,
    NO_NODE,
    NODE,
    NODE_FIELDS,
    OFFSET,
    PROVEN,
    REGION_FIELDS,
    SIZE,
    START,
    STOP,
)
from nearcast.papers.boolean.quadtrees.kernels.lists import keyword_bit


@kernel
def make_leaf(tree, work, last, leaf_size):
    """Write the entries of a leaf: clause, box, and the bits of the keywords that the path to the leaf does not prove."""
    item, order, box, rank_start, rank = work.item, work.order, work.box, work.rank_start, work.rank
    clause, boxes, signature, node = tree.clause, tree.box, tree.signature, tree.node
    at = last * ITEM_FIELDS
    start, stop, proven = item[at + START], item[at + STOP], item[at + PROVEN]
    n = stop - start
    # A leaf that could not be divided is not tried again at each insertion.
    capacity = chunk_capacity(n + n // 4 if n >= leaf_size else n)
    first = take_chunk(tree.free_entry, clause, tree.head, N_ENTRIES, capacity)
    record = NODE_FIELDS * item[at + NODE]
    node[record + KIND], node[record + FIRST], node[record + SIZE], node[record + EXTRA] = LEAF, first, n, capacity
    for i in range(n):
        local = order[start + i]
        entry = first + i
        clause[entry] = work.clause[local]
        signature[entry] = unproven_bits(rank, rank_start[local], rank_start[local + 1], proven)
        for coordinate in range(4):
            boxes[4 * entry + coordinate] = box[4 * local + coordinate]


@inline_kernel
def unproven_bits(rank, start, stop, proven):
    bits = np.int64(0)
    for at in range(start, stop):
        if (proven >> np.int64(min(at - start, 63))) & 1 == 0:
            bits |= keyword_bit(rank[at])
    return bits


@kernel
def new_node(tree, n_clauses):
    """An empty leaf that will have `n_clauses` below."""
    head, node = tree.head, tree.node
    number = head[FREE_NODE]
    if number == NO_NODE:
        number = head[N_NODES]
        head[N_NODES] += 1
    else:
        head[FREE_NODE] = node[NODE_FIELDS * number + FIRST]
    record = NODE_FIELDS * number
    node[record + KIND], node[record + FIRST], node[record + SIZE], node[record + EXTRA] = LEAF, 0, 0, 0
    tree.n_below[number], tree.n_at_division[number] = n_clauses, n_clauses
    return number


@inline_kernel
def start_block(tree, capacity, n):
    """Take a block for a node of `n` clauses that is divided now; returns its start."""
    block = tree.block
    first = take_chunk(tree.free_block, block, tree.head, N_BLOCK, capacity)
    block[first + N_CHANGES], block[first + N_CHECKED], block[first + N_DIVIDED] = 0, 0, n
    block[first + BOUNDS] = NO_NODE
    return first


@kernel
def push_child(tree, work, last, start, n, offset, allowed, proven, share):
    """Push a child of item `last`, with its region; `share` of its messages reach it. Returns the node."""
    state, item, region = work.state, work.item, work.item_region
    number = new_node(tree, n)
    tree.share[number] = tree.share[item[last * ITEM_FIELDS + NODE]] * share
    at, depth = state[N_ITEMS] * ITEM_FIELDS, item[last * ITEM_FIELDS + DEPTH] + 1
    item[at + NODE], item[at + START], item[at + STOP] = number, start, start + n
    item[at + OFFSET], item[at + ALLOWED], item[at + DEPTH], item[at + PROVEN] = offset, allowed, depth, proven
    for field in range(REGION_FIELDS):
        region[state[N_ITEMS] * REGION_FIELDS + field] = region[last * REGION_FIELDS + field]
    state[N_ITEMS] += 1
    tree.head[DEEPEST] = max(tree.head[DEEPEST], depth)
    return number


@inline_kernel
def narrow_region(region, at, bound, bounds, n_columns, n_rows, column, row):
    """Cut the region at `at` down to a cell of a grid."""
    if column > 0:
        region[at] = bound[bounds + column]
    if column < n_columns - 1:
        region[at + 2] = bound[bounds + 1 + column]
    if row > 0:
        region[at + 1] = bound[bounds + n_columns + row - 1]
    if row < n_rows - 1:
        region[at + 3] = bound[bounds + n_columns + row]


@kernel
def replace_by_children(work, last):
    """Remove a divided item from below its children on the stack."""
    state, item, region = work.state, work.item, work.item_region
    state[N_ITEMS] -= 1
    for at in range(last * ITEM_FIELDS, state[N_ITEMS] * ITEM_FIELDS):
        item[at] = item[at + ITEM_FIELDS]
    for at in range(last * REGION_FIELDS, state[N_ITEMS] * REGION_FIELDS):
        region[at] = region[at + REGION_FIELDS]
