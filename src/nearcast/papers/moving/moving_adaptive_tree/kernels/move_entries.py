"""File a clause that has moved in other leaves, where nothing else of the tree changes."""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.papers.boolean.adaptive_tree.kernels.maintain import widen_leaf, wider_room
from nearcast.papers.boolean.adaptive_tree.kernels.nodes import unproven_bits
from nearcast.papers.boolean.adaptive_tree.kernels.rebuild import is_check_due
from nearcast.papers.boolean.adaptive_tree.layout import (
    EXTRA,
    FIRST,
    KIND,
    LEAF,
    N_CHANGES,
    N_ENTRIES,
    N_FILED,
    NODE_FIELDS,
    SIZE,
)


@kernel
def note_homes(tree, n_nodes, home):
    """Note a leaf of each clause."""
    node, entry_clause = tree.node, tree.clause
    for number in range(n_nodes):
        record = NODE_FIELDS * number
        if node[record + KIND] == LEAF:
            for entry in range(node[record + FIRST], node[record + FIRST] + node[record + SIZE]):
                home[entry_clause[entry]] = number


@inline_kernel
def find_entry(node, entry_clause, record, clause):
    entry = node[record + FIRST]
    while entry_clause[entry] != clause:
        entry += 1
    return entry


@inline_kernel
def rewrite_entries(node, entries, queue, n_nodes, clause, box):
    """Give a clause another box in its leaves."""
    entry_clause, _, entry_box = entries
    for number in range(n_nodes):
        record = NODE_FIELDS * queue[number]
        if node[record + KIND] == LEAF:
            entry = find_entry(node, entry_clause, record, clause)
            for side in range(4):
                entry_box[4 * entry + side] = box[side]


@inline_kernel
def keeps_shape(tree, new_queue, n_new, seen, mark, options):
    """Whether a clause can be filed on its new way with the room there is, and nothing is to be built anew or looked at.

    `seen` is `-mark` at the nodes of both ways, `mark` at those of the old one only.
    """
    node, block, n_below, n_filed = tree.node, tree.block, tree.n_below, tree.head[N_FILED]
    n_entries, leaf_size = tree.head[N_ENTRIES], options.leaf_size
    for number in range(n_new):
        own = new_queue[number]
        record = NODE_FIELDS * own
        if node[record + KIND] != LEAF:
            is_empty = 2 * n_below[own] < leaf_size
            if is_empty or is_check_due(block, node[record + FIRST], n_below[own] + 1, n_filed, options):
                return False
        elif seen[own] != -mark:
            size, room = node[record + SIZE], node[record + EXTRA]
            if size == room:
                room = wider_room(size, leaf_size)
                n_entries += room
            if size + 1 >= leaf_size and size + 1 == room:
                return False
    return n_entries <= tree.clause.size


@inline_kernel
def change_leaves(tree, entries, ways, seen, mark, clause, box, words, leaf_size):
    """Take a clause out of the leaves of its old way and file it in those of the new one; `seen` as for `keeps_shape`."""
    node, block, n_below = tree.node, tree.block, tree.n_below
    entry_clause, signature, entry_box = entries
    rank, n_ranks, proven = words
    queue, n_old, new_queue, n_new = ways
    for number in range(n_old):
        own = queue[number]
        record = NODE_FIELDS * own
        is_shared = seen[own] == -mark
        n_below[own] -= 0 if is_shared else 1
        if node[record + KIND] != LEAF:
            block[node[record + FIRST] + N_CHANGES] += 2 if is_shared else 1
            continue
        entry = find_entry(node, entry_clause, record, clause)
        if is_shared:
            for side in range(4):
                entry_box[4 * entry + side] = box[side]
            continue
        last = node[record + FIRST] + node[record + SIZE] - 1
        entry_clause[entry], signature[entry] = entry_clause[last], signature[last]
        for side in range(4):
            entry_box[4 * entry + side] = entry_box[4 * last + side]
        node[record + SIZE] -= 1
    for number in range(n_new):
        own = new_queue[number]
        record = NODE_FIELDS * own
        if seen[own] == -mark:
            continue
        n_below[own] += 1
        if node[record + KIND] != LEAF:
            block[node[record + FIRST] + N_CHANGES] += 1
            continue
        if node[record + SIZE] == node[record + EXTRA]:
            widen_leaf(tree, record, wider_room(node[record + SIZE], leaf_size))
        entry = node[record + FIRST] + node[record + SIZE]
        entry_clause[entry], signature[entry] = clause, unproven_bits(rank, 0, n_ranks, proven[number])
        for side in range(4):
            entry_box[4 * entry + side] = box[side]
        node[record + SIZE] += 1
