"""The index that files nothing: small numbers of subscriptions, and a second opinion on the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.engine.registry import Parameters
from nearcast.papers.ranked.ranked_scan.kernels import run_ticks
from nearcast.papers.ranked.skyband.tick_index import Scene, TickIndex
from nearcast.ranked.index import DistanceScale
from nearcast.ranked.kernels.layouts import Rules
from nearcast.ranked.subscriptions import RankedSubscriptions


class RankedScan(TickIndex):
    """Looks at every subscription for every message."""

    name = "ranked_scan"
    paper = "none"
    summary = "every subscription is scored for every message"

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._ground = DistanceScale(False, 1.0)
        self._spread = np.zeros(0)

    def build(self, subscribers: RankedSubscriptions, threshold: NDArray[np.float64], ground: DistanceScale) -> None:
        self._ground = ground

    def insert(self, subscribers: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]) -> None:
        """Nothing to file."""

    def delete(self, subscribers: RankedSubscriptions, numbers: NDArray[np.int32]) -> None:
        """Nothing is filed."""

    def lowered(self, subscribers: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]) -> None:
        """Thresholds are read where they are."""

    def raised(self, subscribers: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]) -> None:
        """Thresholds are read where they are."""

    def run_ticks(self, scene: Scene, last: int, rules: Rules) -> int:
        n_keywords = 1 + max((int(words.max()) for words in _keywords(scene) if words.size), default=0)
        if n_keywords > self._spread.size:
            self._spread = np.zeros(2 * n_keywords)
        return int(run_ticks(self._ground, self._spread, *scene, last, rules))

    def explain(self, subscribers: RankedSubscriptions, number: int) -> list[str]:
        return ["every subscription is scored"]

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {}

    def restore(self, arrays: Mapping[str, NDArray[Any]], ground: DistanceScale) -> None:
        self._ground = ground


def _keywords(scene: Scene) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    return scene.subscribers.keyword, scene.window.keyword
