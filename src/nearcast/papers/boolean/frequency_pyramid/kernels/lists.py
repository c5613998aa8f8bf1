"""Lists of clauses and the edges that lead to them: make, change and clean them.

A list that outgrows its chunk moves to another. Its header has the number of its clauses, its capacity, and one more number:
for a list of a cell the quarters that share it (a bit each); for a list at the end of a path in a trie how many of its clauses
may still move down. Those come first.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.hashing import FREE, find_value, home, insert
from nearcast.kernels.pools import chunk_capacity, give_back, take_chunk
from nearcast.papers.boolean.frequency_pyramid.layout import (
    ANCHOR_SHIFT,
    BELOW,
    CLAUSE,
    CLEANER,
    ENTRY_WORDS,
    LONGEST,
    MASK,
    N_EDGES,
    N_ENTRIES,
    N_LISTS,
    N_NODES,
    N_UNCLEANED,
    N_WORDS,
    NO_ANCHOR,
    NODE_FIELDS,
    NOTHING,
)
from nearcast.papers.boolean.quadtrees.kernels.lists import keyword_bit

_BITS = 25
_MOST = (1 << _BITS) - 1


@inline_kernel
def list_size(header):
    return header & _MOST


@inline_kernel
def list_capacity(header):
    return (header >> _BITS) & _MOST


@inline_kernel
def list_extra(header):
    return header >> (2 * _BITS)


@inline_kernel
def list_header(size, capacity, extra):
    return np.int64(size) | (np.int64(capacity) << _BITS) | (np.int64(extra) << (2 * _BITS))


@inline_kernel
def signature_at(start, position):
    return start + 1 + position


@inline_kernel
def entry_at(word, start, position):
    return start + 1 + list_capacity(word[start]) + ENTRY_WORDS * position


@inline_kernel
def copy_entry(word, source, position, target, target_position):
    """Copy the clause at a position of a list to a position of another list, or of the same."""
    word[signature_at(target, target_position)] = word[signature_at(source, position)]
    old, new = entry_at(word, source, position), entry_at(word, target, target_position)
    for at in range(ENTRY_WORDS):
        word[new + at] = word[old + at]


@inline_kernel
def wider_capacity(size):
    """The capacity of a full list that gets one more clause."""
    return size + 1 if size < 8 else size + 1 + size // 4


@inline_kernel
def chunk_words(capacity):
    return chunk_capacity(1 + (1 + ENTRY_WORDS) * capacity)


@inline_kernel
def nth_anchor(keyword_start, keyword, clause, position):
    """The anchor at a position in the order of tries: the highest id first, since ids of frequent keywords are low."""
    start, stop = keyword_start[clause], keyword_start[clause + 1]
    return 1 + np.int64(keyword[stop - 1 - position]) if start < stop else np.int64(NO_ANCHOR)


@inline_kernel
def unproven_bits(keyword_start, keyword, clause, n_proven):
    """The bits of the keywords after the first `n_proven` in the order of tries."""
    bits = np.int64(0)
    for at in range(keyword_start[clause], keyword_start[clause + 1] - n_proven):
        bits |= keyword_bit(keyword[at])
    return bits


@kernel
def new_list(pyramid, capacity, extra):
    """Make an empty list; returns its start. The capacity is enough."""
    pyramid = borrow(pyramid)
    word, head = pyramid.word, pyramid.head
    start = take_chunk(pyramid.free_word, word, head, N_WORDS, chunk_words(capacity))
    word[start] = list_header(0, capacity, extra)
    head[N_LISTS] += 1
    return start


@kernel
def free_list(pyramid, start):
    """Free a list with all its entries."""
    pyramid = borrow(pyramid)
    header = pyramid.word[start]
    pyramid.head[N_LISTS] -= 1
    pyramid.head[N_ENTRIES] -= list_size(header)
    give_back(pyramid.free_word, pyramid.word, start, chunk_words(list_capacity(header)))


@kernel
def reserve_entry(pyramid, start):
    """Make a list able to take one more clause; returns its start. If it moved, the caller must change the edges to it."""
    pyramid = borrow(pyramid)
    word, head = pyramid.word, pyramid.head
    header = word[start]
    size, capacity = list_size(header), list_capacity(header)
    if size < capacity:
        return start
    wider = wider_capacity(size)
    moved = take_chunk(pyramid.free_word, word, head, N_WORDS, chunk_words(wider))
    word[moved] = list_header(size, wider, list_extra(header))
    for position in range(size):
        copy_entry(word, start, position, moved, position)
    give_back(pyramid.free_word, word, start, chunk_words(capacity))
    return moved


@kernel
def append_clause(pyramid, clauses, start, clause, bits):
    """Append a clause to a list that is not full."""
    pyramid, clauses = borrow(pyramid), borrow(clauses)
    word, number, head = pyramid.word, pyramid.number, pyramid.head
    size = list_size(word[start])
    entry = entry_at(word, start, size)
    number[entry], number[entry + 1] = clauses.x0[clause], clauses.y0[clause]
    number[entry + 2], number[entry + 3] = clauses.x1[clause], clauses.y1[clause]
    word[entry + CLAUSE], word[signature_at(start, size)] = clause, bits
    word[start] += 1
    head[N_ENTRIES] += 1
    head[LONGEST] = max(head[LONGEST], size + 1)


@inline_kernel
def has_clause(word, start, clause):
    for position in range(list_size(word[start])):
        if word[entry_at(word, start, position) + CLAUSE] == clause:
            return True
    return False


@kernel
def remove_dead(pyramid, is_alive, start, is_end):
    """Remove dead clauses from a list, in order; at the end of a path (`is_end`) count those that may move down."""
    pyramid = borrow(pyramid)
    word, head = pyramid.word, pyramid.head
    header = word[start]
    size, extra = list_size(header), list_extra(header)
    n_left, n_movable = 0, 0
    for position in range(size):
        if is_alive[word[entry_at(word, start, position) + CLAUSE]]:
            if position < extra:
                n_movable += 1
            if n_left < position:
                copy_entry(word, start, position, start, n_left)
            n_left += 1
    head[N_ENTRIES] -= size - n_left
    word[start] = list_header(n_left, list_capacity(header), n_movable if is_end else extra)


@inline_kernel
def path_length(keyword_start, clause):
    """The number of keywords of a clause, or 1 for NO_ANCHOR."""
    return max(np.int64(1), keyword_start[clause + 1] - keyword_start[clause])


@inline_kernel
def edge_key(node, anchor):
    """The key of an edge in the table; never 0."""
    return ((np.int64(node) << ANCHOR_SHIFT) | np.int64(anchor)) + 1


@inline_kernel
def find_edge(slot, node, anchor):
    """Where the edge leads: a list, ~node, or NOTHING."""
    key = edge_key(node, anchor)
    return find_value(slot, key, home(key, slot.size // 2), NOTHING)


@kernel
def set_edge(pyramid, node, anchor, value):
    """Set the target of an edge, which is made if there is none. The capacity is enough."""
    pyramid = borrow(pyramid)
    slot = pyramid.slot
    key = edge_key(node, anchor)
    at, is_new = insert(slot, key, home(key, slot.size // 2))
    if is_new:
        pyramid.head[N_EDGES] += 1
        pyramid.node[NODE_FIELDS * node + MASK] |= keyword_bit(anchor)
    slot[2 * at + 1] = value


@kernel
def new_nodes(pyramid, count):
    """Make `count` nodes without edges; returns the first. The capacity is enough."""
    pyramid = borrow(pyramid)
    node, head = pyramid.node, pyramid.head
    first = head[N_NODES]
    for at in range(first, first + count):
        node[NODE_FIELDS * at + MASK], node[NODE_FIELDS * at + BELOW] = 0, NOTHING
    head[N_NODES] += count
    return first


@kernel
def collect_dead(pyramid, is_alive, n_slots):
    """Remove dead clauses from the lists that the next `n_slots` slots lead to. Paper: FAST's cleaner.

    N_UNCLEANED counts the slots until the round since the last deletion is complete: at 0 no list has a dead clause.
    """
    pyramid = borrow(pyramid)
    slot, node, head = pyramid.slot, pyramid.node, pyramid.head
    n_all = slot.size // 2
    n_now = min(n_slots, head[N_UNCLEANED])
    head[N_UNCLEANED] -= n_now
    for _ in range(n_now):
        at = 2 * (head[CLEANER] % n_all)
        head[CLEANER] = (head[CLEANER] + 1) % n_all
        if slot[at] == FREE:
            continue
        value = slot[at + 1]
        if value >= 0:
            remove_dead(pyramid, is_alive, value, False)
        elif node[NODE_FIELDS * ~value + BELOW] != NOTHING:
            remove_dead(pyramid, is_alive, node[NODE_FIELDS * ~value + BELOW], True)
