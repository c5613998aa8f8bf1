"""Lists of messages at nodes: append, free, drop the dead, pack; and store messages at the nodes they reach."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.pools import NO_CHUNK, chunk_capacity, give_back, take_chunk
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
    NEEDED_NODES,
    NO_NODE,
    NODE_FIELDS,
    ROOT,
    ROWS,
    SIZE,
)
from nearcast.papers.boolean.quadtrees.kernels.lists import keyword_bit
from nearcast.papers.moving.moving_adaptive_tree.layout import (
    BEGIN,
    CAPACITY,
    COUNT,
    LIST_FIELDS,
    N_COPIES,
    N_USED,
    NEEDED_USED,
)

_LARGEST = 3.0e38
_MORE_NODES = 64


# --- lists of nodes ----------------------------------------------------------------------------------------------------


@inline_kernel
def rounded(value):
    """Round a coordinate for lists. Rounding is monotone, so that a closed interval loses nothing."""
    return np.float32(min(max(value, -_LARGEST), _LARGEST))


@inline_kernel
def bits_of(rank, n_ranks):
    """The bits of keywords, by their ranks."""
    bits = np.int64(0)
    for at in range(n_ranks):
        bits |= keyword_bit(rank[at])
    return bits


@inline_kernel
def list_capacity(size):
    """The new capacity of a full list."""
    return chunk_capacity(size + 1 + size // 4)


@inline_kernel
def append_message(lists, number, slot, bits, x, y):
    """Append a message to the list of a node; the arrays are large enough."""
    node_list, entry_slot, signature, point, head = lists.node_list, lists.slot, lists.signature, lists.point, lists.head
    record = LIST_FIELDS * number
    begin, size = node_list[record + BEGIN], node_list[record + COUNT]
    if size == node_list[record + CAPACITY]:
        capacity = list_capacity(size)
        moved = take_chunk(lists.free, entry_slot, head, N_USED, capacity)
        for i in range(size):
            entry_slot[moved + i] = entry_slot[begin + i]
            signature[moved + i] = signature[begin + i]
            point[2 * (moved + i)], point[2 * (moved + i) + 1] = point[2 * (begin + i)], point[2 * (begin + i) + 1]
        give_back(lists.free, entry_slot, begin, node_list[record + CAPACITY])
        node_list[record + BEGIN], node_list[record + CAPACITY] = moved, capacity
        begin = moved
    entry = begin + size
    entry_slot[entry], signature[entry] = slot, bits
    point[2 * entry], point[2 * entry + 1] = x, y
    node_list[record + COUNT] = size + 1
    head[N_COPIES] += 1


@inline_kernel
def empty_list(lists, number):
    """Free the list of a node."""
    node_list, record = lists.node_list, LIST_FIELDS * number
    lists.head[N_COPIES] -= node_list[record + COUNT]
    give_back(lists.free, lists.slot, node_list[record + BEGIN], node_list[record + CAPACITY])
    node_list[record + BEGIN], node_list[record + COUNT], node_list[record + CAPACITY] = 0, 0, 0


@kernel
def drop_dead(lists, is_alive, n_nodes):
    """Drop dead messages from all lists."""
    node_list, slot, signature, point, head = lists.node_list, lists.slot, lists.signature, lists.point, lists.head
    for number in range(n_nodes):
        record = LIST_FIELDS * number
        begin, n = node_list[record + BEGIN], node_list[record + COUNT]
        n_live = begin
        for entry in range(begin, begin + n):
            if is_alive[slot[entry]]:
                slot[n_live], signature[n_live] = slot[entry], signature[entry]
                point[2 * n_live], point[2 * n_live + 1] = point[2 * entry], point[2 * entry + 1]
                n_live += 1
        node_list[record + COUNT] = n_live - begin
        head[N_COPIES] -= n - (n_live - begin)


@kernel
def packed_size(lists, n_nodes):
    """The number of entries that all lists take when packed, each with its capacity."""
    node_list, size = lists.node_list, 0
    for number in range(n_nodes):
        n = node_list[LIST_FIELDS * number + COUNT]
        if n > 0:
            size += list_capacity(n)
    return size


@kernel
def pack_lists(lists, n_nodes, packed):
    """Copy all lists to `packed`, one after the other; nothing is free afterwards."""
    node_list, begin = lists.node_list, 0
    for number in range(n_nodes):
        record = LIST_FIELDS * number
        old, n = node_list[record + BEGIN], node_list[record + COUNT]
        for i in range(n):
            packed.slot[begin + i], packed.signature[begin + i] = lists.slot[old + i], lists.signature[old + i]
            packed.point[2 * (begin + i)], packed.point[2 * (begin + i) + 1] = (
                lists.point[2 * (old + i)],
                lists.point[2 * (old + i) + 1],
            )
        node_list[record + BEGIN], node_list[record + CAPACITY] = begin, list_capacity(n) if n > 0 else 0
        begin += node_list[record + CAPACITY]
    lists.free[:] = NO_CHUNK
    lists.head[N_USED] = begin


# --- store messages ----------------------------------------------------------------------------------------------------


@kernel
def make_child(tree, wanted, record, block_at):
    """Create an empty leaf at a position of the block, or as the child for all messages (negative). NO_NODE: no capacity.

    Paper: messages are stored only where there are leaves, and a clause that creates a leaf later does not find them.
    """
    tree = borrow(tree)
    node, block, head = tree.node, tree.block, tree.head
    if head[FREE_NODE] == NO_NODE and head[N_NODES] >= tree.n_below.size:
        wanted[NEEDED_NODES] = head[N_NODES] + _MORE_NODES
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
    """The number of cuts that contain a keyword of the message from `at` on."""
    block, rank = borrow(block), borrow(rank)
    n, before, cut = 0, -1, 0
    for i in range(at, n_ranks):
        cut = find_cut(block, cuts, n_cuts, rank[i], cut)
        if cut != before:
            n += 1
            before = cut
    return n


@kernel
def choose_nodes(tree, wanted, scratch, n_ranks, x, y, number, at, limit, is_refining):
    """Write the nodes that will hold a message that has come to a node; returns how many, or -1 if there are too few free
    nodes.

    At most `limit` nodes: where going on would make more, the message stays above.
    """
    tree, scratch = borrow(tree), borrow(scratch)
    node, block, bound = tree.node, tree.block, tree.bound
    rank, queue, position, target = scratch.rank, scratch.queue, scratch.position, scratch.target
    queue[0], position[0] = number, at
    n_queued, n_done, n_targets = 1, 0, 0
    while n_done < n_queued:
        node_number, at = queue[n_done], position[n_done]
        n_done += 1
        record = NODE_FIELDS * node_number
        kind, first = node[record + KIND], node[record + FIRST]
        n_cuts = node[record + SIZE]
        cuts = first + BLOCK_FIELDS + n_cuts
        n_children = 0
        if kind == KEYWORD:
            n_children = 1 + count_cuts(block, cuts, n_cuts, rank, at, n_ranks)
        elif kind != LEAF:
            n_children = 2
        if kind == LEAF or n_targets + (n_queued - n_done) + n_children > limit:
            target[n_targets] = node_number
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
def has_list_capacity(lists, target, n_targets):
    """Whether the lists of these nodes can take one more message each, without freed chunks."""
    lists, target = borrow(lists), borrow(target)
    node_list, n_used = lists.node_list, lists.head[N_USED]
    for i in range(n_targets):
        record = LIST_FIELDS * target[i]
        if node_list[record + COUNT] == node_list[record + CAPACITY]:
            n_used += list_capacity(node_list[record + COUNT])
    lists.head[NEEDED_USED] = n_used
    return n_used <= lists.slot.size


@kernel
def store_from(tree, lists, messages, wanted, scratch, slot, number, at, n_ranks, limit, is_refining):
    """Store a message with ranked keywords at or below a node; returns False, and stores nothing, if capacity ran out."""
    tree, lists, messages, scratch = borrow(tree), borrow(lists), borrow(messages), borrow(scratch)
    x, y = messages.x0[slot], messages.y0[slot]
    n_targets = choose_nodes(tree, wanted, scratch, n_ranks, x, y, number, at, limit, is_refining)
    if n_targets < 0 or not has_list_capacity(lists, scratch.target, n_targets):
        return False
    target, bits = scratch.target, bits_of(scratch.rank, n_ranks)
    for i in range(n_targets):
        append_message(lists, target[i], slot, bits, rounded(x), rounded(y))
    return True


@kernel
def store_messages(tree, lists, messages, wanted, scratch, slots, first, limit, is_refining):
    """Store the messages from position `first` of `slots` on; returns where capacity ran out, or the end."""
    tree, lists, messages, scratch, slots = borrow(tree), borrow(lists), borrow(messages), borrow(scratch), borrow(slots)
    keyword_first, n_keywords, keyword = messages.keyword_first, messages.n_keywords, messages.keyword
    rank_of, rank = tree.rank, scratch.rank
    for i in range(first, slots.size):
        begin = keyword_first[slots[i]]
        n_ranks = rank_keywords(rank_of, keyword, begin, begin + n_keywords[slots[i]], rank)
        if not store_from(tree, lists, messages, wanted, scratch, slots[i], ROOT, 0, n_ranks, limit, is_refining):
            return i
    return slots.size
