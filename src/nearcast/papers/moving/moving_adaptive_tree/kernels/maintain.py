"""File and unfile clauses in a tree that holds messages: what is built anew takes its messages along."""

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
from nearcast.papers.moving.moving_adaptive_tree.kernels.move_diff import N_PAIRS, N_WITH_THIS, travel
from nearcast.papers.moving.moving_adaptive_tree.layout import (
    BEGIN,
    BEGUN,
    COUNT,
    EPOCH,
    HAD_CHILDREN,
    LENGTH,
    LIST_FIELDS,
    N_REPLAY,
    PILE_FIRST,
    PILE_LAST,
    REPLAY_FIELDS,
    WANTED_PILE,
    WAY,
)

FULL = 3  # no room for what is to be told


# --- messages of rebuilt nodes -----------------------------------------------------------------------------------------


@kernel
def position_at(tree, lists, way, rank, n_ranks, is_refining):
    """The position in a message's keywords when it comes to the end of a way from the root."""
    node, block, replay = tree.node, tree.block, lists.replay
    at = 0
    for step in range(replay[way + LENGTH] - 1):
        record = NODE_FIELDS * replay[way + WAY + step]
        following = replay[way + WAY + step + 1]
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
    """How many entries stand at and below the pending nodes."""
    n = 0
    for p in range(work.state[N_PENDING]):
        work.stack[0] = work.pending[p * ITEM_FIELDS + NODE]
        size = 1
        while size > 0:
            size -= 1
            own = work.stack[size]
            n += lists.own[LIST_FIELDS * own + COUNT]
            if tree.node[NODE_FIELDS * own + KIND] != LEAF:
                size = push_children(tree, NODE_FIELDS * own, work.stack, size)
    return n


@kernel
def note_way(lists, work, p):
    """Note the way to a pending node."""
    pending, visit, replay = work.pending, work.visit, lists.replay
    way, length, parent = p * REPLAY_FIELDS, 1, pending[p * ITEM_FIELDS + START]
    while parent != NO_NODE:
        length += 1
        parent = visit[parent * ITEM_FIELDS + START]
    replay[way + LENGTH] = length
    replay[way + WAY + length - 1] = pending[p * ITEM_FIELDS + NODE]
    parent = pending[p * ITEM_FIELDS + START]
    for step in range(length - 2, -1, -1):
        replay[way + WAY + step] = visit[parent * ITEM_FIELDS + NODE]
        parent = visit[parent * ITEM_FIELDS + START]


@inline_kernel
def pile_up(lists, number, is_alive, n_piled):
    """Put the messages of a node on the pile, each once; returns how many there are then."""
    own, slot, stamp, pile, epoch = lists.own, lists.slot, lists.stamp, lists.pile, lists.head[EPOCH]
    begin = own[LIST_FIELDS * number + BEGIN]
    for entry in range(begin, begin + own[LIST_FIELDS * number + COUNT]):
        message = slot[entry]
        if is_alive[message] and stamp[message] != epoch:
            stamp[message] = epoch
            pile[n_piled] = message
            n_piled += 1
    return n_piled


@kernel
def gather_messages(tree, lists, work, is_alive):
    """Before pending nodes are built anew: pile up the messages of each, and empty the lists below; False: the pile is small.

    A message that stood in several places below is taken once.
    """
    head, replay = lists.head, lists.replay
    if work.state[N_PENDING] == 0 or head[N_REPLAY] > 0:
        return True
    head[WANTED_PILE] = count_below(tree, lists, work)
    if head[WANTED_PILE] > lists.pile.size:
        return False
    head[N_REPLAY] = work.state[N_PENDING]
    n_piled = 0
    for p in range(work.state[N_PENDING]):
        number, way = work.pending[p * ITEM_FIELDS + NODE], p * REPLAY_FIELDS
        note_way(lists, work, p)
        head[EPOCH] += 1
        replay[way + PILE_FIRST] = n_piled
        n_piled = pile_up(lists, number, is_alive, n_piled)
        had_children = tree.node[NODE_FIELDS * number + KIND] != LEAF
        replay[way + HAD_CHILDREN] = had_children
        size = push_children(tree, NODE_FIELDS * number, work.stack, 0) if had_children else 0
        while size > 0:
            size -= 1
            own = work.stack[size]
            if tree.node[NODE_FIELDS * own + KIND] != LEAF:
                size = push_children(tree, NODE_FIELDS * own, work.stack, size)
            n_piled = pile_up(lists, own, is_alive, n_piled)
            empty_list(lists, own)
        replay[way + PILE_LAST] = n_piled
    return True


@kernel
def hand_down(tree, lists, messages, wanted, scratch, limit, is_refining):
    """Store the messages of nodes that were built anew, from there on; returns whether it is done, or room is short."""
    replay, pile, head = lists.replay, lists.pile, lists.head
    while head[N_REPLAY] > 0:
        way = (head[N_REPLAY] - 1) * REPLAY_FIELDS
        number = replay[way + WAY + replay[way + LENGTH] - 1]
        is_leaf = tree.node[NODE_FIELDS * number + KIND] == LEAF
        if replay[way + HAD_CHILDREN] or not is_leaf:
            if replay[way + HAD_CHILDREN] != BEGUN:
                empty_list(lists, number)
                replay[way + HAD_CHILDREN] = BEGUN
            while replay[way + PILE_LAST] > replay[way + PILE_FIRST]:
                slot = pile[replay[way + PILE_LAST] - 1]
                begin = messages.keyword_first[slot]
                n_ranks = rank_keywords(tree.rank, messages.keyword, begin, begin + messages.n_keywords[slot], scratch.rank)
                start = position_at(tree, lists, way, scratch.rank, n_ranks, is_refining)
                if not store_from(tree, lists, messages, wanted, scratch, slot, number, start, n_ranks, limit, is_refining):
                    return False
                replay[way + PILE_LAST] -= 1
        head[N_REPLAY] -= 1
    return True


# --- insert and delete clauses -----------------------------------------------------------------------------------------


@kernel
def find_way(tree, clauses, work, options, clause):
    """Visit every node on the way of a clause; returns how many, or -1 if room is short."""
    tree, clauses, work = borrow(tree), borrow(clauses), borrow(work)
    n_ranks = clauses.keyword_start[clause + 1] - clauses.keyword_start[clause]
    work.needed[NEEDED_KEYWORDS] = n_ranks
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
        and has_entry_capacity(tree, work, n_visits, options.leaf_size)
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
        if not apply_rebuilds(tree, clauses, expected, work, options):
            return SHORT
        if not hand_down(tree, lists, messages, work.needed, scratch, limit, options.is_refining):
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


# --- move clauses ------------------------------------------------------------------------------------------------------


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
        if not apply_rebuilds(tree, clauses, expected, work, options):
            return SHORT
        if not hand_down(tree, lists, messages, work.needed, scratch, limit, options.is_refining):
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
