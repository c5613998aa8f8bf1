"""Append to the list of a node, free it; clear all lists of the dead, or of the room they do not use."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.pools import NO_CHUNK, chunk_capacity, give_back, take_chunk
from nearcast.papers.boolean.quadtrees.kernels.lists import keyword_bit
from nearcast.papers.moving.moving_adaptive_tree.layout import BEGIN, COUNT, LIST_FIELDS, N_COPIES, N_USED, ROOM

_LARGEST = 3.0e38


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
