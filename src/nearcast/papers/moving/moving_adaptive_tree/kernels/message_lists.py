"""Append to the list of a node, free it; clear all lists of the dead, or of the room they do not use."""

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
from nearcast.papers.moving.moving_adaptive_tree.layout import BEGIN, COUNT, LIST_FIELDS, N_COPIES, N_USED, ROOM, WANTED_USED

_LARGEST = 3.0e38
_MORE_NODES = 64


# --- lists of nodes ----------------------------------------------------------------------------------------------------


@inline_kernel
def rounded(value):
    """A coordinate as it stands in lists. Rounding keeps the order, so that a closed interval loses nothing."""
    return np.float32(min(max(value, -_LARGEST), _LARGEST))


@inline_kernel
def bits_of(rank, n_ranks):
    """The bits of keywords, given by their places in the order."""
    bits = np.int64(0)
    for at in range(n_ranks):
        bits |= keyword_bit(rank[at])
    return bits


@inline_kernel
def list_room(size):
    """The room of a full list that takes one more."""
    return chunk_capacity(size + 1 + size // 4)


@inline_kernel
def append_message(lists, number, slot, bits, x, y):
    """Add a message to the list of a node; there is room."""
    own, entry_slot, signature, place, head = lists.own, lists.slot, lists.signature, lists.place, lists.head
    record = LIST_FIELDS * number
    begin, size = own[record + BEGIN], own[record + COUNT]
    if size == own[record + ROOM]:
        room = list_room(size)
        moved = take_chunk(lists.free, entry_slot, head, N_USED, room)
        for i in range(size):
            entry_slot[moved + i] = entry_slot[begin + i]
            signature[moved + i] = signature[begin + i]
            place[2 * (moved + i)], place[2 * (moved + i) + 1] = place[2 * (begin + i)], place[2 * (begin + i) + 1]
        give_back(lists.free, entry_slot, begin, own[record + ROOM])
        own[record + BEGIN], own[record + ROOM] = moved, room
        begin = moved
    entry = begin + size
    entry_slot[entry], signature[entry] = slot, bits
    place[2 * entry], place[2 * entry + 1] = x, y
    own[record + COUNT] = size + 1
    head[N_COPIES] += 1


@inline_kernel
def empty_list(lists, number):
    """Give back the list of a node."""
    own, record = lists.own, LIST_FIELDS * number
    lists.head[N_COPIES] -= own[record + COUNT]
    give_back(lists.free, lists.slot, own[record + BEGIN], own[record + ROOM])
    own[record + BEGIN], own[record + COUNT], own[record + ROOM] = 0, 0, 0


@kernel
def drop_dead(lists, is_alive, n_nodes):
    """Take the dead out of every list."""
    own, slot, signature, place, head = lists.own, lists.slot, lists.signature, lists.place, lists.head
    for number in range(n_nodes):
        record = LIST_FIELDS * number
        begin, n = own[record + BEGIN], own[record + COUNT]
        kept = begin
        for entry in range(begin, begin + n):
            if is_alive[slot[entry]]:
                slot[kept], signature[kept] = slot[entry], signature[entry]
                place[2 * kept], place[2 * kept + 1] = place[2 * entry], place[2 * entry + 1]
                kept += 1
        own[record + COUNT] = kept - begin
        head[N_COPIES] -= n - (kept - begin)


@kernel
def packed_size(lists, n_nodes):
    """How many entries all lists would take one after the other, each with some room."""
    own, size = lists.own, 0
    for number in range(n_nodes):
        n = own[LIST_FIELDS * number + COUNT]
        if n > 0:
            size += list_room(n)
    return size


@kernel
def pack_lists(lists, n_nodes, packed):
    """Copy all lists one after the other to where `packed` has room; nothing is free afterwards."""
    own, begin = lists.own, 0
    for number in range(n_nodes):
        record = LIST_FIELDS * number
        old, n = own[record + BEGIN], own[record + COUNT]
        for i in range(n):
            packed.slot[begin + i], packed.signature[begin + i] = lists.slot[old + i], lists.signature[old + i]
            packed.place[2 * (begin + i)], packed.place[2 * (begin + i) + 1] = (
                lists.place[2 * (old + i)],
                lists.place[2 * (old + i) + 1],
            )
        own[record + BEGIN], own[record + ROOM] = begin, list_room(n) if n > 0 else 0
        begin += own[record + ROOM]
    lists.free[:] = NO_CHUNK
    lists.head[N_USED] = begin


# --- store messages ----------------------------------------------------------------------------------------------------


@kernel
def make_child(tree, wanted, record, block_at):
    """An empty leaf at a place of the block, or as the child that every message enters (negative); NO_NODE: no room.

    Paper: messages are stored only where there are leaves, and are lost to a clause that comes where none was.
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
