"""What a part of the index is built from: a sample of messages, the grid laid over it, and the lists themselves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import aligned_copy, aligned_zeros, doubled
from nearcast.engine.threads import BackgroundTask
from nearcast.ranked.impact_grid.kernels.build import (
    BEYOND,
    DONE,
    LACKS_KEYS,
    build_lists,
    count_postings,
    file_cells,
    fill_postings,
)
from nearcast.ranked.impact_grid.kernels.keyword_stats import (
    OWN_SLOTS,
    count_words,
    gather_hefts,
    pack_edges,
    shared_slot,
    write_edges,
)
from nearcast.ranked.impact_grid.kernels.simd_near_plain import FULL
from nearcast.ranked.impact_grid.layout import (
    EDGES,
    FINEST,
    FIRST_BUCKET,
    FREQUENCY,
    MOST_EDGES,
    N_COLUMNS,
    N_LEVELS,
    NO_BUCKET,
    PER_LINE,
    Costs,
    Grid,
    PartArrays,
    WordArrays,
)
from nearcast.ranked.index import DistanceScale
from nearcast.ranked.kernels.bounds import N_FIGURES, Frame, coordinates_of, frame_of
from nearcast.ranked.kernels.layouts import WindowArrays
from nearcast.ranked.subscriptions import RankedSubscriptions
from nearcast.ranked.window import copied_part

# So many of the newest messages tell what messages are like.
SAMPLE = 200_000
# A word has classes from so many messages on, each of so many at least; it has cells from so many subscriptions on.
_LEAST_CLASSED, _LEAST_IN_CLASS, _LEAST_DIVIDED = 256, 8, 32
_N_FINEST = 1 << FINEST
_FIRST_ROOM = 4096
_LEAST_EXTENT, _MOST_EXTENT = 1e-290, 1e300


class Sample(NamedTuple):
    """What is known of messages: their words, and how many of them are to the lower left of each cell."""

    words: WordArrays
    mass: NDArray[np.float64]
    n: int


def sample_of(window: WindowArrays | None, grid: Grid) -> Sample:
    """Of the newest messages of a window."""
    n = 0 if window is None else len(window.x)
    if window is None or n == 0:
        return Sample(WordArrays(empty_rows(0, 0), np.zeros(1)), np.zeros((_N_FINEST + 1, _N_FINEST + 1)), 0)
    first = max(0, n - SAMPLE)
    own = window.keyword[window.keyword_start[first] : window.keyword_start[n]]
    n_keywords = int(own.max(initial=-1)) + 1
    row = empty_rows(0, n_keywords)
    count_words(window, first, n, row)
    frequency = row[FREQUENCY::N_COLUMNS].astype(np.int64)
    commonest = np.argsort(-frequency, kind="stable")[:OWN_SLOTS]
    row[commonest * N_COLUMNS + EDGES] = [pack_edges(0, slot, 0) for slot in range(len(commonest))]
    classed = np.flatnonzero(frequency >= _LEAST_CLASSED)
    end = np.cumsum(frequency[classed])
    start = np.full(n_keywords, -1, np.int64)
    start[classed] = end - frequency[classed]
    heft = np.empty(int(end[-1]) if len(end) else 0)
    most_words = int(np.diff(window.keyword_start[first : n + 1]).max())
    gather_hefts(window, first, n, row, start, heft, np.empty(N_FIGURES * most_words))
    edge = np.zeros(1 + MOST_EDGES * len(classed))
    write_edges(row, classed, end, heft, _LEAST_IN_CLASS, edge)
    columns = np.clip((window.x[first:n] - grid.x) * grid.x_scale, 0, _N_FINEST - 1).astype(np.int64)
    rows = np.clip((window.y[first:n] - grid.y) * grid.y_scale, 0, _N_FINEST - 1).astype(np.int64)
    counts = np.bincount(columns * _N_FINEST + rows, minlength=_N_FINEST * _N_FINEST).reshape(_N_FINEST, _N_FINEST)
    mass = np.zeros((_N_FINEST + 1, _N_FINEST + 1))
    mass[1:, 1:] = (counts / (n - first)).cumsum(0).cumsum(1)
    return Sample(WordArrays(row, edge), mass, n - first)


def empty_rows(first: int, n_keywords: int) -> NDArray[np.int32]:
    """Rows of keywords of which nothing is known, from number `first` on."""
    row = np.zeros((max(0, n_keywords - first), N_COLUMNS), np.int32)
    row[:, EDGES] = [pack_edges(0, shared_slot(word), 0) for word in range(first, n_keywords)]
    row[:, FIRST_BUCKET:] = NO_BUCKET
    return row.reshape(-1)


def grid_around(ground: DistanceScale, subscribers: RankedSubscriptions, window: WindowArrays | None) -> tuple[Grid, Frame]:
    """A grid over all places there are."""
    rows, alive = subscribers.layout(), subscribers.alive()
    x, y = rows.x[alive], rows.y[alive]
    if window is not None:
        x, y = np.concatenate([x, window.x[-SAMPLE:]]), np.concatenate([y, window.y[-SAMPLE:]])
    sides = []
    for side in (x, y):
        low, high = (float(side.min()), float(side.max())) if len(side) else (0.0, 0.0)
        # Half of each, lest the difference is infinite.
        extent = min(max(2.0 * (high / 2 - low / 2), abs(low) * 1e-12, _LEAST_EXTENT), _MOST_EXTENT)
        sides.append((low, (_N_FINEST - 1e-6) / extent))
    (x0, x_scale), (y0, y_scale) = sides
    frame = frame_of(*ground, float(np.median(x)) if len(x) else 0.0, float(np.median(y)) if len(y) else 0.0)
    places = coordinates_of(frame, rows.x[alive], rows.y[alive])
    low, high = (float(places.min()), float(places.max())) if len(alive) else (0.0, 1.0)
    step = max(high - low, 1e-6) / FULL
    return Grid(*ground, x0, y0, x_scale, y_scale, low, step, frame.scale * step), frame


def build_part(
    sample: Sample,
    grid: Grid,
    frame: Frame,
    subscribers: RankedSubscriptions,
    floor: NDArray[np.float64],
    numbers: NDArray[np.int32],
    part: int,
    cost_of_cell: float,
) -> PartArrays:
    """The lists of these subscriptions; the rows of their keywords are told where they begin."""
    rows, words = subscribers.layout(), sample.words
    words.row[FIRST_BUCKET + part :: N_COLUMNS] = NO_BUCKET
    count = np.zeros(len(words.row) // N_COLUMNS, np.int64)
    n_postings = int(count_postings(rows, numbers, count))
    owners = np.flatnonzero(count)
    start = np.concatenate([[0], np.cumsum(count[owners])]).astype(np.int64)
    count[owners] = start[1:]
    most_words = max(1, subscribers.most_words)
    arranged, weight = np.empty(most_words, np.int64), np.empty(most_words)
    subscriber, rank = np.empty(n_postings, np.int32), np.empty(n_postings, np.int32)
    fill_postings(words, rows, numbers, count, subscriber, rank, arranged, weight)
    postings = (owners, start, subscriber, rank)
    costs = Costs(sample.mass, cost_of_cell, float(max(1, sample.n)), _LEAST_DIVIDED)
    room: list[NDArray[Any]] = [
        np.empty(size * n_postings + _FIRST_ROOM, dtype) for size, dtype in ((40, np.int32), (2, np.int64), (4, np.int64))
    ]
    sizes = np.array([PER_LINE, 0, 0], np.int64)
    of_levels = np.empty((MOST_EDGES + 1) * N_LEVELS), np.empty((MOST_EDGES + 1) * N_LEVELS, np.int64)
    n_keys = _FIRST_ROOM
    done, lacks = 0, LACKS_KEYS
    scratch: tuple[NDArray[Any], ...] = ()
    while lacks != DONE:
        if lacks == LACKS_KEYS:
            n_keys *= 4
            keys = [np.empty(n_keys, dtype) for dtype in (np.int64, np.int32, np.int64, np.int32)]
            scratch = (*keys, arranged, weight, np.empty(2049, np.int64), *of_levels)
        else:
            room = [doubled(array, int(used)) for array, used in zip(room, sizes * (1, 2, 2), strict=True)]
        done, lacks = build_lists(
            words, grid, frame, costs, rows, floor, postings, tuple(room), sizes, scratch, FIRST_BUCKET + part, done
        )
    entry, bucket, cell = room
    n_slots = 16
    while 2 * n_slots < 3 * int(sizes[2]):
        n_slots *= 2
    slot, sieve = aligned_zeros(2 * n_slots, np.int64), np.zeros(n_slots, np.uint8)
    file_cells(cell, int(sizes[2]), slot, sieve)
    entry[int(sizes[0]) : int(sizes[0]) + BEYOND] = 0
    return PartArrays(aligned_copy(bucket[: 2 * int(sizes[1])]), slot, sieve, aligned_copy(entry[: int(sizes[0]) + BEYOND]))


def no_part() -> PartArrays:
    """A part without lists."""
    return PartArrays(np.zeros(0, np.int64), np.zeros(32, np.int64), np.zeros(16, np.uint8), np.zeros(BEYOND, np.int32))


# -- All subscriptions filed anew, from copies: at once, or in a thread beside the messages.


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
