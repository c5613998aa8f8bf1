"""Road networks as flat arrays, read from a folder or generated from a seed, and the fastest paths on them.

Paper: Brinkhoff 2002 (network-based generator of moving objects): roads have classes, and a class has a speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from nearcast.errors import WorkloadError
from nearcast.kernels.compile import kernel

NO_ARC = -1


class Arcs(NamedTuple):
    """Every road twice, once from each end. The arcs of node i are `node_start[i]:node_start[i + 1]`."""

    node_start: NDArray[np.int32]  # int32[n_nodes + 1]
    target: NDArray[np.int32]  # int32[n_arcs], the node at the other end
    reverse: NDArray[np.int32]  # int32[n_arcs], the same road from the other end
    length: NDArray[np.float64]  # float64[n_arcs]
    speed: NDArray[np.float64]  # float64[n_arcs], relative to the fastest road (1.0)


class Heap(NamedTuple):
    """A binary heap of (cost, node), smallest cost on top. Its capacity is one entry per arc and one more."""

    cost: NDArray[np.float64]
    node: NDArray[np.int32]


def fastest_paths(arcs: Arcs, destination: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """For each node the next arc towards `destination` (NO_ARC there, and where no path leads) and the time left.

    Dijkstra's algorithm over flat arrays with a binary heap.
    """
    n_nodes, n_arcs = arcs.node_start.size - 1, arcs.target.size
    next_arc = np.full(n_nodes, NO_ARC, np.int32)
    time_left = np.full(n_nodes, np.inf)
    heap = Heap(np.empty(n_arcs + 1), np.empty(n_arcs + 1, np.int32))
    fill_fastest_paths(arcs, destination, next_arc, time_left, heap)
    return next_arc, time_left


@kernel
def fill_fastest_paths(arcs: Any, destination: Any, next_arc: Any, time_left: Any, heap: Any) -> int:
    """Visit nodes in order of their time to `destination`. Returns the number of entries popped from the heap."""
    time_left[destination] = 0.0
    heap.cost[0] = 0.0
    heap.node[0] = destination
    n_entries = 1
    n_popped = 0
    while n_entries > 0:
        cost = heap.cost[0]
        node = heap.node[0]
        n_entries -= 1
        sift_down(heap, n_entries)
        n_popped += 1
        # A faster path was found meanwhile; its older entry is still in the heap.
        if cost > time_left[node]:
            continue
        for arc in range(arcs.node_start[node], arcs.node_start[node + 1]):
            neighbour = arcs.target[arc]
            arrival = cost + arcs.length[arc] / arcs.speed[arc]
            if arrival < time_left[neighbour]:
                time_left[neighbour] = arrival
                next_arc[neighbour] = arcs.reverse[arc]
                sift_up(heap, n_entries, arrival, neighbour)
                n_entries += 1
    return n_popped


@kernel
def sift_up(heap: Any, slot: Any, cost: Any, node: Any) -> None:
    """Insert an entry at `slot`, the first free one, and move it up to its level."""
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
def sift_down(heap: Any, n_left: Any) -> None:
    """Move the last entry, at `n_left`, to the top and down to its level."""
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


# Relative speed of road classes 0 (motorway) to 6 (side street).
CLASS_SPEED = np.array([1.0, 0.85, 0.7, 0.55, 0.45, 0.35, 0.25])
MIDDLE_CLASS = 3


@dataclass(frozen=True, eq=False)
class RoadNetwork:
    """Nodes in the unit square and undirected roads between them; the network is connected."""

    node_x: NDArray[np.float64]  # float64[n_nodes]
    node_y: NDArray[np.float64]
    road_from: NDArray[np.int32]  # int32[n_roads], node at one end
    road_to: NDArray[np.int32]  # int32[n_roads], node at the other
    road_class: NDArray[np.int32]  # int32[n_roads], index into CLASS_SPEED

    @classmethod
    def read(cls, folder: str | Path, name: str) -> RoadNetwork:
        """`<name>_nodes.csv.gz` (id, x, y) and `<name>_edges.csv.gz` (id, a, b, perhaps class) of a folder."""
        tables = {}
        for part in ("nodes", "edges"):
            file = Path(folder) / f"{name}_{part}.csv.gz"
            if not file.is_file():
                raise WorkloadError(f"there is no file {str(file)!r}; give folder= the folder that holds the road networks")
            tables[part] = pa_csv.read_csv(file)
        nodes, edges = tables["nodes"], tables["edges"]
        ids = nodes["id"].to_numpy()
        order = np.argsort(ids)
        start, stop = (order[np.searchsorted(ids, edges[end].to_numpy(), sorter=order)] for end in ("a", "b"))
        middle = np.full(len(edges), MIDDLE_CLASS)
        classes = edges["class"].to_numpy() if "class" in edges.column_names else middle
        return cls._connected(nodes["x"].to_numpy(), nodes["y"].to_numpy(), start, stop, classes)

    @classmethod
    def generate(cls, seed: int = 7, n_across: int = 80, highway_every: int = 10) -> RoadNetwork:
        """A jittered grid of streets with a tenth missing; every `highway_every`-th line is a complete fast road."""
        if n_across < 2 or highway_every < 1:
            raise WorkloadError(f"n_across={n_across!r}, highway_every={highway_every!r} is not usable; give at least 2 and 1")
        rng = np.random.default_rng(seed)
        column, row = (axis.ravel() for axis in np.meshgrid(np.arange(n_across), np.arange(n_across)))
        x, y = ((line + rng.uniform(-0.35, 0.35, line.size)) / n_across for line in (column, row))
        node = np.arange(n_across * n_across)
        along, across = node[column < n_across - 1], node[row < n_across - 1]
        start = np.concatenate([along, across])
        stop = np.concatenate([along + 1, across + n_across])
        line = np.concatenate([row[along], column[across]])
        is_highway = line % highway_every == 0
        classes = np.where(is_highway, line // highway_every % 2, rng.integers(3, 7, line.size))
        exists = is_highway | (rng.random(line.size) >= 0.1)
        return cls._connected(x, y, start[exists], stop[exists], classes[exists])

    @classmethod
    def _connected(cls, x: Any, y: Any, start: Any, stop: Any, classes: Any) -> RoadNetwork:
        """The largest connected part, scaled into the unit square; its proportions stay."""
        start, stop = start.astype(np.int32), stop.astype(np.int32)
        whole = _arcs(x.size, start, stop, np.ones(start.size), np.ones(start.size))
        part = _largest_part(whole)
        new_node = np.cumsum(part) - 1
        is_kept = part[start] & part[stop] & (start != stop)
        x, y = x[part].astype(np.float64), y[part].astype(np.float64)
        size = max(float(np.ptp(x)), float(np.ptp(y))) or 1.0
        new_start, new_stop = (new_node[end[is_kept]].astype(np.int32) for end in (start, stop))
        return cls(
            (x - x.min()) / size, (y - y.min()) / size, new_start, new_stop, np.clip(classes[is_kept], 0, 6).astype(np.int32)
        )

    @property
    def n_nodes(self) -> int:
        return int(self.node_x.size)

    @property
    def n_roads(self) -> int:
        return int(self.road_from.size)

    @cached_property
    def arcs(self) -> Arcs:
        """The roads as seen from each node; lengths are straight-line distances."""
        length = np.hypot(
            self.node_x[self.road_from] - self.node_x[self.road_to], self.node_y[self.road_from] - self.node_y[self.road_to]
        )
        return _arcs(self.n_nodes, self.road_from, self.road_to, length, CLASS_SPEED[self.road_class])

    def route(self, start: int, destination: int) -> list[int]:
        """The nodes of the fastest path, both ends included."""
        next_arc, _ = fastest_paths(self.arcs, destination)
        nodes = [start]
        while next_arc[nodes[-1]] != NO_ARC:
            nodes.append(int(self.arcs.target[next_arc[nodes[-1]]]))
        return nodes


def _arcs(n_nodes: int, start: Any, stop: Any, length: Any, speed: Any) -> Arcs:
    n_roads = start.size
    origin, target = np.concatenate([start, stop]), np.concatenate([stop, start])
    order = np.argsort(origin, kind="stable")
    slot = np.empty(2 * n_roads, np.int32)
    slot[order] = np.arange(2 * n_roads, dtype=np.int32)
    reverse = np.roll(slot, n_roads)[order]
    node_start = np.searchsorted(origin[order], np.arange(n_nodes + 1)).astype(np.int32)
    both = (np.concatenate([values, values])[order].astype(np.float64) for values in (length, speed))
    return Arcs(node_start, target[order].astype(np.int32), reverse, *both)


def _largest_part(arcs: Arcs) -> NDArray[np.bool_]:
    """Which nodes belong to the largest connected part."""
    n_nodes = arcs.node_start.size - 1
    unseen = np.ones(n_nodes, bool)
    largest = np.zeros(n_nodes, bool)
    while int(unseen.sum()) > int(largest.sum()):
        is_reached = np.isfinite(fastest_paths(arcs, int(np.flatnonzero(unseen)[0]))[1])
        unseen &= ~is_reached
        if is_reached.sum() > largest.sum():
            largest = is_reached
    return largest
