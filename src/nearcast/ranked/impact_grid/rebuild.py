"""All subscriptions filed anew, from copies: at once, or in a thread beside the messages."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.engine.threads import BackgroundTask
from nearcast.ranked.impact_grid.build_part import SAMPLE, Sample, build_part, empty_rows, grid_around, sample_of
from nearcast.ranked.impact_grid.layout import N_COLUMNS, Grid, PartArrays, WordArrays
from nearcast.ranked.index import DistanceScale
from nearcast.ranked.kernels.bounds import Frame
from nearcast.ranked.kernels.layouts import WindowArrays
from nearcast.ranked.subscriptions import RankedSubscriptions
from nearcast.ranked.window import copied_part


class Filed(NamedTuple):
    """The first part of the index, of these subscriptions with these floors, and what it was made by."""

    numbers: NDArray[np.int32]
    floor: NDArray[np.float64]
    grid: Grid
    frame: Frame
    sample: Sample
    part: PartArrays


class Everything(NamedTuple):
    """What it takes to file all subscriptions; nobody else writes to it."""

    ground: DistanceScale
    subscribers: RankedSubscriptions
    window: WindowArrays | None
    cost_of_cell: float

    def filed(self) -> Filed:
        numbers, floor = self.subscribers.alive(), self.subscribers.floor.copy()
        grid, frame = grid_around(self.ground, self.subscribers, self.window)
        sample = with_words_of(self.subscribers, sample_of(self.window, grid))
        part = build_part(sample, grid, frame, self.subscribers, floor, numbers, 0, self.cost_of_cell)
        return Filed(numbers, floor[numbers], grid, frame, sample, part)

    def copied(self) -> Everything:
        """The same as it is now, whatever is written later."""
        window = None if self.window is None else _newest(self.window)
        return self._replace(subscribers=self.subscribers.copy(), window=window)


class Filing(BackgroundTask[Filed]):
    """Everything is filed in a thread."""

    def __init__(self, everything: Everything) -> None:
        super().__init__(everything.filed)
        # Whom it does not know, or not as they are.
        self.changed: list[NDArray[np.int32]] = []


def with_words_of(subscribers: RankedSubscriptions, sample: Sample) -> Sample:
    """A sample that has a row for every word of a subscription."""
    row, edge = sample.words
    n_known, n_keywords = len(row) // N_COLUMNS, int(subscribers.layout().keyword.max(initial=-1)) + 1
    if n_keywords <= n_known:
        return sample
    row = np.concatenate([row, empty_rows(n_known, n_keywords + n_keywords // 8)])
    return sample._replace(words=WordArrays(row, edge))


def _newest(window: WindowArrays) -> WindowArrays:
    """A copy of as many messages as a sample has."""
    n = len(window.time)
    return copied_part(window, max(0, n - SAMPLE), n)
