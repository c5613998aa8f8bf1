"""What matching costs, as a formula: fitted to a few measured cells, good for others between and a little beyond them.

A message takes a constant, a part for each match (an id is copied), and a part that grows with the logarithm of the
subscriptions (lists lie ever farther from the processor). Bytes grow with the subscriptions.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Cell(NamedTuple):
    """One measurement: so many subscriptions, so many matches per message."""

    n_subscriptions: int
    matches: float
    us_per_message: float
    n_bytes: int


class SizingModel(NamedTuple):
    """`time` for a constant, a match, a doubling of subscriptions (µs); `space` for a constant and a subscription (bytes).

    `thread_share` is what each further thread brings of the first one's throughput.
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
    """The coefficients with the smallest relative errors; none is negative, for no part of the work saves any."""
    time = _fitted(
        [_time_features(cell.n_subscriptions, cell.matches) for cell in cells], [cell.us_per_message for cell in cells]
    )
    space = _fitted([(1.0, cell.n_subscriptions) for cell in cells], [cell.n_bytes for cell in cells])
    return SizingModel((time[0], time[1], time[2]), (space[0], space[1]), thread_share)


def _time_features(n_subscriptions: float, matches: float) -> tuple[float, float, float]:
    return 1.0, matches, float(np.log2(max(2.0, n_subscriptions)))


def _fitted(features: Sequence[Sequence[float]], measured: Sequence[float]) -> list[float]:
    wanted = np.array(measured, np.float64)
    # Divided by what was measured, so that errors count by their share.
    rows: NDArray[np.float64] = np.array(features, np.float64) / wanted[:, None]
    n = rows.shape[1]
    best, best_error = np.zeros(n), np.inf
    for size in range(1, n + 1):
        for chosen in map(list, combinations(range(n), size)):
            found, *_ = np.linalg.lstsq(rows[:, chosen], np.ones(len(rows)), rcond=None)
            error = float(np.square(rows[:, chosen] @ found - 1).sum())
            if (found >= 0).all() and error < best_error:
                best, best_error = np.zeros(n), error
                best[chosen] = found
    return [float(one) for one in best]
