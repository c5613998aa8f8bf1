"""Insert, delete and move clauses in a tree with messages: rebuilt nodes keep their messages."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.papers.boolean.adaptive_tree.kernels.by_keyword import find_cut, step_in
from nearcast.papers.boolean.adaptive_tree.kernels.maintain import (
    DONE,
    REBUILD_ALL,
    SHORT,
    append_entry,
    apply_rebuilds,
    has_entry_capacity,
    note_changes,
    remove_entry,
)
from nearcast.papers.boolean.adaptive_tree.kernels.match import rank_keywords
from nearcast.papers.boolean.adaptive_tree.kernels.nodes import unproven_bits
from nearcast.papers.boolean.adaptive_tree.kernels.path import visit_nodes
from nearcast.papers.boolean.adaptive_tree.kernels.rebuild import push_children, write_local
from nearcast.papers.boolean.adaptive_tree.layout import (
    BLOCK_FIELDS,
    EXTRA,
    FIRST,
    ITEM_FIELDS,
    KEYWORD,
    KIND,
    LEAF,
    N_CHANGES,
    N_FILED,
    N_PENDING,
    NEEDED_KEYWORDS,
    NO_NODE,
    NODE,
    NODE_FIELDS,
    POSITION,
    PROVEN,
    SIZE,
    START,
)
from nearcast.papers.moving.moving_adaptive_tree.kernels.message_lists import empty_list, store_from
from nearcast.papers.moving.moving_adaptive_tree.kernels.move_diff import N_PAIRS, N_PAIRS_AND_CURRENT, diff_moves
from nearcast.papers.moving.moving_adaptive_tree.layout import (
    BEGIN,
    BEGUN,
    COUNT,
    EPOCH,
    HAD_CHILDREN,
    LENGTH,
    LIST_FIELDS,
    N_REINSERT,
    NEEDED_PENDING,
    PATH,
    PENDING_FIRST,
    PENDING_LAST,
    REINSERT_FIELDS,
)

FULL = 3  # the output is full


# --- messages of rebuilt nodes -----------------------------------------------------------------------------------------


@kernel
def position_at(tree, lists, path, rank, n_ranks, is_refining):
    """The position in a message's keywords at the end of a path from the root."""
    node, block, reinsert = tree.node, tree.block, lists.reinsert
    at = 0
    for step in range(reinsert[path + LENGTH] - 1):
        record = NODE_FIELDS * reinsert[path + PATH + step]
        following = reinsert[path + PATH + step + 1]
        if node[record + KIND] != KEYWORD or node[record + EXTRA] == following:
            continue
        first, n_cuts = node[record + FIRST], node[record + SIZE]
        cuts = first + BLOCK_FIELDS + n_cuts
        cut = 0
        for i in range(at, n_ranks):
            cut = find_cut(block, cuts, n_cuts, rank[i], cut)
            if block[first + BLOCK_FIELDS + cut] == following:
                at = i + step_in(block, cuts, cut, n_cuts, is_refining)
                break
    return at


@kernel
def count_below(tree, lists, work):
    """The number of entries at and below the pending nodes."""
    n = 0
    for p in range(work.state[N_PENDING]):
        work.stack[0] = work.pending[p * ITEM_FIELDS + NODE]
        size = 1
        while size > 0:
            size -= 1
            node_number = work.stack[size]
            n += lists.node_list[LIST_FIELDS * node_number + COUNT]
            if tree.node[NODE_FIELDS * node_number + KIND] != LEAF:
                size = push_children(tree, NODE_FIELDS * node_number, work.stack, size)
    return n


@kernel
def write_path(lists, work, p):
    """Write the path to a pending node."""
    pending, visit, reinsert = work.pending, work.visit, lists.reinsert
    path, length, parent = p * REINSERT_FIELDS, 1, pending[p * ITEM_FIELDS + START]
    while parent != NO_NODE:
        length += 1
        parent = visit[parent * ITEM_FIELDS + START]
    reinsert[path + LENGTH] = length
    reinsert[path + PATH + length - 1] = pending[p * ITEM_FIELDS + NODE]
    parent = pending[p * ITEM_FIELDS + START]
    for step in range(length - 2, -1, -1):
        reinsert[path + PATH + step] = visit[parent * ITEM_FIELDS + NODE]
        parent = visit[parent * ITEM_FIELDS + START]


