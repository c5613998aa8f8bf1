"""Prepare a node for a rebuild: gather its clauses and free what is below it. Decide when a node has drifted."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.pools import chunk_capacity, give_back
from nearcast.kernels.sorting import sort_run
from nearcast.papers.boolean.adaptive_tree.layout import (
    BLOCK_FIELDS,
    BOUNDS,
    EXTRA,
    FIRST,
    FREE_NODE,
    ITEM_FIELDS,
    KEYWORD,
    KIND,
    LEAF,
    N_CHANGES,
    N_CHECKED,
    N_DIVIDED,
    N_FILED,
    N_ITEMS,
    N_PENDING,
    N_REBUILT,
    NEEDED_KEYWORDS,
    NEEDED_LOCAL,
    NEEDED_ORDER,
    NO_NODE,
    NODE,
    NODE_FIELDS,
    REGION_FIELDS,
    ROWS,
    SIZE,
    START,
    STOP,
)

LEAST_SHARE = 0.001  # of all clauses: smaller nodes do not drift. Paper: §5.1.2
_CHECKS = 128  # how often the divergence is computed while all clauses of a node change
_SMOOTHING = 0.5


@inline_kernel
def child_count(node, record):
    """How many children the block of an inner node has; the one that every message enters is not among them."""
    if node[record + KIND] == KEYWORD:
        return node[record + SIZE]
    return (node[record + SIZE] // ROWS) * (node[record + SIZE] % ROWS)


@kernel
def push_children(tree, record, stack, n):
    """Push the children of an inner node; returns the new size of the stack."""
    node, block = tree.node, tree.block
    first = node[record + FIRST] + BLOCK_FIELDS
    for at in range(first, first + child_count(node, record)):
        if block[at] != NO_NODE:
            stack[n] = block[at]
            n += 1
    if node[record + EXTRA] != NO_NODE:
        stack[n] = node[record + EXTRA]
        n += 1
    return n


@kernel
def collect_clauses(tree, number, stack, seen, out):
    """Write every clause filed below a node, once; returns how many."""
    node, entry_clause = tree.node, tree.clause
    stack[0] = number
    size, n_out = 1, 0
    while size > 0:
        size -= 1
        record = NODE_FIELDS * stack[size]
        if node[record + KIND] != LEAF:
            size = push_children(tree, record, stack, size)
            continue
        for entry in range(node[record + FIRST], node[record + FIRST] + node[record + SIZE]):
            clause = entry_clause[entry]
            if seen[clause] == 0:
                seen[clause] = 1
                out[n_out] = clause
                n_out += 1
    for i in range(n_out):
        seen[out[i]] = 0
    return n_out


@kernel
def free_below(tree, number, stack):
    """Give back everything below a node and make it an empty leaf."""
    node, block, head = tree.node, tree.block, tree.head
    stack[0] = number
    size = 1
    while size > 0:
        size -= 1
        freed = stack[size]
        record = NODE_FIELDS * freed
        first = node[record + FIRST]
        kind = node[record + KIND]
        if kind == LEAF:
            give_back(tree.free_entry, tree.clause, first, node[record + EXTRA])
        else:
            size = push_children(tree, record, stack, size)
            n_children = child_count(node, record)
            capacity = chunk_capacity(BLOCK_FIELDS + (2 * n_children if kind == KEYWORD else n_children))
            if kind != KEYWORD:
                n_bounds = node[record + SIZE] // ROWS + node[record + SIZE] % ROWS - 1
                give_back(tree.free_bound, tree.bound, block[first + BOUNDS], chunk_capacity(n_bounds))
            give_back(tree.free_block, block, first, capacity)
        node[record + KIND], node[record + FIRST], node[record + SIZE], node[record + EXTRA] = LEAF, 0, 0, 0
        if freed != number:
            node[record + FIRST] = head[FREE_NODE]
            head[FREE_NODE] = freed


@kernel
def pop_pending(tree, clauses, work):
    """Make the last pending node an item with all its clauses; returns whether the capacity was enough."""
    state, needed, pending, item = work.state, work.needed, work.pending, work.item
    last = (state[N_PENDING] - 1) * ITEM_FIELDS
    number = pending[last + NODE]
    n = tree.n_below[number]
    needed[NEEDED_LOCAL], needed[NEEDED_ORDER] = n, n
    if n > work.clause.size or n > work.order.size:
        return False
    collect_clauses(tree, number, work.stack, work.seen, work.clause)
    n_keywords = 0
    for local in range(n):
        clause = work.clause[local]
        n_keywords += clauses.keyword_start[clause + 1] - clauses.keyword_start[clause]
    needed[NEEDED_KEYWORDS] = n_keywords
    if n_keywords > work.rank.size:
        return False
    free_below(tree, number, work.stack)
    gather_clauses(tree, clauses, work, n)
    for field in range(ITEM_FIELDS):
        item[field] = pending[last + field]
    item[START], item[STOP] = 0, n
    region = (state[N_PENDING] - 1) * REGION_FIELDS
    for field in range(REGION_FIELDS):
        work.item_region[field] = work.pending_region[region + field]
    state[N_PENDING] -= 1
    state[N_ITEMS] = 1
    tree.head[N_REBUILT] += 1
    return True


@kernel
def write_local(tree, clauses, work, local, clause, first):
    """Store the box of a clause, and its keywords in order from `first` on; returns where they end."""
    tree, clauses, work = borrow(tree), borrow(clauses), borrow(work)
    box, rank, rank_of = work.box, work.rank, tree.rank
    box[4 * local], box[4 * local + 1] = clauses.x0[clause], clauses.y0[clause]
    box[4 * local + 2], box[4 * local + 3] = clauses.x1[clause], clauses.y1[clause]
    end = first
    for at in range(clauses.keyword_start[clause], clauses.keyword_start[clause + 1]):
        rank[end] = rank_of[clauses.keyword[at]]
        end += 1
    sort_run(rank, first, end)
    return end


@kernel
def gather_clauses(tree, clauses, work, n):
    """Store boxes and keywords of the first `n` clauses by local number."""
    rank_start, order, clause = work.rank_start, work.order, work.clause
    rank_start[0] = 0
    for local in range(n):
        rank_start[local + 1] = write_local(tree, clauses, work, local, clause[local], rank_start[local])
        order[local] = local


@kernel
def divergence(tree, number):
    """How far the shares of the children are from those when the node was divided, and among how many that was.

    Paper: D_KL(w_old | w), formula not printed. Smoothed, since a share may become zero; all clauses in new children count as
    one more bin.
    """
    tree = borrow(tree)
    node, block, n_below, n_at_division = tree.node, tree.block, tree.n_below, tree.n_at_division
    record = NODE_FIELDS * number
    first = node[record + FIRST] + BLOCK_FIELDS
    n_bins, total_then, total_now, new = 1, 0, 0, 0
    n_children = child_count(node, record)
    for at in range(n_children + 1):
        child = block[first + at] if at < n_children else node[record + EXTRA]
        if child == NO_NODE:
            continue
        if n_at_division[child] == 0:
            new += n_below[child]
        else:
            n_bins += 1
            total_then += n_at_division[child]
        total_now += n_below[child]
    then_scale, now_scale = total_then + _SMOOTHING * n_bins, total_now + _SMOOTHING * n_bins
    share = _SMOOTHING / then_scale
    total = share * np.log(share * now_scale / (new + _SMOOTHING))
    for at in range(n_children + 1):
        child = block[first + at] if at < n_children else node[record + EXTRA]
        if child != NO_NODE and n_at_division[child] > 0:
            share = (n_at_division[child] + _SMOOTHING) / then_scale
            total += share * np.log(share * now_scale / (n_below[child] + _SMOOTHING))
    return total, n_bins


@inline_kernel
def is_check_due(block, first, n, n_filed, options):
    """Whether a node with `n` of all clauses below, whose block begins at `first`, has changed enough for another check."""
    n_changes = block[first + N_CHANGES]
    return (
        options.drift_limit >= 0.0
        and n >= LEAST_SHARE * n_filed
        and n_changes >= block[first + N_CHECKED]
        and n_changes >= options.least_change * block[first + N_DIVIDED]
    )


@kernel
def has_drifted(tree, number, options):
    """Whether an inner node must be rebuilt because the distribution of its clauses has drifted."""
    tree = borrow(tree)
    block, n = tree.block, tree.n_below[number]
    first = tree.node[NODE_FIELDS * number + FIRST]
    if not is_check_due(block, first, n, tree.head[N_FILED], options):
        return False
    block[first + N_CHECKED] = block[first + N_CHANGES] + max(1, n // _CHECKS)
    distance, n_bins = divergence(tree, number)
    # The expected divergence if as many clauses as the node was divided with are drawn again.
    return distance > options.drift_limit + options.noise_weight * (n_bins - 1) / (2.0 * block[first + N_DIVIDED])
