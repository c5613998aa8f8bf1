"""Find, add and change edges, and make nodes."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import borrow, inline_kernel, kernel
from nearcast.kernels.hashing import find_value, home, insert
from nearcast.papers.boolean.frequency_pyramid.layout import (
    BELOW,
    MASK,
    N_EDGES,
    N_NODES,
    NODE_FIELDS,
    NOTHING,
    OWNER_SHIFT,
)
from nearcast.papers.boolean.quadtrees.kernels.cover import keyword_bit


@inline_kernel
def edge_key(node, owner):
    """The key of an edge in the table; never 0."""
    return ((np.int64(node) << OWNER_SHIFT) | np.int64(owner)) + 1


@inline_kernel
def find_edge(slot, node, owner):
    """Where the edge leads: a list, ~node, or NOTHING."""
    key = edge_key(node, owner)
    return find_value(slot, key, home(key, slot.size // 2), NOTHING)


@kernel
def set_edge(pyramid, node, owner, value):
    """Let an edge lead somewhere; it is made if there is none. There is room."""
    pyramid = borrow(pyramid)
    slot = pyramid.slot
    key = edge_key(node, owner)
    at, is_new = insert(slot, key, home(key, slot.size // 2))
    if is_new:
        pyramid.head[N_EDGES] += 1
        pyramid.node[NODE_FIELDS * node + MASK] |= keyword_bit(owner)
    slot[2 * at + 1] = value


@kernel
def new_nodes(pyramid, count):
    """The first of so many new nodes without edges; there is room."""
    pyramid = borrow(pyramid)
    node, head = pyramid.node, pyramid.head
    first = head[N_NODES]
    for at in range(first, first + count):
        node[NODE_FIELDS * at + MASK], node[NODE_FIELDS * at + BELOW] = 0, NOTHING
    head[N_NODES] += count
    return first
