"""Divide the nodes on the stack, one after the other, until each is a leaf or has children. Paper: Algorithm 4.

The clauses of a node are a run of `order`; those of its children are written after it. The last item is divided first, so
everything after it is free.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.pools import chunk_capacity, take_chunk
from nearcast.papers.boolean.adaptive_tree.kernels.by_keyword import (
    clear_line,
    lay_cuts,
    plan_cuts,
    proven_in,
    share_of_cuts,
    sort_into_cuts,
    step_in,
)
from nearcast.papers.boolean.adaptive_tree.kernels.by_space import count_cells, expected_count, plan_grid, sort_into_cells
from nearcast.papers.boolean.adaptive_tree.kernels.motion import motion_cost
from nearcast.papers.boolean.adaptive_tree.kernels.nodes import (
    make_leaf,
    narrow_region,
    push_child,
    replace_by_children,
    start_block,
)
from nearcast.papers.boolean.adaptive_tree.layout import (
    ALLOWED,
    BLOCK_FIELDS,
    BOUNDS,
    BY_COST,
    BY_KEYWORD_FIRST,
    BY_SPACE_FIRST,
    DEEPEST_LEVEL,
    DEPTH,
    EXTRA,
    FIRST,
    ITEM_FIELDS,
    KEYWORD,
    KIND,
    LEAF,
    MAY_KEYWORD,
    MAY_SPACE,
    N_BACK,
    N_BLOCK,
    N_BOUND,
    N_ENTRIES,
    N_FRONT,
    N_ITEMS,
    N_NODES,
    NEEDED_BLOCK,
    NEEDED_BOUND,
    NEEDED_ENTRIES,
    NEEDED_NODES,
    NEEDED_ORDER,
    NO_NODE,
    NODE,
    NODE_FIELDS,
    OFFSET,
    PROVEN,
    REGION_FIELDS,
    ROWS,
    SIZE,
    SPACE,
    SPREAD,
    START,
    STOP,
)

# A division that saves less than this share of the verifications is not worth its nodes.
_LEAST_SAVING = 0.1
# Cuts or cells per leaf that the clauses of a node would fill.
_CHILDREN_PER_LEAF = 2
_FEWEST_CHILDREN = 4


@kernel
def divide_items(tree, inputs, work, options):
    """Divide all items on the stack; returns whether that is done. If not, capacity ran out (see `needed`)."""
    state, item, leaf_size = work.state, work.item, options.leaf_size
    while state[N_ITEMS] > 0:
        last = state[N_ITEMS] - 1
        at = last * ITEM_FIELDS
        n = item[at + STOP] - item[at + START]
        if not has_capacity(tree, work, n, options.fanout):
            return False
        kind, n_columns, n_rows, n_keys = LEAF, 0, 0, 0
        if n >= leaf_size and item[at + DEPTH] < DEEPEST_LEVEL:
            kind, n_columns, n_rows, n_keys = choose_kind(tree, inputs, work, options, last)
        if kind == LEAF:
            state[N_ITEMS] = last
            make_leaf(tree, work, last, leaf_size)
        elif kind == KEYWORD:
            if not has_order(work, item[at + STOP] + n):
                return False
            divide_by_keyword(tree, inputs.likelihood, work, last, n_columns, n_keys, options.is_refining)
        elif not divide_by_space(tree, inputs.density, work, last, n_columns, n_rows):
            return False
    return True


@inline_kernel
def has_order(work, needed):
    work.needed[NEEDED_ORDER] = needed
    return needed <= work.order.size


@kernel
def has_capacity(tree, work, n, fanout):
    """Whether the capacity is enough to make a node of `n` clauses a leaf or divide it, without freed memory."""
    head, needed = tree.head, work.needed
    n_children = 2 * fanout + 2
    needed[NEEDED_NODES] = head[N_NODES] + n_children
    needed[NEEDED_BLOCK] = head[N_BLOCK] + chunk_capacity(BLOCK_FIELDS + 2 * n_children)
    needed[NEEDED_BOUND] = head[N_BOUND] + chunk_capacity(fanout + 2)
    needed[NEEDED_ENTRIES] = head[N_ENTRIES] + chunk_capacity(n + n // 4)
    return (
        needed[NEEDED_NODES] <= tree.n_below.size
        and needed[NEEDED_BLOCK] <= tree.block.size
        and needed[NEEDED_BOUND] <= tree.bound.size
        and needed[NEEDED_ENTRIES] <= tree.clause.size
    )


@kernel
def choose_kind(tree, inputs, work, options, last):
    """Choose what a node becomes: its kind, cuts or columns, rows, and its distinct keywords."""
    item, head = work.item, tree.head
    at, region_at = last * ITEM_FIELDS, last * REGION_FIELDS
    start, stop, allowed = item[at + START], item[at + STOP], item[at + ALLOWED]
    n = stop - start
    fanout = min(options.fanout, max(_FEWEST_CHILDREN, _CHILDREN_PER_LEAF * n // options.leaf_size))
    keyword_cost, n_cuts, n_keys = np.inf, 0, 0
    space_cost, n_columns, n_rows = np.inf, 0, 0
    if allowed & MAY_KEYWORD:
        keyword_cost, n_cuts, n_keys = plan_cuts(
            work,
            inputs.likelihood,
            start,
            stop,
            item[at + OFFSET],
            head[N_FRONT],
            head[N_FRONT] + head[N_BACK],
            fanout,
            options.is_optimal,
        )
    if allowed & MAY_SPACE and not (options.priority == BY_KEYWORD_FIRST and keyword_cost < np.inf):
        most_copies = options.max_copies / work.item_region[region_at + SPREAD]
        space_cost, n_columns, n_rows = plan_grid(work, inputs.density, start, stop, region_at, fanout, most_copies)
        if space_cost < np.inf:
            space_cost += motion_cost(tree, inputs.motion, work, options, last, n_keys)
    if options.priority == BY_COST and min(keyword_cost, space_cost) > (1.0 - _LEAST_SAVING) * n:
        return LEAF, 0, 0, 0
    if options.priority == BY_SPACE_FIRST and space_cost < np.inf:
        keyword_cost = np.inf
    if keyword_cost < space_cost:
        return KEYWORD, n_cuts, 0, n_keys
    if space_cost < np.inf:
        return SPACE, n_columns, n_rows, 0
    return LEAF, 0, 0, 0


@kernel
def divide_by_keyword(tree, likelihood, work, last, n_cuts, n_keys, is_refining):
    """Make an item a node with cuts, and push its children in its place."""
    item, count, block, node = work.item, work.counts, tree.block, tree.node
    at = last * ITEM_FIELDS
    number, start, stop, offset = item[at + NODE], item[at + START], item[at + STOP], item[at + OFFSET]
    allowed, proven = item[at + ALLOWED], item[at + PROVEN]
    n_front = tree.head[N_FRONT]
    left = count[: count.size // 2]
    n_slots = lay_cuts(work, n_cuts, n_front, left)
    first = start_block(tree, chunk_capacity(BLOCK_FIELDS + 2 * n_slots), stop - start)
    cuts = first + BLOCK_FIELDS + n_slots
    for slot in range(n_slots):
        block[cuts + slot] = left[slot]
    sort_into_cuts(work, start, stop, offset, n_front, n_slots, count)
    share = share_of_cuts(work, likelihood, n_keys, n_front, n_slots)
    clear_line(work, n_keys)
    child_start = stop
    extra = NO_NODE
    for slot in range(n_slots + 1):
        n = count[slot]
        child = NO_NODE
        if n > 0 and slot < n_slots:
            now_proven = proven_in(block, cuts, slot, n_slots, proven, offset)
            next_offset = offset + step_in(block, cuts, slot, n_slots, is_refining)
            child = push_child(tree, work, last, child_start, n, next_offset, allowed, now_proven, min(1.0, share[slot]))
        elif n > 0:
            extra = push_child(tree, work, last, child_start, n, offset, allowed & ~MAY_KEYWORD, proven, 1.0)
        if slot < n_slots:
            block[first + BLOCK_FIELDS + slot] = child
        child_start += n
    record = NODE_FIELDS * number
    node[record + KIND], node[record + FIRST], node[record + SIZE], node[record + EXTRA] = KEYWORD, first, n_slots, extra
    replace_by_children(work, last)


@kernel
def divide_by_space(tree, density, work, last, n_columns, n_rows):
    """Make an item a node with a grid, and push its children in its place; returns whether the capacity was enough."""
    item, count, block, node, grid = work.item, work.counts, tree.block, tree.node, work.grid
    region, bound = work.item_region, tree.bound
    at, region_at = last * ITEM_FIELDS, last * REGION_FIELDS
    number, start, stop, offset = item[at + NODE], item[at + START], item[at + STOP], item[at + OFFSET]
    allowed, proven = item[at + ALLOWED], item[at + PROVEN]
    n_copies = count_cells(work, start, stop, region_at, n_columns, n_rows, count)
    if not has_order(work, stop + n_copies):
        return False
    sort_into_cells(work, start, stop, region_at, n_columns, n_rows, count)
    n_cells = n_columns * n_rows
    first = start_block(tree, chunk_capacity(BLOCK_FIELDS + n_cells), stop - start)
    bounds = take_chunk(tree.free_bound, bound, tree.head, N_BOUND, chunk_capacity(n_columns + n_rows - 1))
    block[first + BOUNDS] = bounds
    ratio = n_copies / (stop - start)
    bound[bounds] = ratio
    for column in range(n_columns - 1):
        bound[bounds + 1 + column] = grid[column]
    for row in range(n_rows - 1):
        bound[bounds + n_columns + row] = grid[grid.size // 2 + row]
    child_start, total = stop, expected_count(density, region, region_at)
    for cell in range(n_cells):
        child = NO_NODE
        if count[cell] > 0:
            child_region = work.state[N_ITEMS] * REGION_FIELDS
            child = push_child(tree, work, last, child_start, count[cell], offset, allowed, proven, 1.0)
            narrow_region(region, child_region, bound, bounds, n_columns, n_rows, cell % n_columns, cell // n_columns)
            tree.share[child] *= (
                min(1.0, expected_count(density, region, child_region) / total) if total > 0.0 else 1.0 / n_cells
            )
            region[child_region + SPREAD] *= ratio
        block[first + BLOCK_FIELDS + cell] = child
        child_start += count[cell]
    extra = NO_NODE
    if count[n_cells] > 0:
        child_region = work.state[N_ITEMS] * REGION_FIELDS
        extra = push_child(tree, work, last, child_start, count[n_cells], offset, allowed & ~MAY_SPACE, proven, 1.0)
        region[child_region + SPREAD] *= ratio
    record = NODE_FIELDS * number
    node[record + KIND], node[record + FIRST] = SPACE, first
    node[record + SIZE], node[record + EXTRA] = n_columns * ROWS + n_rows, extra
    replace_by_children(work, last)
    return True
