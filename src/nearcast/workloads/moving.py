"""Subscribers who travel on roads, one position per time stamp, and the workload around them.

Paper: Brinkhoff 2002; Wang et al. 2017 (AP-Tree), §5.2.1: time stamps of 30 s, speeds 0.5 to 4 times medium, 10 to 80 % of the
subscribers move in each. Here trips lead to a fixed set of destinations, so that one search serves every trip to the same one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.errors import WorkloadError
from nearcast.workloads.base import Space
from nearcast.workloads.gazetteer import Gazetteer
from nearcast.workloads.pooled import PooledWorkload
from nearcast.workloads.randomness import integers, stream_key, uniforms
from nearcast.workloads.roads import RoadNetwork
from nearcast.workloads.sampling import MessageSource, RangeReading, SubscriptionSampling
from nearcast.workloads.shortest_paths import way_to
from nearcast.workloads.tables import subscription_table
from nearcast.workloads.travel import Travellers, fill_positions, travel
from nearcast.workloads.tweets import Tweets
from nearcast.workloads.words import Frequencies

STAMP_S = 30.0
# Medium: the fastest vehicle on the fastest road crosses the map in 50 time stamps.
MEDIUM_SPEED = 1.0 / 50
# Top speed of the classes of vehicles, relative to the fastest road.
VEHICLE_SPEED = np.array([1.0, 0.8, 0.6, 0.4, 0.25, 0.1])


class MovingSubscribers:
    """`n` subscribers on a network; `advance` takes them one time stamp further. Equal arguments give equal journeys.

    Parameters
    ----------
    speed
        Multiple of the medium speed.
    mobility
        Share of the subscribers who move in a time stamp; which ones is drawn anew each time.
    lifetime
        Mean number of time stamps after which a subscriber leaves and another, with an id `n` higher, starts elsewhere.
        None: they stay.
    n_destinations
        Places where trips may lead.
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
        # next_arc[d, i]: the arc to take at node i on the way to destination d.
        self.next_arc = np.stack([way_to(network.arcs, int(node))[0] for node in self.destination_node])
        self.stamp = 0
        self.ids = np.arange(n)
        self.departed = np.empty(0, np.int64)
        self._state = self._start(self.ids)

    @property
    def time_s(self) -> float:
        """Seconds since the journey began."""
        return self.stamp * STAMP_S

    def positions(self) -> pa.Table:
        """Where everybody is now: `id`, `x`, `y`."""
        return self._table(np.arange(self.ids.size))

    def advance(self) -> pa.Table:
        """Let a time stamp pass; returns the new positions of those who moved or came.

        `departed` then holds the ids that left.
        """
        self.stamp += 1
        slots = np.arange(self.ids.size)
        # Slot numbers are ids modulo n; a stamp has its own stream, so stopping and resuming does not change the journey.
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
            gone=np.zeros(ids.size),
            destination=integers(key, ids, 0, self.destination_node.size - 1, slot=1).astype(np.int32),
            n_trips=np.zeros(ids.size, np.int32),
            top_speed=VEHICLE_SPEED[integers(key, ids, 0, VEHICLE_SPEED.size - 1, slot=2)],
        )

    def _table(self, slots: NDArray[np.int64]) -> pa.Table:
        x, y = np.empty(slots.size), np.empty(slots.size)
        corners = (self.network.node_x, self.network.node_y)
        fill_positions(self.network.arcs, self.next_arc, corners, self._state, slots, (x, y))
        return pa.table({"id": self.ids[slots], "x": x, "y": y})


@dataclass(frozen=True)
class Moving(PooledWorkload):
    """Messages and keywords of `over`, boxes around subscribers on the roads; `subscribers` moves them.

    `network` is "generated", or the name of a network in `folder`/roads ("oldenburg", "oldenburg_brinkhoff", "sanjoaquin");
    `n_across` is the size of a generated one, `n_destinations` how many places trips lead to. Places of "gazetteer", which
    is read from `folder` too, are scaled into the square of the roads; `vocabulary_size` is that of tweets.
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
        for given, made_up in (("network", "generated"), ("over", "tweets")):
            name = getattr(self, given)
            if name != made_up and self.folder is None:
                raise WorkloadError(f"{given}={name!r} is read from files; give folder=, or {given}={made_up!r}")

    @cached_property
    def base(self) -> Tweets | Gazetteer:
        """The workload whose messages and keywords are used."""
        common = {name: getattr(self, name) for name in ("range", "range_low", "range_high", "n_keywords", "pool", "seed")}
        if self.over == "gazetteer" and self.folder is not None:
            return Gazetteer(self.folder, **common)
        return Tweets(**common, vocabulary_size=self.vocabulary_size, frequencies=self.frequencies)

    @cached_property
    def roads(self) -> RoadNetwork:
        """The network."""
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
        """The travellers behind `subscriptions(n, seed)`: same ids, same starting places."""
        return MovingSubscribers(self.roads, n, seed, self.speed, self.mobility, n_destinations=self.n_destinations)

    def subscriptions(self, n: int, seed: int = 1) -> pa.Table:
        keywords, _ = self.sample_subscriptions(n, seed)
        start = self.subscribers(n, seed).positions()
        return subscription_table(np.arange(n), keywords, self.regions(start, seed))

    def moves(self, positions: pa.Table, seed: int = 1) -> pa.Table:
        """The new regions (`id`, `x0` ... `y1`) of subscribers at these positions; a region keeps its size."""
        return pa.table({"id": positions["id"], **self.regions(positions, seed)._asdict()})

    def regions(self, positions: pa.Table, seed: int = 1) -> Any:
        """Boxes around positions."""
        centre = (positions["x"].to_numpy(), positions["y"].to_numpy())
        return self.sampling.boxes_around(centre, self.source.bounds, positions["id"].to_numpy(), seed)

    def describe(self) -> dict[str, Any]:
        used = self.base.describe().get("frequencies", "corpus")
        own = {"vocabulary_size": self.base.vocabulary_size, "frequencies": used}
        return {**super().describe(), "folder": None if self.folder is None else str(self.folder), **own}


class InUnitSquare:
    """Messages with their places scaled so that all lie in the unit square."""

    bounds = (0.0, 0.0, 1.0, 1.0)

    def __init__(self, source: MessageSource) -> None:
        self._source = source
        self.size = source.size
        self.keywords, self.times = source.keywords, source.times

    def locations(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        x0, y0, x1, y1 = self._source.bounds
        x, y = self._source.locations(numbers)
        # Places are moved a little, perhaps out of the box around all rows.
        return np.clip((x - x0) / (x1 - x0), 0.0, 1.0), np.clip((y - y0) / (y1 - y0), 0.0, 1.0)
