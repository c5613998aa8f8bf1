"""Road networks as flat arrays: read from a folder, or generated from a seed.

Paper: Brinkhoff 2002 (network-based generator of moving objects): roads have classes, and a class has a speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from nearcast.errors import WorkloadError
from nearcast.workloads.shortest_paths import NO_ARC, Arcs, way_to

# Relative speed of road classes 0 (motorway) to 6 (side street).
CLASS_SPEED = np.array([1.0, 0.85, 0.7, 0.55, 0.45, 0.35, 0.25])
MIDDLE_CLASS = 3


@dataclass(frozen=True, eq=False)
class RoadNetwork:
    """Nodes in the unit square and undirected roads between them; all of it hangs together."""

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
        """A jittered grid of streets with a tenth missing, every `highway_every`-th line a complete fast road."""
        if n_across < 2 or highway_every < 1:
            raise WorkloadError(f"n_across={n_across!r}, highway_every={highway_every!r} is not usable; give at least 2 and 1")
        rng = np.random.default_rng(seed)
        column, row = (side.ravel() for side in np.meshgrid(np.arange(n_across), np.arange(n_across)))
        x, y = ((line + rng.uniform(-0.35, 0.35, line.size)) / n_across for line in (column, row))
        node = np.arange(n_across * n_across)
        along, across = node[column < n_across - 1], node[row < n_across - 1]
        start = np.concatenate([along, across])
        stop = np.concatenate([along + 1, across + n_across])
        line = np.concatenate([row[along], column[across]])
        is_highway = line % highway_every == 0
        classes = np.where(is_highway, line // highway_every % 2, rng.integers(3, 7, line.size))
        kept = is_highway | (rng.random(line.size) >= 0.1)
        return cls._connected(x, y, start[kept], stop[kept], classes[kept])

    @classmethod
    def _connected(cls, x: Any, y: Any, start: Any, stop: Any, classes: Any) -> RoadNetwork:
        """Keep the largest part that hangs together, scaled into the unit square with its shape kept."""
        start, stop = start.astype(np.int32), stop.astype(np.int32)
        whole = _arcs(x.size, start, stop, np.ones(start.size), np.ones(start.size))
        part = _largest_part(whole)
        new_node = np.cumsum(part) - 1
        kept = part[start] & part[stop] & (start != stop)
        x, y = x[part].astype(np.float64), y[part].astype(np.float64)
        size = max(float(np.ptp(x)), float(np.ptp(y))) or 1.0
        new_start, new_stop = (new_node[end[kept]].astype(np.int32) for end in (start, stop))
        return cls(
            (x - x.min()) / size, (y - y.min()) / size, new_start, new_stop, np.clip(classes[kept], 0, 6).astype(np.int32)
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
        """The nodes of the fastest way, both ends included."""
        next_arc, _ = way_to(self.arcs, destination)
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
        reached = np.isfinite(way_to(arcs, int(np.flatnonzero(unseen)[0]))[1])
        unseen &= ~reached
        if reached.sum() > largest.sum():
            largest = reached
    return largest