@inline_kernel
def push_messages(lists, number, is_alive, n_pending):
    """Append the messages of a node to `pending`, each once; returns the new number of pending messages."""
    node_list, slot, stamp, pending, epoch = lists.node_list, lists.slot, lists.stamp, lists.pending, lists.head[EPOCH]
    begin = node_list[LIST_FIELDS * number + BEGIN]
    for entry in range(begin, begin + node_list[LIST_FIELDS * number + COUNT]):
        message = slot[entry]
        if is_alive[message] and stamp[message] != epoch:
            stamp[message] = epoch
            pending[n_pending] = message
            n_pending += 1
    return n_pending


@kernel
def gather_messages(tree, lists, work, is_alive):
    """Before nodes are rebuilt: collect the messages of each and empty the lists below. False if `pending` is too short.

    A message that is stored in several nodes below is taken once.
    """
    head, reinsert = lists.head, lists.reinsert
    if work.state[N_PENDING] == 0 or head[N_REINSERT] > 0:
        return True
    head[NEEDED_PENDING] = count_below(tree, lists, work)
    if head[NEEDED_PENDING] > lists.pending.size:
        return False
    head[N_REINSERT] = work.state[N_PENDING]
    n_pending = 0
    for p in range(work.state[N_PENDING]):
        number, path = work.pending[p * ITEM_FIELDS + NODE], p * REINSERT_FIELDS
        write_path(lists, work, p)
        head[EPOCH] += 1
        reinsert[path + PENDING_FIRST] = n_pending
        n_pending = push_messages(lists, number, is_alive, n_pending)
        had_children = tree.node[NODE_FIELDS * number + KIND] != LEAF
        reinsert[path + HAD_CHILDREN] = had_children
        size = push_children(tree, NODE_FIELDS * number, work.stack, 0) if had_children else 0
        while size > 0:
            size -= 1
            node_number = work.stack[size]
            if tree.node[NODE_FIELDS * node_number + KIND] != LEAF:
                size = push_children(tree, NODE_FIELDS * node_number, work.stack, size)
            n_pending = push_messages(lists, node_number, is_alive, n_pending)
            empty_list(lists, node_number)
        reinsert[path + PENDING_LAST] = n_pending
    return True


@kernel
def reinsert_below(tree, lists, messages, wanted, scratch, limit, is_refining):
    """Reinsert the messages of rebuilt nodes, from there on; returns False if capacity ran out."""
    reinsert, pending, head = lists.reinsert, lists.pending, lists.head
    while head[N_REINSERT] > 0:
        path = (head[N_REINSERT] - 1) * REINSERT_FIELDS
        number = reinsert[path + PATH + reinsert[path + LENGTH] - 1]
        is_leaf = tree.node[NODE_FIELDS * number + KIND] == LEAF
        if reinsert[path + HAD_CHILDREN] or not is_leaf:
            if reinsert[path + HAD_CHILDREN] != BEGUN:
                empty_list(lists, number)
                reinsert[path + HAD_CHILDREN] = BEGUN
            while reinsert[path + PENDING_LAST] > reinsert[path + PENDING_FIRST]:
                slot = pending[reinsert[path + PENDING_LAST] - 1]
                begin = messages.keyword_first[slot]
                n_ranks = rank_keywords(tree.rank, messages.keyword, begin, begin + messages.n_keywords[slot], scratch.rank)
                start = position_at(tree, lists, path, scratch.rank, n_ranks, is_refining)
                if not store_from(tree, lists, messages, wanted, scratch, slot, number, start, n_ranks, limit, is_refining):
                    return False
                reinsert[path + PENDING_LAST] -= 1
        head[N_REINSERT] -= 1
    return True


# --- insert and delete clauses -----------------------------------------------------------------------------------------


@kernel
def find_path(tree, clauses, work, options, clause):
    """Visit every node on the path of a clause; returns how many, or -1 if capacity ran out."""
    tree, clauses, work = borrow(tree), borrow(clauses), borrow(work)
    n_ranks = clauses.keyword_start[clause + 1] - clauses.keyword_start[clause]
    work.needed[NEEDED_KEYWORDS] = n_ranks
    if n_ranks > work.rank.size:
        return -1
    write_local(tree, clauses, work, 0, clause, 0)
    return visit_nodes(tree, work, n_ranks, options.is_refining)


@kernel
def has_capacity(tree, work, options, lists, n_visits):
    """Whether there is capacity to file a clause on the path that was found."""
    tree, work, lists = borrow(tree), borrow(work), borrow(lists)
    return (
        n_visits >= 0
        and has_entry_capacity(tree, work, n_visits, options.leaf_size)
        and n_visits * REINSERT_FIELDS <= lists.reinsert.size
    )


