"""Store messages at nodes: in the leaves they reach, or above where these would be too many."""

from __future__ import annotations

from nearcast.kernels.compile import borrow, kernel
from nearcast.papers.boolean.adaptive_tree.kernels.by_keyword import find_cut, step_in
from nearcast.papers.boolean.adaptive_tree.kernels.by_space import strip_of
from nearcast.papers.boolean.adaptive_tree.kernels.match import rank_keywords
from nearcast.papers.boolean.adaptive_tree.kernels.nodes import new_node
from nearcast.papers.boolean.adaptive_tree.kernels.rebuild import child_count
from nearcast.papers.boolean.adaptive_tree.layout import (
    BLOCK_FIELDS,
    BOUNDS,
    EXTRA,
    FIRST,
    FREE_NODE,
    KEYWORD,
    KIND,
    LEAF,
    N_NODES,
    NO_NODE,
    NODE_FIELDS,
    ROOT,
    ROWS,
    SIZE,
    WANTED_NODES,
)
from nearcast.papers.moving.moving_adaptive_tree.kernels.message_lists import append_message, bits_of, list_room, rounded
from nearcast.papers.moving.moving_adaptive_tree.layout import COUNT, LIST_FIELDS, N_USED, ROOM, WANTED_USED

_MORE_NODES = 64


@kernel
def make_child(tree, wanted, record, block_at):
    """An empty leaf at a place of the block, or as the child that every message enters (negative); NO_NODE: no room.

    Paper: messages are stored only where there are leaves, and are lost to a clause that comes where none was.
    """
    tree = borrow(tree)
    node, block, head = tree.node, tree.block, tree.head
    if head[FREE_NODE] == NO_NODE and head[N_NODES] >= tree.n_below.size:
        wanted[WANTED_NODES] = head[N_NODES] + _MORE_NODES
        return NO_NODE
    child = new_node(tree, 0)
    tree.share[child] = tree.share[record // NODE_FIELDS] / child_count(node, record)
    if block_at >= 0:
        block[block_at] = child
    else:
        node[record + EXTRA] = child
    return child


@kernel
def count_cuts(block, cuts, n_cuts, rank, at, n_ranks):
    """How many cuts have a keyword of the message from `at` on."""
    block, rank = borrow(block), borrow(rank)
    n, before, cut = 0, -1, 0
    for i in range(at, n_ranks):
        cut = find_cut(block, cuts, n_cuts, rank[i], cut)
        if cut != before:
            n += 1
            before = cut
    return n


@kernel
def choose_places(tree, wanted, scratch, n_ranks, x, y, number, at, limit, is_refining):
    """Write the nodes that are to hold a message that has come to a node; returns how many, or -1 if room for nodes is short.

    Not more than `limit` of them: where going on would make more, the message stays above.
    """
    tree, scratch = borrow(tree), borrow(scratch)
    node, block, bound = tree.node, tree.block, tree.bound
    rank, queue, position, target = scratch.rank, scratch.queue, scratch.position, scratch.target
    queue[0], position[0] = number, at
    n_queued, n_done, n_targets = 1, 0, 0
    while n_done < n_queued:
        own, at = queue[n_done], position[n_done]
        n_done += 1
        record = NODE_FIELDS * own
        kind, first = node[record + KIND], node[record + FIRST]
        n_cuts = node[record + SIZE]
        cuts = first + BLOCK_FIELDS + n_cuts
        n_children = 0
        if kind == KEYWORD:
            n_children = 1 + count_cuts(block, cuts, n_cuts, rank, at, n_ranks)
        elif kind != LEAF:
            n_children = 2
        if kind == LEAF or n_targets + (n_queued - n_done) + n_children > limit:
            target[n_targets] = own
            n_targets += 1
            continue
        if kind == KEYWORD:
            before, cut = -1, 0
            for i in range(at, n_ranks):
                cut = find_cut(block, cuts, n_cuts, rank[i], cut)
                if cut == before:
                    continue
                before = cut
                child_at = first + BLOCK_FIELDS + cut
                queue[n_queued] = block[child_at] if block[child_at] != NO_NODE else make_child(tree, wanted, record, child_at)
                position[n_queued] = i + step_in(block, cuts, cut, n_cuts, is_refining)
                n_queued += 1
        else:
            bounds = block[first + BOUNDS]
            n_columns, n_rows = node[record + SIZE] // ROWS, node[record + SIZE] % ROWS
            column = strip_of(bound, bounds + 1, n_columns, x)
            row = strip_of(bound, bounds + n_columns, n_rows, y)
            child_at = first + BLOCK_FIELDS + row * n_columns + column
            queue[n_queued] = block[child_at] if block[child_at] != NO_NODE else make_child(tree, wanted, record, child_at)
            position[n_queued] = at
            n_queued += 1
        extra = node[record + EXTRA]
        queue[n_queued] = extra if extra != NO_NODE else make_child(tree, wanted, record, -1)
        position[n_queued] = at
        n_queued += 1
        for i in range(n_queued - n_children, n_queued):
            if queue[i] == NO_NODE:
                return -1
    return n_targets


@kernel
def has_list_room(lists, target, n_targets):
    """Whether the lists of these nodes can take one more message each, whatever has been freed."""
    lists, target = borrow(lists), borrow(target)
    own, n_used = lists.own, lists.head[N_USED]
    for i in range(n_targets):
        record = LIST_FIELDS * target[i]
        if own[record + COUNT] == own[record + ROOM]:
            n_used += list_room(own[record + COUNT])
    lists.head[WANTED_USED] = n_used
    return n_used <= lists.slot.size


@kernel
def store_from(tree, lists, messages, wanted, scratch, slot, number, at, n_ranks, limit, is_refining):
    """Store a message, whose keywords are ranked, at or below a node; returns whether there was room (else nothing is)."""
    tree, lists, messages, scratch = borrow(tree), borrow(lists), borrow(messages), borrow(scratch)
    x, y = messages.x0[slot], messages.y0[slot]
    n_targets = choose_places(tree, wanted, scratch, n_ranks, x, y, number, at, limit, is_refining)
    if n_targets < 0 or not has_list_room(lists, scratch.target, n_targets):
        return False
    target, bits = scratch.target, bits_of(scratch.rank, n_ranks)
    for i in range(n_targets):
        append_message(lists, target[i], slot, bits, rounded(x), rounded(y))
    return True


@kernel
def store_messages(tree, lists, messages, wanted, scratch, slots, first, limit, is_refining):
    """Store the messages from position `first` of `slots` on; returns where room was short, or the end."""
    tree, lists, messages, scratch, slots = borrow(tree), borrow(lists), borrow(messages), borrow(scratch), borrow(slots)
    keyword_first, n_keywords, keyword = messages.keyword_first, messages.n_keywords, messages.keyword
    rank_of, rank = tree.rank, scratch.rank
    for i in range(first, slots.size):
        begin = keyword_first[slots[i]]
        n_ranks = rank_keywords(rank_of, keyword, begin, begin + n_keywords[slots[i]], rank)
        if not store_from(tree, lists, messages, wanted, scratch, slots[i], ROOT, 0, n_ranks, limit, is_refining):
            return i
    return slots.size
