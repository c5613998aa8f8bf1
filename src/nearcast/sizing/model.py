"""What matching costs, as a formula fitted to a few measured cells, and the machines that a load needs.

A message takes a constant, a part for each match (an id is copied), and a part that grows with the logarithm of the number of
subscriptions (lists lie farther from the processor). Bytes grow with the subscriptions. The formula holds between the cells and
a little beyond them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Cell(NamedTuple):
    """One measurement: the number of subscriptions, the matches per message, the cost."""

    n_subscriptions: int
    matches: float
    us_per_message: float
    n_bytes: int


class SizingModel(NamedTuple):
    """`time` in µs: a constant, per match, per doubling of subscriptions. `space` in bytes: a constant, per subscription.

    `thread_share` is the throughput of each further thread as a share of the first one's.
    """

    time: tuple[float, float, float]
    space: tuple[float, float]
    thread_share: float

    def us_per_message(self, n_subscriptions: float, matches: float) -> float:
        return float(np.dot(self.time, _time_features(n_subscriptions, matches)))

    def n_bytes(self, n_subscriptions: float) -> float:
        return float(np.dot(self.space, (1.0, n_subscriptions)))

    def messages_per_second(self, n_subscriptions: float, matches: float, cores: int) -> float:
        return 1e6 / self.us_per_message(n_subscriptions, matches) * (1 + (cores - 1) * self.thread_share)


def fit_model(cells: Sequence[Cell], thread_share: float) -> SizingModel:
    """The coefficients with the smallest relative errors; none is negative, because no part of the work saves time."""
    time = _fit([_time_features(cell.n_subscriptions, cell.matches) for cell in cells], [cell.us_per_message for cell in cells])
    space = _fit([(1.0, cell.n_subscriptions) for cell in cells], [cell.n_bytes for cell in cells])
    return SizingModel((time[0], time[1], time[2]), (space[0], space[1]), thread_share)


def _time_features(n_subscriptions: float, matches: float) -> tuple[float, float, float]:
    return 1.0, matches, float(np.log2(max(2.0, n_subscriptions)))


def _fit(features: Sequence[Sequence[float]], measured: Sequence[float]) -> list[float]:
    # Divided by the measured values: the fit minimises relative errors.
    rows: NDArray[np.float64] = np.array(features, np.float64) / np.array(measured, np.float64)[:, None]
    n = rows.shape[1]
    best, best_error = np.zeros(n), np.inf
    for size in range(1, n + 1):
        for columns in map(list, combinations(range(n), size)):
            solution, *_ = np.linalg.lstsq(rows[:, columns], np.ones(len(rows)), rcond=None)
            error = float(np.square(rows[:, columns] @ solution - 1).sum())
            if (solution >= 0).all() and error < best_error:
                best, best_error = np.zeros(n), error
                best[columns] = solution
    return [float(coefficient) for coefficient in best]


BUSY_SHARE = 0.6
"""The average load a processor may have. The rest is for bursts and for everything else on the machine."""
MEMORY_SHARE = 0.7
"""The share of the memory that may be used."""
COPIES_DURING_MERGE = 2.0
"""During a merge there are two copies of the index."""
_MAX_SHARDS = 100_000


class Demand(NamedTuple):
    """The load of a deployment and the size of its machines."""

    n_subscriptions: int
    messages_per_second: float
    matches: float
    """Matches per message."""
    cores: int
    memory_bytes: float
    message_bytes: int
    delivery_bytes: int


class Deployment(NamedTuple):
    """Subscriptions are split over `shards`. Every shard gets every message; the `replicas` of a shard take turns."""

    shards: int
    replicas: int
    bytes_per_shard: float
    us_per_message: float
    """Time on one core of one shard."""
    messages_per_second: float
    """The throughput of one machine, fully loaded."""
    bytes_in_per_second: float
    """Network traffic to each machine."""
    bytes_out_per_second: float
    """Network traffic from all machines."""

    @property
    def machines(self) -> int:
        return self.shards * self.replicas


def deployment_for(demand: Demand, model: SizingModel) -> Deployment | None:
    """The deployment with the fewest machines; None if no number of them suffices."""
    least = math.ceil(COPIES_DURING_MERGE * model.n_bytes(demand.n_subscriptions) / (MEMORY_SHARE * demand.memory_bytes))
    best: Deployment | None = None
    shards = max(1, least)
    while shards <= min(_MAX_SHARDS, demand.n_subscriptions or 1):
        deployment = _with_shards(demand, model, shards)
        if deployment is not None and (best is None or deployment.machines < best.machines):
            best = deployment
        if best is not None and shards > best.machines:
            # Each shard is at least one machine: no later deployment is smaller.
            break
        shards = max(shards + 1, shards * 5 // 4)
    return best


def _with_shards(demand: Demand, model: SizingModel, shards: int) -> Deployment | None:
    n_subscriptions, matches = demand.n_subscriptions / shards, demand.matches / shards
    n_bytes = model.n_bytes(n_subscriptions)
    if COPIES_DURING_MERGE * n_bytes > MEMORY_SHARE * demand.memory_bytes:
        return None
    throughput = model.messages_per_second(n_subscriptions, matches, demand.cores)
    replicas = max(1, math.ceil(demand.messages_per_second / (BUSY_SHARE * throughput)))
    return Deployment(
        shards,
        replicas,
        n_bytes,
        model.us_per_message(n_subscriptions, matches),
        throughput,
        demand.messages_per_second / replicas * demand.message_bytes,
        demand.messages_per_second * demand.matches * demand.delivery_bytes,
    )
