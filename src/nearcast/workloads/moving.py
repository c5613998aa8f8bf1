"""Subscribers who travel on roads, one position per time stamp, and the workload around them.

Paper: Brinkhoff 2002; Wang et al. 2017 (AP-Tree), §5.2.1: time stamps of 30 s, speeds 0.5 to 4 times medium, 10 to 80 % of the
subscribers move in each. Here trips lead to a fixed set of destinations, so one search serves every trip to the same one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.errors import WorkloadError
from nearcast.kernels.compile import kernel
from nearcast.workloads.base import Space, Workload
from nearcast.workloads.corpus import Gazetteer
from nearcast.workloads.randomness import draw, high_key, integers, low_key, stream_key, uniforms
from nearcast.workloads.roads import NO_ARC, RoadNetwork, fastest_paths
from nearcast.workloads.sampling import MessageSource, RangeReading, SubscriptionSampling
from nearcast.workloads.short_messages import Tweets
from nearcast.workloads.tables import subscription_table
from nearcast.workloads.words import Frequencies

# More roads than anybody passes in a time stamp: ends the loop on roads of length zero.
MAX_ROADS_PER_STAMP = 10_000


class Travellers(NamedTuple):
    """The state of all travellers: each is on the path from `node` to `destination`, on the next arc."""

    node: NDArray[np.int32]  # int32[n], the node last passed
    travelled: NDArray[np.float64]  # float64[n], the distance from it
    destination: NDArray[np.int32]  # int32[n], row of next_arc
    n_trips: NDArray[np.int32]  # int32[n], trips completed
    top_speed: NDArray[np.float64]  # float64[n], of the vehicle, relative to the fastest road


@kernel
def travel(arcs: Any, next_arc: Any, key: Any, state: Any, ids: Any, movers_and_budget: Any) -> int:
    """Move the travellers `movers`. `budget` is the distance at relative speed 1. Returns the number of arcs visited."""
    movers, budget = movers_and_budget
    n_visited = 0
    for slot in movers:
        left = budget
        for _ in range(MAX_ROADS_PER_STAMP):
            n_visited += 1
            arc = next_arc[state.destination[slot], state.node[slot]]
            if arc == NO_ARC:
                if not choose_destination(next_arc, key, state, ids, slot):
                    break
                continue
            speed = min(arcs.speed[arc], state.top_speed[slot])
            needed = (arcs.length[arc] - state.travelled[slot]) / speed
            if needed > left:
                state.travelled[slot] += left * speed
                break
            left -= needed
            state.node[slot] = arcs.target[arc]
            state.travelled[slot] = 0.0
    return n_visited


@kernel
def choose_destination(next_arc: Any, key: Any, state: Any, ids: Any, slot: Any) -> bool:
    """Start the next trip of a traveller who has arrived; False if there is no other destination."""
    n_destinations = next_arc.shape[0]
    if n_destinations == 1:
        return False
    state.n_trips[slot] += 1
    number = ids[slot]
    bits = draw(low_key(key, number), high_key(key, number), np.int64(state.n_trips[slot]))
    # One of the other destinations: the draw skips the one just reached.
    step = 1 + ((bits * (n_destinations - 1)) >> 32)
    state.destination[slot] = (state.destination[slot] + step) % n_destinations
    return True


@kernel
def fill_positions(arcs: Any, next_arc: Any, nodes: Any, state: Any, slots: Any, output: Any) -> None:
    """Write the positions of the travellers `slots`: on the straight line of their arc."""
    node_x, node_y = nodes
    x, y = output
    for row in range(slots.size):
        slot = slots[row]
        node = state.node[slot]
        x[row] = node_x[node]
        y[row] = node_y[node]
        arc = next_arc[state.destination[slot], node]
        if arc != NO_ARC and arcs.length[arc] > 0.0:
            share = state.travelled[slot] / arcs.length[arc]
            target = arcs.target[arc]
            x[row] += share * (node_x[target] - node_x[node])
            y[row] += share * (node_y[target] - node_y[node])


STAMP_S = 30.0
# Medium: the fastest vehicle on the fastest road crosses the map in 50 time stamps.
MEDIUM_SPEED = 1.0 / 50
# Top speed of the classes of vehicles, relative to the fastest road.
VEHICLE_SPEED = np.array([1.0, 0.8, 0.6, 0.4, 0.25, 0.1])


class MovingSubscribers:
    """`n` subscribers on a network; `advance` moves them by one time stamp. Equal arguments give equal journeys.

    Parameters
    ----------
    speed
        Multiple of the medium speed.
    mobility
        Share of the subscribers who move in a time stamp; drawn again for each time stamp.
    lifetime
        Mean number of time stamps after which a subscriber leaves and another, with an id `n` higher, starts elsewhere.
        None: nobody leaves.
    n_destinations
        Number of nodes where trips may end.
    """

    def __init__(
        self,
        network: RoadNetwork,
        n: int,
        seed: int = 1,
        speed: float = 1.0,
        mobility: float = 1.0,
        lifetime: float | None = None,
        n_destinations: int = 128,
    ) -> None:
        if n < 0 or speed < 0 or not 0 <= mobility <= 1 or n_destinations < 1 or (lifetime is not None and lifetime < 1):
            raise WorkloadError(
                f"n={n!r}, speed={speed!r}, mobility={mobility!r}, lifetime={lifetime!r}, n_destinations={n_destinations!r} "
                "is not usable; give n >= 0, speed >= 0, mobility from 0 to 1, lifetime None or >= 1, n_destinations >= 1"
            )
        self.network, self.seed, self.speed, self.mobility, self.lifetime = network, seed, speed, mobility, lifetime
        rng = np.random.default_rng(seed)
        self.destination_node = rng.permutation(network.n_nodes)[:n_destinations].astype(np.int32)
        # next_arc[d, i]: the arc to take at node i towards destination d.
        self.next_arc = np.stack([fastest_paths(network.arcs, int(node))[0] for node in self.destination_node])
        self.stamp = 0
        self.ids = np.arange(n)
        self.departed = np.empty(0, np.int64)
        self._state = self._start(self.ids)

    @property
    def time_s(self) -> float:
        """Seconds since the journey began."""
        return self.stamp * STAMP_S

    def positions(self) -> pa.Table:
        """The positions of all subscribers: `id`, `x`, `y`."""
        return self._table(np.arange(self.ids.size))

    def advance(self) -> pa.Table:
        """Move by one time stamp. Returns the new positions of the subscribers that moved or arrived.

        Afterwards `departed` holds the ids that left.
        """
        self.stamp += 1
        slots = np.arange(self.ids.size)
        # Slot numbers are ids modulo n. Each stamp has its own stream of draws: stopping and resuming changes nothing.
        is_new = np.zeros(slots.size, bool)
        if self.lifetime is not None:
            is_new = uniforms(stream_key(self.seed, f"leave {self.stamp}"), slots) < 1.0 / self.lifetime
        self.departed = self.ids[is_new]
        self.ids = self.ids + np.where(is_new, slots.size, 0)
        newcomers = self._start(self.ids[is_new])
        for name in Travellers._fields:
            getattr(self._state, name)[is_new] = getattr(newcomers, name)
        is_moving = (uniforms(stream_key(self.seed, f"move {self.stamp}"), slots) < self.mobility) & ~is_new
        movers = np.flatnonzero(is_moving)
        budget = MEDIUM_SPEED * self.speed
        travel(self.network.arcs, self.next_arc, stream_key(self.seed, "trip"), self._state, self.ids, (movers, budget))
        return self._table(np.flatnonzero(is_moving | is_new))

    def _start(self, ids: NDArray[np.int64]) -> Travellers:
        key = stream_key(self.seed, "start")
        return Travellers(
            node=integers(key, ids, 0, self.network.n_nodes - 1).astype(np.int32),
            travelled=np.zeros(ids.size),
            destination=integers(key, ids, 0, self.destination_node.size - 1, slot=1).astype(np.int32),
            n_trips=np.zeros(ids.size, np.int32),
            top_speed=VEHICLE_SPEED[integers(key, ids, 0, VEHICLE_SPEED.size - 1, slot=2)],
        )

    def _table(self, slots: NDArray[np.int64]) -> pa.Table:
        x, y = np.empty(slots.size), np.empty(slots.size)
        nodes = (self.network.node_x, self.network.node_y)
        fill_positions(self.network.arcs, self.next_arc, nodes, self._state, slots, (x, y))
        return pa.table({"id": self.ids[slots], "x": x, "y": y})


@dataclass(frozen=True)
class Moving(Workload):
    """Messages and keywords of `over`, and boxes around subscribers on roads; `subscribers` moves them.

    `network` is "generated", or the name of a network in `folder`/roads ("oldenburg", "oldenburg_brinkhoff", "sanjoaquin");
    `n_across` is the size of a generated one, `n_destinations` the number of nodes where trips end. The locations of
    "gazetteer", which is read from `folder` too, are scaled into the square of the roads. `vocabulary_size` is that of tweets.
    """

    name: ClassVar[str] = "moving"
    description: ClassVar[str] = "subscribers travelling on a road network, messages of tweets (AP+-Tree)"
    space: ClassVar[Space] = "plane"

    over: Literal["tweets", "gazetteer"] = "tweets"
    network: str = "generated"
    folder: str | Path | None = None
    speed: float = 1.0
    mobility: float = 0.2
    range: RangeReading = "area"
    range_low: float = 0.01
    range_high: float = 0.01
    n_keywords: int | tuple[int, int] = (1, 5)
    vocabulary_size: int = 1_700_000
    pool: int = 12_700_000
    seed: int = 7
    frequencies: Frequencies = "auto"
    n_across: int = 80
    n_destinations: int = 128

    def __post_init__(self) -> None:
        if self.over not in ("tweets", "gazetteer"):
            raise WorkloadError(f"over={self.over!r} is unknown; give 'tweets' or 'gazetteer'")
        for field, default in (("network", "generated"), ("over", "tweets")):
            name = getattr(self, field)
            if name != default and self.folder is None:
                raise WorkloadError(f"{field}={name!r} is read from files; give folder=, or {field}={default!r}")

    @cached_property
    def base(self) -> Tweets | Gazetteer:
        """The workload whose messages and keywords are used."""
        common = {name: getattr(self, name) for name in ("range", "range_low", "range_high", "n_keywords", "pool", "seed")}
        if self.over == "gazetteer" and self.folder is not None:
            return Gazetteer(self.folder, **common)
        return Tweets(**common, vocabulary_size=self.vocabulary_size, frequencies=self.frequencies)

    @cached_property
    def roads(self) -> RoadNetwork:
        """The road network."""
        if self.network == "generated" or self.folder is None:
            return RoadNetwork.generate(self.seed, self.n_across)
        return RoadNetwork.read(Path(self.folder) / "roads", self.network)

    @cached_property
    def source(self) -> MessageSource:
        return self.base.source if self.over == "tweets" else InUnitSquare(self.base.source)

    @property
    def sampling(self) -> SubscriptionSampling:
        return self.base.sampling

    @property
    def words(self) -> pa.Array:
        return self.base.words

    def subscribers(self, n: int, seed: int = 1) -> MovingSubscribers:
        """The travellers of `subscriptions(n, seed)`: the same ids and starting positions."""
        return MovingSubscribers(self.roads, n, seed, self.speed, self.mobility, n_destinations=self.n_destinations)

    def subscriptions(self, n: int, seed: int = 1) -> pa.Table:
        keywords, _ = self.sample_subscriptions(n, seed)
        start = self.subscribers(n, seed).positions()
        return subscription_table(np.arange(n), keywords, self.regions(start, seed))

    def moves(self, positions: pa.Table, seed: int = 1) -> pa.Table:
        """The new regions (`id`, `x0` ... `y1`) of subscribers at these positions; a region keeps its size."""
        return pa.table({"id": positions["id"], **self.regions(positions, seed)._asdict()})

    def regions(self, positions: pa.Table, seed: int = 1) -> Any:
        """Boxes around positions; the size follows from the id."""
        centre = (positions["x"].to_numpy(), positions["y"].to_numpy())
        return self.sampling.boxes_around(centre, self.source.bounds, positions["id"].to_numpy(), seed)

    def describe(self) -> dict[str, Any]:
        return {
            **super().describe(),
            "folder": None if self.folder is None else str(self.folder),
            "vocabulary_size": self.base.vocabulary_size,
            "frequencies": self.base.describe().get("frequencies", "corpus"),
        }


class InUnitSquare:
    """The messages of another source with their locations scaled into the unit square."""

    bounds = (0.0, 0.0, 1.0, 1.0)

    def __init__(self, source: MessageSource) -> None:
        self._source = source
        self.size = source.size
        self.keywords, self.times = source.keywords, source.times

    def locations(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        x0, y0, x1, y1 = self._source.bounds
        x, y = self._source.locations(numbers)
        # Locations have a jitter, so some lie outside the box around all rows.
        return np.clip((x - x0) / (x1 - x0), 0.0, 1.0), np.clip((y - y0) / (y1 - y0), 0.0, 1.0)
