"""Move clauses, tell what that changes, and keep tree and lists together."""

from __future__ import annotations

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.papers.boolean.adaptive_tree.kernels.maintain import DONE, REBUILD_ALL, SHORT, note_changes, remove_entry, settle
from nearcast.papers.boolean.adaptive_tree.layout import FIRST, KIND, LEAF, N_CHANGES, N_FILED, NODE_FIELDS, POSITION
from nearcast.papers.moving.moving_adaptive_tree.kernels.maintain import enter_leaves, find_way, has_room
from nearcast.papers.moving.moving_adaptive_tree.kernels.move_diff import N_PAIRS, N_WITH_THIS, travel
from nearcast.papers.moving.moving_adaptive_tree.kernels.reinsert import gather_messages, hand_down

FULL = 3  # no room for what is to be told


@kernel
def leave_way(tree, clause, queue, n_nodes):
    """Take a clause out of the leaves of a way and count it out; it is about to be counted in on another."""
    tree, queue = borrow(tree), borrow(queue)
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
def move_clauses(tree, clauses, expected, work, options, slots, how, lists, messages, scratch, limit):
    """Move the clauses from POSITION on to new boxes: DONE, SHORT of room, FULL output, or REBUILD_ALL before going on.

    One by one, so that no node is built anew only because a whole batch is between two places.
    """
    tree, clauses, expected, work, lists = borrow(tree), borrow(clauses), borrow(expected), borrow(work), borrow(lists)
    slots, messages, scratch = borrow(slots), borrow(messages), borrow(scratch)
    to, follower, wide, output = borrow(how)
    state = work.state
    while True:
        if not gather_messages(tree, lists, work, messages.is_alive):
            return SHORT
        if not settle(tree, clauses, expected, work, options):
            return SHORT
        if not hand_down(tree, lists, messages, work.wanted, scratch, limit, options.is_refining):
            return SHORT
        i, n_old = travel(tree, lists, clauses, messages, slots, to, follower, wide, output, state[POSITION], options)
        state[POSITION] = i
        if n_old < 0:
            return FULL
        if i == slots.size:
            return DONE
        clause = slots[i]
        # The new way first: if there is no room for it, nothing has happened yet.
        swap_box(clauses, to, clause, i)
        n_visits = find_way(tree, clauses, work, options, clause)
        if not has_room(tree, work, options, lists, n_visits):
            swap_box(clauses, to, clause, i)
            return SHORT
        output.counters[N_PAIRS] = output.counters[N_WITH_THIS]
        leave_way(tree, clause, follower.queue, n_old)
        enter_leaves(tree, clauses, work, options, clause, n_visits)
        is_drifted = note_changes(tree, work, options, n_visits, 1)
        state[POSITION] += 1
        if is_drifted:
            return REBUILD_ALL
