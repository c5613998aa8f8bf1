"""What a message costs a shard, as straight lines through measured shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ShardLoads:
    """By shard: the lists it holds, the subscriptions it matches, and the share of messages that come to it."""

    owned: Array
    copies: Array
    reached: Array


@dataclass(frozen=True, slots=True)
class MeasuredShards:
    """Shards of a world with their busy time in µs per message of the stream, and what they hold in bytes."""

    loads: ShardLoads
    tell_us: Array
    take_us: Array
    slowest_us: float
    window_bytes: float
    list_bytes: float
    """Per list."""
    copy_bytes: float
    """Per subscription that is matched in another shard than its list is in."""
    reports_per_list: float
    """Reports per message and list."""
    feedback_per_list: float
    message_bytes: float


@dataclass(frozen=True, slots=True)
class CostModel:
    """Straight lines, in µs per message of the stream.

    To report (`tell`) costs a + b·reached + c·reached·copies, to apply (`take`) costs d + e·owned.
    """

    tell: Array
    take: Array

    @classmethod
    def fitted(cls, cells: Sequence[MeasuredShards]) -> CostModel:
        loads = [cell.loads for cell in cells]
        tell = np.concatenate([_tell_features(load) for load in loads])
        take = np.concatenate([_take_features(load) for load in loads])
        tell_us, take_us = (np.concatenate([getattr(cell, name) for cell in cells]) for name in ("tell_us", "take_us"))
        return cls(least_squares(tell, tell_us), least_squares(take, take_us))

    def tell_us(self, loads: ShardLoads) -> Array:
        return np.asarray(_tell_features(loads) @ self.tell)

    def take_us(self, loads: ShardLoads) -> Array:
        return np.asarray(_take_features(loads) @ self.take)

    def slowest_us(self, loads: ShardLoads) -> float:
        """The time of a message with a core for each shard: all have reported before any applies."""
        return float(self.tell_us(loads).max() + self.take_us(loads).max())

    def work_us(self, loads: ShardLoads) -> float:
        return float(self.tell_us(loads).sum() + self.take_us(loads).sum())


def error_percent(model: CostModel, cell: MeasuredShards) -> float:
    """By how many percent the model misses the work of a measured cell."""
    work = float(cell.tell_us.sum() + cell.take_us.sum())
    return abs(100.0 * (model.work_us(cell.loads) / work - 1.0))


def least_squares(features: Array, values: Array) -> Array:
    """Weights of features, none below 0: the feature with the lowest negative weight is left out, and the others fitted again.

    Columns are scaled first, so that counts of millions and shares of one weigh the same. Rows are scaled by their values, so
    that small shards count as much as large ones.
    """
    weights = np.zeros(features.shape[1])
    by_row = 1.0 / np.maximum(np.abs(values), 1e-9)
    used = np.flatnonzero(np.abs(features).max(axis=0, initial=0.0) > 0)
    if not values.any():
        return weights
    while len(used):
        scale = np.abs(features[:, used]).max(axis=0)
        fitted = np.linalg.lstsq(features[:, used] / scale * by_row[:, None], values * by_row, rcond=None)[0]
        if fitted.min() >= 0:
            weights[used] = fitted / scale
            break
        used = np.delete(used, fitted.argmin())
    return weights


def _tell_features(loads: ShardLoads) -> Array:
    return np.stack([np.ones(len(loads.owned)), loads.reached, loads.reached * loads.copies], axis=1)


def _take_features(loads: ShardLoads) -> Array:
    return np.stack([np.ones(len(loads.owned)), loads.owned], axis=1)
