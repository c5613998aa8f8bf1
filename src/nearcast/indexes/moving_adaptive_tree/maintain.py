"""File, unfile and refile clauses in a tree that holds messages: what is built anew takes its messages along."""

from __future__ import annotations

import numpy as np

from nearcast.indexes.adaptive_tree.layout import (
    FIRST,
    ITEM_FIELDS,
    KIND,
    LEAF,
    N_CHANGES,
    N_FILED,
    NODE,
    NODE_FIELDS,
    POSITION,
    PROVEN,
    WANTED_KEYWORDS,
)
from nearcast.indexes.adaptive_tree.maintain import (
    DONE,
    REBUILD_ALL,
    SHORT,
    append_entry,
    has_entry_room,
    note_changes,
    remove_entry,
    settle,
)
from nearcast.indexes.adaptive_tree.nodes.build import unproven_bits
from nearcast.indexes.adaptive_tree.rebuild.build import write_local
from nearcast.indexes.adaptive_tree.way.maintain import visit_nodes
from nearcast.indexes.moving_adaptive_tree.build import gather_lists, hand_down
from nearcast.indexes.moving_adaptive_tree.layout import REPLAY_FIELDS
from nearcast.indexes.moving_adaptive_tree.way.match import follow, rank_clause
from nearcast.kernels.compile import inline_kernel, kernel


@kernel
def find_way(tree, clauses, work, options, clause):
    """Visit every node on the way of a clause; returns how many, or -1 if room is short."""
    n_ranks = clauses.keyword_start[clause + 1] - clauses.keyword_start[clause]
    work.wanted[WANTED_KEYWORDS] = n_ranks
    if n_ranks > work.rank.size:
        return -1
    write_local(tree, clauses, work, 0, clause, 0)
    return visit_nodes(tree, work, n_ranks, options.is_refining)


@kernel
def has_room(tree, work, options, lists, n_visits):
    """Whether a clause can be filed on the way that was found."""
    return (
        n_visits >= 0
        and has_entry_room(tree, work, n_visits, options.leaf_size)
        and n_visits * REPLAY_FIELDS <= lists.replay.size
    )


@kernel
def enter_leaves(tree, clauses, work, options, clause, n_visits):
    """Append a clause to the leaves on its way."""
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
        gather_lists(tree, lists, work)


@kernel
def leave_way(tree, clause, queue, n_nodes):
    """Take a clause out of the leaves of a way and count it out; it is about to be counted in on another."""
    node, block, n_below = tree.node, tree.block, tree.n_below
    for number in range(n_nodes):
        n_below[queue[number]] -= 1
        record = NODE_FIELDS * queue[number]
        if node[record + KIND] == LEAF:
            remove_entry(tree, record, clause)
        else:
            block[node[record + FIRST] + N_CHANGES] += 1
    tree.head[N_FILED] -= 1


@inline_kernel
def swap_box(clauses, to, clause, i):
    """Let the box of a clause and the one at `i` trade places."""
    x0, y0, x1, y1 = to
    clauses.x0[clause], x0[i] = x0[i], clauses.x0[clause]
    clauses.y0[clause], y0[i] = y0[i], clauses.y0[clause]
    clauses.x1[clause], x1[i] = x1[i], clauses.x1[clause]
    clauses.y1[clause], y1[i] = y1[i], clauses.y1[clause]


@kernel
def rewrite_boxes(tree, clauses, slots, to, first, follower, is_refining):
    """Move the clauses from `first` on for as long as each stays in its leaves; returns where one does not, or the end.

    Then nothing is counted and nothing can go out of shape: only the boxes in the leaves are other ones. Of the clause that
    does not, `queue` has the old way; how many nodes that is, is returned too.
    """
    node, entry_clause, entry_box, rank_of = tree.node, tree.clause, tree.box, tree.rank
    structure = (node, tree.block, tree.bound, tree.region)
    cx0, cy0, cx1, cy1 = clauses.x0, clauses.y0, clauses.x1, clauses.y1
    keyword_start, keyword = clauses.keyword_start, clauses.keyword
    x0, y0, x1, y1 = to
    rank, queue, offset, region, new_queue = follower
    for i in range(first, slots.size):
        clause = slots[i]
        n_ranks = rank_clause(rank_of, keyword, keyword_start[clause], keyword_start[clause + 1], rank)
        old = (cx0[clause], cy0[clause], cx1[clause], cy1[clause])
        n_old, _ = follow(structure, old, rank, n_ranks, is_refining, queue, offset, region)
        new = (x0[i], y0[i], x1[i], y1[i])
        n_new, is_missing = follow(structure, new, rank, n_ranks, is_refining, new_queue, offset, region)
        if is_missing or n_old != n_new:
            return i, n_old
        for number in range(n_new):
            if queue[number] != new_queue[number]:
                return i, n_old
        for number in range(n_new):
            record = NODE_FIELDS * queue[number]
            if node[record + KIND] == LEAF:
                entry = node[record + FIRST]
                while entry_clause[entry] != clause:
                    entry += 1
                for side in range(4):
                    entry_box[4 * entry + side] = new[side]
        cx0[clause], cy0[clause], cx1[clause], cy1[clause] = new
    return slots.size, 0


@kernel
def refile_clauses(tree, clauses, expected, work, options, slots, how, lists, messages, scratch, limit):
    """Move the clauses from POSITION on to new boxes; as `change_clauses`.

    One by one, so that no node is built anew only because a whole batch is between two places.
    """
    state = work.state
    to, follower = how
    while True:
        if not settle(tree, clauses, expected, work, options):
            return SHORT
        if not hand_down(tree, lists, messages, work.wanted, scratch, limit, options.is_refining):
            return SHORT
        state[POSITION], n_old = rewrite_boxes(tree, clauses, slots, to, state[POSITION], follower, options.is_refining)
        if state[POSITION] == slots.size:
            return DONE
        i = state[POSITION]
        clause = slots[i]
        # The new way first: if there is no room for it, nothing has happened yet.
        swap_box(clauses, to, clause, i)
        n_visits = find_way(tree, clauses, work, options, clause)
        if not has_room(tree, work, options, lists, n_visits):
            swap_box(clauses, to, clause, i)
            return SHORT
        leave_way(tree, clause, follower[1], n_old)
        enter_leaves(tree, clauses, work, options, clause, n_visits)
        is_drifted = note_changes(tree, work, options, n_visits, 1)
        state[POSITION] += 1
        if is_drifted:
            return REBUILD_ALL
        gather_lists(tree, lists, work)
