"""Fastest ways to one destination from everywhere: Dijkstra's algorithm over flat arrays with a binary heap.

Reads the arcs of a road network; writes, for each node, the time left and the arc to take next.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.compile import kernel

NO_ARC = -1


class Arcs(NamedTuple):
    """Every road twice, once from each end: arcs of node i are `node_start[i]:node_start[i + 1]`."""

    node_start: NDArray[np.int32]  # int32[n_nodes + 1]
    target: NDArray[np.int32]  # int32[n_arcs], the node at the other end
    reverse: NDArray[np.int32]  # int32[n_arcs], the same road seen from there
    length: NDArray[np.float64]  # float64[n_arcs]
    speed: NDArray[np.float64]  # float64[n_arcs], relative to the fastest road (1.0)


class Heap(NamedTuple):
    """A binary heap of (cost, node), smallest cost on top; room for one entry per arc and one more."""

    cost: NDArray[np.float64]
    node: NDArray[np.int32]


def way_to(arcs: Arcs, destination: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """For each node the arc to take next towards `destination` (NO_ARC there, or where no way leads) and the time left."""
    n_nodes, n_arcs = arcs.node_start.size - 1, arcs.target.size
    next_arc = np.full(n_nodes, NO_ARC, np.int32)
    left_s = np.full(n_nodes, np.inf)
    heap = Heap(np.empty(n_arcs + 1), np.empty(n_arcs + 1, np.int32))
    fill_way_to(arcs, destination, next_arc, left_s, heap)
    return next_arc, left_s


@kernel
def fill_way_to(arcs: Any, destination: Any, next_arc: Any, left_s: Any, heap: Any) -> int:
    """Settle nodes in order of their time to `destination`; returns how many entries were taken off the heap."""
    left_s[destination] = 0.0
    heap.cost[0] = 0.0
    heap.node[0] = destination
    n_waiting = 1
    n_taken = 0
    while n_waiting > 0:
        cost = heap.cost[0]
        node = heap.node[0]
        n_waiting -= 1
        sink(heap, n_waiting)
        n_taken += 1
        # An entry that a faster way has overtaken is still in the heap.
        if cost > left_s[node]:
            continue
        for arc in range(arcs.node_start[node], arcs.node_start[node + 1]):
            neighbour = arcs.target[arc]
            reached = cost + arcs.length[arc] / arcs.speed[arc]
            if reached < left_s[neighbour]:
                left_s[neighbour] = reached
                next_arc[neighbour] = arcs.reverse[arc]
                rise(heap, n_waiting, reached, neighbour)
                n_waiting += 1
    return n_taken


@kernel
def rise(heap: Any, slot: Any, cost: Any, node: Any) -> None:
    """Put an entry in at `slot`, the first free one, and move it up to its level."""
    while slot > 0:
        parent = (slot - 1) // 2
        if heap.cost[parent] <= cost:
            break
        heap.cost[slot] = heap.cost[parent]
        heap.node[slot] = heap.node[parent]
        slot = parent
    heap.cost[slot] = cost
    heap.node[slot] = node


@kernel
def sink(heap: Any, n_left: Any) -> None:
    """Fill the hole on top with the last of the `n_left` entries and move it down to its level."""
    cost = heap.cost[n_left]
    node = heap.node[n_left]
    slot = 0
    while True:
        child = 2 * slot + 1
        if child >= n_left:
            break
        if child + 1 < n_left and heap.cost[child + 1] < heap.cost[child]:
            child += 1
        if heap.cost[child] >= cost:
            break
        heap.cost[slot] = heap.cost[child]
        heap.node[slot] = heap.node[child]
        slot = child
    heap.cost[slot] = cost
    heap.node[slot] = node
