"""File and remove clauses one by one, and rebuild the nodes that no longer fit."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import borrow, kernel
from nearcast.kernels.pools import chunk_capacity, give_back, take_chunk
from nearcast.papers.boolean.adaptive_tree.kernels.divide import divide_items
from nearcast.papers.boolean.adaptive_tree.kernels.nodes import unproven_bits
from nearcast.papers.boolean.adaptive_tree.kernels.path import visit_nodes
from nearcast.papers.boolean.adaptive_tree.kernels.rebuild import has_drifted, pop_pending, write_local
from nearcast.papers.boolean.adaptive_tree.layout import (
    ALLOWED,
    EXTRA,
    FIRST,
    ITEM_FIELDS,
    KIND,
    LEAF,
    N_BACK,
    N_CHANGES,
    N_ENTRIES,
    N_FILED,
    N_FRONT,
    N_PENDING,
    NEEDED_ENTRIES,
    NEEDED_KEYWORDS,
    NEEDED_PENDING,
    NO_RANK,
    NODE,
    NODE_FIELDS,
    POSITION,
    PROVEN,
    REGION_FIELDS,
    SIZE,
    START,
    STOP,
)

DONE, SHORT, REBUILD_ALL = 0, 1, 2


@kernel
def rank_new_keywords(tree, clauses, slots, is_front):
    """Give keywords that no clause had before the next ranks at the rare end of the order."""
    rank, head = tree.rank, tree.head
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    for i in range(slots.size):
        for at in range(keyword_start[slots[i]], keyword_start[slots[i] + 1]):
            if rank[keyword[at]] == NO_RANK:
                if is_front:
                    head[N_FRONT] += 1
                    rank[keyword[at]] = -head[N_FRONT]
                else:
                    rank[keyword[at]] = head[N_BACK]
                    head[N_BACK] += 1


@kernel
def has_entry_capacity(tree, work, n_visits, leaf_size):
    """Whether the capacity is enough for one more entry in every leaf on the path, without freed memory."""
    tree, work = borrow(tree), borrow(work)
    node, visit, needed = tree.node, work.visit, work.needed
    needed[NEEDED_ENTRIES] = tree.head[N_ENTRIES]
    for at in range(0, n_visits * ITEM_FIELDS, ITEM_FIELDS):
        record = NODE_FIELDS * visit[at + NODE]
        if node[record + KIND] == LEAF and node[record + SIZE] == node[record + EXTRA]:
            needed[NEEDED_ENTRIES] += wider_capacity(node[record + SIZE], leaf_size)
    needed[NEEDED_PENDING] = n_visits
    return needed[NEEDED_ENTRIES] <= tree.clause.size and n_visits * ITEM_FIELDS <= work.pending.size


@kernel
def wider_capacity(size, leaf_size):
    """The new capacity of a full leaf: up to the size at which leaves are divided, then a quarter more each time."""
    if size < leaf_size:
        return chunk_capacity(min(size + 1 + size // 4, leaf_size))
    return chunk_capacity(size + 1 + size // 4)


@kernel
def widen_leaf(tree, record, capacity):
    """Move a leaf to a larger chunk. The capacity is enough."""
    tree = borrow(tree)
    node, box, signature, entry_clause = tree.node, tree.box, tree.signature, tree.clause
    first, size = node[record + FIRST], node[record + SIZE]
    moved = take_chunk(tree.free_entry, entry_clause, tree.head, N_ENTRIES, capacity)
    for i in range(size):
        entry_clause[moved + i] = entry_clause[first + i]
        signature[moved + i] = signature[first + i]
    for i in range(4 * size):
        box[4 * moved + i] = box[4 * first + i]
    give_back(tree.free_entry, entry_clause, first, node[record + EXTRA])
    node[record + FIRST], node[record + EXTRA] = moved, capacity


@kernel
def append_entry(tree, work, record, clause, bits, leaf_size):
    """Append the clause with local number 0 to a leaf."""
    tree, work = borrow(tree), borrow(work)
    node, box, signature, entry_clause = tree.node, tree.box, tree.signature, tree.clause
    size = node[record + SIZE]
    if size == node[record + EXTRA]:
        widen_leaf(tree, record, wider_capacity(size, leaf_size))
    entry = node[record + FIRST] + size
    entry_clause[entry], signature[entry] = clause, bits
    for coordinate in range(4):
        box[4 * entry + coordinate] = work.box[coordinate]
    node[record + SIZE] = size + 1


@kernel
def remove_entry(tree, record, clause):
    """Remove a clause from a leaf; the last entry moves to its position."""
    tree = borrow(tree)
    node, box, signature, entry_clause = tree.node, tree.box, tree.signature, tree.clause
    first, last = node[record + FIRST], node[record + FIRST] + node[record + SIZE] - 1
    entry = first
    while entry_clause[entry] != clause:
        entry += 1
    entry_clause[entry], signature[entry] = entry_clause[last], signature[last]
    for coordinate in range(4):
        box[4 * entry + coordinate] = box[4 * last + coordinate]
    node[record + SIZE] -= 1


@kernel
def push_pending(work, number):
    """Mark the node of a visit for a rebuild."""
    work = borrow(work)
    state, pending, visit = work.state, work.pending, work.visit
    at = state[N_PENDING] * ITEM_FIELDS
    for field in range(ITEM_FIELDS):
        pending[at + field] = visit[number * ITEM_FIELDS + field]
    at = state[N_PENDING] * REGION_FIELDS
    for field in range(REGION_FIELDS):
        work.pending_region[at + field] = work.visit_region[number * REGION_FIELDS + field]
    state[N_PENDING] += 1


@kernel
def note_changes(tree, work, options, n_visits, step):
    """Count a clause in or out along its paths, and mark what must be rebuilt: on each path the highest such node.

    These are full leaves, nodes with less than half of what fills a leaf, and nodes whose clauses have drifted since they
    were divided. Returns whether the whole tree must be rebuilt, with a new order of keywords.
    """
    tree, work = borrow(tree), borrow(work)
    node, block, visit, n_below = tree.node, tree.block, work.visit, tree.n_below
    tree.head[N_FILED] += step
    for number in range(n_visits):
        at = number * ITEM_FIELDS
        n_below[visit[at + NODE]] += step
        record = NODE_FIELDS * visit[at + NODE]
        if node[record + KIND] != LEAF:
            block[node[record + FIRST] + N_CHANGES] += 1
    for number in range(n_visits):
        at = number * ITEM_FIELDS
        # STOP of a visit is 1 if its node is rebuilt, alone or with a node above it.
        visit[at + STOP] = 0
        if number > 0 and visit[visit[at + START] * ITEM_FIELDS + STOP] == 1:
            visit[at + STOP] = 1
            continue
        record = NODE_FIELDS * visit[at + NODE]
        if node[record + KIND] == LEAF:
            size = node[record + SIZE]
            is_due = step > 0 and size >= options.leaf_size and size == node[record + EXTRA]
            is_due = is_due and visit[at + ALLOWED] != 0
        elif 2 * n_below[visit[at + NODE]] < options.leaf_size:
            is_due = True
        else:
            is_due = has_drifted(tree, visit[at + NODE], options)
            if is_due and number == 0:
                return True
        if is_due:
            visit[at + STOP] = 1
            push_pending(work, number)
    return False


@kernel
def apply_rebuilds(tree, clauses, inputs, work, options):
    """Rebuild the marked nodes; returns whether that is done. If not, capacity ran out."""
    while True:
        if not divide_items(tree, inputs, work, options):
            return False
        if work.state[N_PENDING] == 0:
            return True
        if not pop_pending(tree, clauses, work):
            return False


@kernel
def change_clauses(tree, clauses, inputs, work, options, slots, step):
    """File (step 1) or remove (step -1) the clauses from POSITION on; returns DONE, SHORT of capacity, or REBUILD_ALL."""
    state, visit = work.state, work.visit
    node, rank = tree.node, work.rank
    while True:
        if not apply_rebuilds(tree, clauses, inputs, work, options):
            return SHORT
        if state[POSITION] == slots.size:
            return DONE
        clause = slots[state[POSITION]]
        n_ranks = clauses.keyword_start[clause + 1] - clauses.keyword_start[clause]
        work.needed[NEEDED_KEYWORDS] = n_ranks
        if n_ranks > rank.size:
            return SHORT
        write_local(tree, clauses, work, 0, clause, 0)
        n_visits = visit_nodes(tree, work, n_ranks, options.is_refining)
        if n_visits < 0 or not has_entry_capacity(tree, work, n_visits, options.leaf_size):
            return SHORT
        for at in range(0, n_visits * ITEM_FIELDS, ITEM_FIELDS):
            record = NODE_FIELDS * visit[at + NODE]
            if node[record + KIND] == LEAF and step > 0:
                bits = unproven_bits(rank, 0, n_ranks, np.int64(visit[at + PROVEN]))
                append_entry(tree, work, record, clause, bits, options.leaf_size)
            elif node[record + KIND] == LEAF:
                remove_entry(tree, record, clause)
        is_drifted = note_changes(tree, work, options, n_visits, step)
        state[POSITION] += 1
        if is_drifted:
            return REBUILD_ALL
