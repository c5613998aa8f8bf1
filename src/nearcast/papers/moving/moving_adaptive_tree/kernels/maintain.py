"""File and unfile clauses in a tree that holds messages: what is built anew takes its messages along."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import borrow, kernel
from nearcast.papers.boolean.adaptive_tree.kernels.maintain import (
    DONE,
    REBUILD_ALL,
    SHORT,
    append_entry,
    has_entry_room,
    note_changes,
    remove_entry,
    settle,
)
from nearcast.papers.boolean.adaptive_tree.kernels.nodes import unproven_bits
from nearcast.papers.boolean.adaptive_tree.kernels.path import visit_nodes
from nearcast.papers.boolean.adaptive_tree.kernels.rebuild import write_local
from nearcast.papers.boolean.adaptive_tree.layout import (
    ITEM_FIELDS,
    KIND,
    LEAF,
    NODE,
    NODE_FIELDS,
    POSITION,
    PROVEN,
    WANTED_KEYWORDS,
)
from nearcast.papers.moving.moving_adaptive_tree.kernels.reinsert import gather_messages, hand_down
from nearcast.papers.moving.moving_adaptive_tree.layout import REPLAY_FIELDS


@kernel
def find_way(tree, clauses, work, options, clause):
    """Visit every node on the way of a clause; returns how many, or -1 if room is short."""
    tree, clauses, work = borrow(tree), borrow(clauses), borrow(work)
    n_ranks = clauses.keyword_start[clause + 1] - clauses.keyword_start[clause]
    work.wanted[WANTED_KEYWORDS] = n_ranks
    if n_ranks > work.rank.size:
        return -1
    write_local(tree, clauses, work, 0, clause, 0)
    return visit_nodes(tree, work, n_ranks, options.is_refining)


@kernel
def has_room(tree, work, options, lists, n_visits):
    """Whether a clause can be filed on the way that was found."""
    tree, work, lists = borrow(tree), borrow(work), borrow(lists)
    return (
        n_visits >= 0
        and has_entry_room(tree, work, n_visits, options.leaf_size)
        and n_visits * REPLAY_FIELDS <= lists.replay.size
    )


@kernel
def enter_leaves(tree, clauses, work, options, clause, n_visits):
    """Append a clause to the leaves on its way."""
    tree, clauses, work = borrow(tree), borrow(clauses), borrow(work)
    n_ranks = clauses.keyword_start[clause + 1] - clauses.keyword_start[clause]
    for at in range(0, n_visits * ITEM_FIELDS, ITEM_FIELDS):
        record = NODE_FIELDS * work.visit[at + NODE]
        if tree.node[record + KIND] == LEAF:
            bits = unproven_bits(work.rank, 0, n_ranks, np.int64(work.visit[at + PROVEN]))
            append_entry(tree, work, record, clause, bits, options.leaf_size)


@kernel
def leave_leaves(tree, work, clause, n_visits):
    """Take a clause out of the leaves on its way."""
    for at in range(0, n_visits * ITEM_FIELDS, ITEM_FIELDS):
        record = NODE_FIELDS * work.visit[at + NODE]
        if tree.node[record + KIND] == LEAF:
            remove_entry(tree, record, clause)


@kernel
def change_clauses(tree, clauses, expected, work, options, slots, step, lists, messages, scratch, limit):
    """File (step 1) or unfile (step -1) the clauses from POSITION on: DONE, SHORT of room, or REBUILD_ALL before going on."""
    state = work.state
    while True:
        if not gather_messages(tree, lists, work, messages.is_alive):
            return SHORT
        if not settle(tree, clauses, expected, work, options):
            return SHORT
        if not hand_down(tree, lists, messages, work.wanted, scratch, limit, options.is_refining):
            return SHORT
        if state[POSITION] == slots.size:
            return DONE
        clause = slots[state[POSITION]]
        n_visits = find_way(tree, clauses, work, options, clause)
        if not has_room(tree, work, options, lists, n_visits):
            return SHORT
        if step > 0:
            enter_leaves(tree, clauses, work, options, clause, n_visits)
        else:
            leave_leaves(tree, work, clause, n_visits)
        is_drifted = note_changes(tree, work, options, n_visits, step)
        state[POSITION] += 1
        if is_drifted:
            return REBUILD_ALL
