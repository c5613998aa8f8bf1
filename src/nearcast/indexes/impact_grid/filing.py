"""All subscriptions filed anew, from copies: at once, or in a thread beside the messages."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.subscribers import Subscribers
from nearcast.columns.window import window_arrays
from nearcast.indexes.impact_grid.layout import N_COLUMNS, Grid, PartArrays, WordArrays
from nearcast.indexes.impact_grid.parts import SAMPLE, Sample, build_part, empty_rows, grid_around, sample_of
from nearcast.indexes.ranked_base import Ground
from nearcast.kernels.near_bounds import Frame
from nearcast.kernels.ranked_layouts import MESSAGE_RECORD, WindowArrays


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

    ground: Ground
    subscribers: Subscribers
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


class Filing:
    """Everything is filed in a thread."""

    def __init__(self, everything: Everything) -> None:
        self._filed: Future[Filed] = Future()
        # Whom it does not know, or not as they are.
        self.changed: list[NDArray[np.int32]] = []
        threading.Thread(target=self._run, args=(everything,), name="nearcast-file", daemon=True).start()

    def _run(self, everything: Everything) -> None:
        try:
            self._filed.set_result(everything.filed())
        except BaseException as problem:  # noqa: BLE001 - told to who asks for the result, in his own thread
            self._filed.set_exception(problem)

    @property
    def is_done(self) -> bool:
        return self._filed.done()

    def result(self) -> Filed:
        """Waits for it."""
        return self._filed.result()


def with_words_of(subscribers: Subscribers, sample: Sample) -> Sample:
    """A sample that has a row for every word of a subscription."""
    row, edge = sample.words
    n_known, n_keywords = len(row) // N_COLUMNS, int(subscribers.layout().keyword.max(initial=-1)) + 1
    if n_keywords <= n_known:
        return sample
    row = np.concatenate([row, empty_rows(n_known, n_keywords + n_keywords // 8)])
    return sample._replace(words=WordArrays(row, edge))


def _newest(window: WindowArrays) -> WindowArrays:
    """A copy of as many messages as a sample has."""
    first = max(0, len(window.time) - SAMPLE)
    begin = window.keyword_start[first]
    others = {name: getattr(window, name)[first:].copy() for name in ("time", "is_alive")}
    others |= {name: getattr(window, name)[begin:].copy() for name in ("keyword", "value", "n_times")}
    newest = window_arrays(window.head.copy(), window.record[MESSAGE_RECORD * first :].copy(), others)
    newest.keyword_start[:] -= begin
    return newest
