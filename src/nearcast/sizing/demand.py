"""From what is asked for to machines: as few as hold the subscriptions and keep up with the messages."""

from __future__ import annotations

import math
from typing import NamedTuple

from nearcast.sizing.model import SizingModel

BUSY_SHARE = 0.6
"""How busy processors may be on the average; the rest is for bursts and everything else that runs there."""
HELD_SHARE = 0.7
"""How much of the memory may be taken."""
MERGING = 2.0
"""While an index is brought into shape there are two of it."""
_MOST_SHARDS = 100_000


class Demand(NamedTuple):
    """What a deployment must bear, and of what machines it is made."""

    n_subscriptions: int
    messages_per_second: float
    matches: float
    """For each message."""
    cores: int
    memory_bytes: float
    message_bytes: int
    delivery_bytes: int


class Deployment(NamedTuple):
    """Subscriptions are shared out to `shards`, which hear every message; each shard has `replicas` that take turns."""

    shards: int
    replicas: int
    bytes_per_shard: float
    us_per_message: float
    """On one core of one shard."""
    messages_per_second: float
    """What one machine could bear, fully busy."""
    bytes_in_per_second: float
    """To each machine."""
    bytes_out_per_second: float
    """From all of them."""

    @property
    def machines(self) -> int:
        return self.shards * self.replicas


def deployment_for(demand: Demand, model: SizingModel) -> Deployment | None:
    """The fewest machines; None if no number of them will do."""
    least = math.ceil(MERGING * model.n_bytes(demand.n_subscriptions) / (HELD_SHARE * demand.memory_bytes))
    best: Deployment | None = None
    shards = max(1, least)
    while shards <= min(_MOST_SHARDS, demand.n_subscriptions or 1):
        found = _with_shards(demand, model, shards)
        if found is not None and (best is None or found.machines < best.machines):
            best = found
        if best is not None and shards > best.machines:
            # More shards than machines of the best: each of them is at least one machine.
            break
        shards = max(shards + 1, shards * 5 // 4)
    return best


def _with_shards(demand: Demand, model: SizingModel, shards: int) -> Deployment | None:
    n_subscriptions, matches = demand.n_subscriptions / shards, demand.matches / shards
    n_bytes = model.n_bytes(n_subscriptions)
    if MERGING * n_bytes > HELD_SHARE * demand.memory_bytes:
        return None
    bearable = model.messages_per_second(n_subscriptions, matches, demand.cores)
    replicas = max(1, math.ceil(demand.messages_per_second / (BUSY_SHARE * bearable)))
    return Deployment(
        shards,
        replicas,
        n_bytes,
        model.us_per_message(n_subscriptions, matches),
        bearable,
        demand.messages_per_second / replicas * demand.message_bytes,
        demand.messages_per_second * demand.matches * demand.delivery_bytes,
    )
