"""Let travellers follow their fastest ways for one time stamp; they choose a new destination where they arrive.

Reads the arcs of a network and the next arc to each destination; writes the state of the travellers and their positions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.compile import kernel
from nearcast.workloads.randomness import draw, lane_of, twist_of
from nearcast.workloads.shortest_paths import NO_ARC

# More roads than anybody passes in a time stamp: stops a traveller among roads of length zero.
MAX_ROADS_PER_STAMP = 10_000


class Travellers(NamedTuple):
    """Everybody is on the way from `node` to `destination`, having gone a part of the next arc."""

    node: NDArray[np.int32]  # int32[n], the node last passed
    gone: NDArray[np.float64]  # float64[n], how far beyond it
    destination: NDArray[np.int32]  # int32[n], row of next_arc
    n_trips: NDArray[np.int32]  # int32[n], trips completed
    top_speed: NDArray[np.float64]  # float64[n], of the vehicle, relative to the fastest road


@kernel
def travel(arcs: Any, next_arc: Any, key: Any, state: Any, ids: Any, movers_and_budget: Any) -> int:
    """Move the given travellers; `budget` is the way made at relative speed 1. Returns how many arcs were looked at."""
    movers, budget = movers_and_budget
    n_looked_at = 0
    for slot in movers:
        left = budget
        for _ in range(MAX_ROADS_PER_STAMP):
            n_looked_at += 1
            arc = next_arc[state.destination[slot], state.node[slot]]
            if arc == NO_ARC:
                if not choose_destination(next_arc, key, state, ids, slot):
                    break
                continue
            speed = min(arcs.speed[arc], state.top_speed[slot])
            needed = (arcs.length[arc] - state.gone[slot]) / speed
            if needed > left:
                state.gone[slot] += left * speed
                break
            left -= needed
            state.node[slot] = arcs.target[arc]
            state.gone[slot] = 0.0
    return n_looked_at


@kernel
def choose_destination(next_arc: Any, key: Any, state: Any, ids: Any, slot: Any) -> bool:
    """Start the next trip of a traveller who has arrived; False where there is nowhere else to go."""
    n_destinations = next_arc.shape[0]
    if n_destinations == 1:
        return False
    state.n_trips[slot] += 1
    number = ids[slot]
    drawn = draw(lane_of(key, number), twist_of(key, number), np.int64(state.n_trips[slot]))
    # One of the others: the draw skips the destination just reached.
    step = 1 + ((drawn * (n_destinations - 1)) >> 32)
    state.destination[slot] = (state.destination[slot] + step) % n_destinations
    return True


@kernel
def fill_positions(arcs: Any, next_arc: Any, corners: Any, state: Any, slots: Any, output: Any) -> None:
    """Write where the given travellers are: on the straight line of their arc."""
    node_x, node_y = corners
    x, y = output
    for row in range(slots.size):
        slot = slots[row]
        node = state.node[slot]
        x[row] = node_x[node]
        y[row] = node_y[node]
        arc = next_arc[state.destination[slot], node]
        if arc != NO_ARC and arcs.length[arc] > 0.0:
            share = state.gone[slot] / arcs.length[arc]
            target = arcs.target[arc]
            x[row] += share * (node_x[target] - node_x[node])
            y[row] += share * (node_y[target] - node_y[node])
