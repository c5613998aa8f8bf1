"""Go round the edges, some at each change, and take the dead out of the lists they lead to.

UNSWEPT counts the slots until the round is complete since the last clause died: at 0 no list has a dead clause.
"""

from __future__ import annotations

from nearcast.kernels.compile import borrow, kernel
from nearcast.kernels.hashing import FREE
from nearcast.papers.boolean.frequency_pyramid.kernels.lists import drop_dead
from nearcast.papers.boolean.frequency_pyramid.layout import BELOW, NODE_FIELDS, NOTHING, SWEPT, UNSWEPT


@kernel
def sweep(pyramid, is_alive, n_slots):
    """Clean what so many slots lead to, from where the last sweep ended. Paper: FAST's cleaner."""
    pyramid = borrow(pyramid)
    slot, node, head = pyramid.slot, pyramid.node, pyramid.head
    n_all = slot.size // 2
    n_now = min(n_slots, head[UNSWEPT])
    head[UNSWEPT] -= n_now
    for _ in range(n_now):
        place = 2 * (head[SWEPT] % n_all)
        head[SWEPT] = (head[SWEPT] + 1) % n_all
        if slot[place] == FREE:
            continue
        value = slot[place + 1]
        if value >= 0:
            drop_dead(pyramid, is_alive, value, False)
        elif node[NODE_FIELDS * ~value + BELOW] != NOTHING:
            drop_dead(pyramid, is_alive, node[NODE_FIELDS * ~value + BELOW], True)
