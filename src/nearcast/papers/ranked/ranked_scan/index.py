"""`ranked_scan`: no index; for small numbers of subscriptions, and to compare the others with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.engine.registry import Parameters
from nearcast.papers.ranked.ranked_scan.kernels import run_ticks
from nearcast.papers.ranked.skyband.tick_index import TickArrays, TickIndex
from nearcast.ranked.index import DistanceScale
from nearcast.ranked.kernels.layouts import TickRules
from nearcast.ranked.subscriptions import RankedSubscriptions


class RankedScan(TickIndex):
    """Scores every subscription for every message."""

    name = "ranked_scan"
    paper = "none"
    summary = "every subscription is scored for every message"

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._distances = DistanceScale(False, 1.0)
        self._spread = np.zeros(0)

    def build(self, subscriptions: RankedSubscriptions, threshold: NDArray[np.float64], distances: DistanceScale) -> None:
        self._distances = distances

    def insert(self, subscriptions: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]) -> None:
        """Nothing to file."""

    def delete(self, subscriptions: RankedSubscriptions, numbers: NDArray[np.int32]) -> None:
        """Nothing is filed."""

    def thresholds_lowered(
        self, subscriptions: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]
    ) -> None:
        """Thresholds are read from the buffers."""

    def thresholds_raised(
        self, subscriptions: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]
    ) -> None:
        """Thresholds are read from the buffers."""

    def run_ticks(self, arrays: TickArrays, last: int, rules: TickRules) -> int:
        n_keywords = 1 + max((int(words.max()) for words in _keywords(arrays) if words.size), default=0)
        if n_keywords > self._spread.size:
            self._spread = np.zeros(2 * n_keywords)
        return int(run_ticks(self._distances, self._spread, *arrays, last, rules))

    def explain(self, subscriptions: RankedSubscriptions, number: int) -> list[str]:
        return ["every subscription is scored"]

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {}

    def restore(self, arrays: Mapping[str, NDArray[Any]], distances: DistanceScale) -> None:
        self._distances = distances


def _keywords(arrays: TickArrays) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    return arrays.subscriptions.keyword, arrays.window.keyword