@kernel
def enter_leaves(tree, clauses, work, options, clause, n_visits):
    """Append a clause to the leaves on its path."""
    tree, clauses, work = borrow(tree), borrow(clauses), borrow(work)
    n_ranks = clauses.keyword_start[clause + 1] - clauses.keyword_start[clause]
    for at in range(0, n_visits * ITEM_FIELDS, ITEM_FIELDS):
        record = NODE_FIELDS * work.visit[at + NODE]
        if tree.node[record + KIND] == LEAF:
            bits = unproven_bits(work.rank, 0, n_ranks, np.int64(work.visit[at + PROVEN]))
            append_entry(tree, work, record, clause, bits, options.leaf_size)


@kernel
def leave_leaves(tree, work, clause, n_visits):
    """Remove a clause from the leaves on its path."""
    for at in range(0, n_visits * ITEM_FIELDS, ITEM_FIELDS):
        record = NODE_FIELDS * work.visit[at + NODE]
        if tree.node[record + KIND] == LEAF:
            remove_entry(tree, record, clause)


@kernel
def change_clauses(tree, clauses, expected, work, options, slots, step, lists, messages, scratch, limit):
    """File (step 1) or remove (step -1) the clauses from POSITION on: DONE, SHORT of capacity, or REBUILD_ALL before going
    on."""
    state = work.state
    while True:
        if not gather_messages(tree, lists, work, messages.is_alive):
            return SHORT
        if not apply_rebuilds(tree, clauses, expected, work, options):
            return SHORT
        if not reinsert_below(tree, lists, messages, work.needed, scratch, limit, options.is_refining):
            return SHORT
        if state[POSITION] == slots.size:
            return DONE
        clause = slots[state[POSITION]]
        n_visits = find_path(tree, clauses, work, options, clause)
        if not has_capacity(tree, work, options, lists, n_visits):
            return SHORT
        if step > 0:
            enter_leaves(tree, clauses, work, options, clause, n_visits)
        else:
            leave_leaves(tree, work, clause, n_visits)
        is_drifted = note_changes(tree, work, options, n_visits, step)
        state[POSITION] += 1
        if is_drifted:
            return REBUILD_ALL


# --- move clauses ------------------------------------------------------------------------------------------------------


@kernel
def leave_path(tree, clause, queue, n_nodes):
    """Remove a clause from the leaves of a path and decrement the counts on it; it is about to be filed on another path."""
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
    """Swap the box of a clause and the one at `i`."""
    x0, y0, x1, y1 = to
    clauses.x0[clause], x0[i] = x0[i], clauses.x0[clause]
    clauses.y0[clause], y0[i] = y0[i], clauses.y0[clause]
    clauses.x1[clause], x1[i] = x1[i], clauses.x1[clause]
    clauses.y1[clause], y1[i] = y1[i], clauses.y1[clause]


@kernel
def move_clauses(tree, clauses, expected, work, options, slots, arguments, lists, messages, scratch, limit):
    """Move the clauses from POSITION on to new boxes: DONE, SHORT of capacity, FULL output, or REBUILD_ALL before going on.

    One by one: no node should be rebuilt only because a whole batch is removed and not yet filed again.
    """
    tree, clauses, expected, work, lists = borrow(tree), borrow(clauses), borrow(expected), borrow(work), borrow(lists)
    slots, messages, scratch = borrow(slots), borrow(messages), borrow(scratch)
    to, path_scratch, ranges, output = borrow(arguments)
    state = work.state
    while True:
        if not gather_messages(tree, lists, work, messages.is_alive):
            return SHORT
        if not apply_rebuilds(tree, clauses, expected, work, options):
            return SHORT
        if not reinsert_below(tree, lists, messages, work.needed, scratch, limit, options.is_refining):
            return SHORT
        i, n_old = diff_moves(tree, lists, clauses, messages, slots, to, path_scratch, ranges, output, state[POSITION], options)
        state[POSITION] = i
        if n_old < 0:
            return FULL
        if i == slots.size:
            return DONE
        clause = slots[i]
        # The new path first: if there is no capacity for it, nothing has changed yet.
        swap_box(clauses, to, clause, i)
        n_visits = find_path(tree, clauses, work, options, clause)
        if not has_capacity(tree, work, options, lists, n_visits):
            swap_box(clauses, to, clause, i)
            return SHORT
        output.counters[N_PAIRS] = output.counters[N_PAIRS_AND_CURRENT]
        leave_path(tree, clause, path_scratch.queue, n_old)
        enter_leaves(tree, clauses, work, options, clause, n_visits)
        is_drifted = note_changes(tree, work, options, n_visits, 1)
        state[POSITION] += 1
        if is_drifted:
            return REBUILD_ALL
