"""The lists of a part and what they are built from: a sample of messages and a grid. A rebuild runs at once or in a thread."""

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
    fill_postings,
    insert_cells,
)
from nearcast.ranked.impact_grid.kernels.keyword_stats import (
    OWN_SLOTS,
    count_words,
    gather_message_weights,
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
    KeywordArrays,
    PartArrays,
)
from nearcast.ranked.index import DistanceScale
from nearcast.ranked.kernels.bounds import N_FIGURES, Frame, coordinates_of, frame_of
from nearcast.ranked.kernels.layouts import WindowArrays
from nearcast.ranked.subscriptions import RankedSubscriptions
from nearcast.ranked.window import copied_part

# This many of the newest messages say what messages are like.
SAMPLE = 200_000
# A word has classes if this many messages have it, each class at least _LEAST_IN_CLASS; it has cells if this many subscriptions
# have it.
_LEAST_CLASSED, _LEAST_IN_CLASS, _LEAST_DIVIDED = 256, 8, 32
_N_FINEST = 1 << FINEST
_FIRST_CAPACITY = 4096
_LEAST_EXTENT, _MOST_EXTENT = 1e-290, 1e300


class Sample(NamedTuple):
    """What is known of messages: their words, and the share of them to the lower left of each cell."""

    words: KeywordArrays
    mass: NDArray[np.float64]
    n: int


def sample_of(window: WindowArrays | None, grid: Grid) -> Sample:
    """A sample of the newest messages of a window."""
    n = 0 if window is None else len(window.x)
    if window is None or n == 0:
        return Sample(KeywordArrays(empty_rows(0, 0), np.zeros(1)), np.zeros((_N_FINEST + 1, _N_FINEST + 1)), 0)
    first = max(0, n - SAMPLE)
    message_keywords = window.keyword[window.keyword_start[first] : window.keyword_start[n]]
    n_keywords = int(message_keywords.max(initial=-1)) + 1
    row = empty_rows(0, n_keywords)
    count_words(window, first, n, row)
    frequency = row[FREQUENCY::N_COLUMNS].astype(np.int64)
    commonest = np.argsort(-frequency, kind="stable")[:OWN_SLOTS]
    row[commonest * N_COLUMNS + EDGES] = [pack_edges(0, slot, 0) for slot in range(len(commonest))]
    classed = np.flatnonzero(frequency >= _LEAST_CLASSED)
    end = np.cumsum(frequency[classed])
    start = np.full(n_keywords, -1, np.int64)
    start[classed] = end - frequency[classed]
    message_weight = np.empty(int(end[-1]) if len(end) else 0)
    most_words = int(np.diff(window.keyword_start[first : n + 1]).max())
    gather_message_weights(window, first, n, row, start, message_weight, np.empty(N_FIGURES * most_words))
    edge = np.zeros(1 + MOST_EDGES * len(classed))
    write_edges(row, classed, end, message_weight, _LEAST_IN_CLASS, edge)
    columns = np.clip((window.x[first:n] - grid.x) * grid.x_scale, 0, _N_FINEST - 1).astype(np.int64)
    rows = np.clip((window.y[first:n] - grid.y) * grid.y_scale, 0, _N_FINEST - 1).astype(np.int64)
    counts = np.bincount(columns * _N_FINEST + rows, minlength=_N_FINEST * _N_FINEST).reshape(_N_FINEST, _N_FINEST)
    mass = np.zeros((_N_FINEST + 1, _N_FINEST + 1))
    mass[1:, 1:] = (counts / (n - first)).cumsum(0).cumsum(1)
    return Sample(KeywordArrays(row, edge), mass, n - first)


def empty_rows(first: int, n_keywords: int) -> NDArray[np.int32]:
    """Rows of keywords of which nothing is known, from id `first` on."""
    row = np.zeros((max(0, n_keywords - first), N_COLUMNS), np.int32)
    row[:, EDGES] = [pack_edges(0, shared_slot(word), 0) for word in range(first, n_keywords)]
    row[:, FIRST_BUCKET:] = NO_BUCKET
    return row.reshape(-1)


def enclosing_grid(
    distances: DistanceScale, subscriptions: RankedSubscriptions, window: WindowArrays | None
) -> tuple[Grid, Frame]:
    """A grid around the locations of all subscriptions and sampled messages."""
    rows, alive = subscriptions.layout(), subscriptions.alive()
    x, y = rows.x[alive], rows.y[alive]
    if window is not None:
        x, y = np.concatenate([x, window.x[-SAMPLE:]]), np.concatenate([y, window.y[-SAMPLE:]])
    axes = []
    for axis in (x, y):
        low, high = (float(axis.min()), float(axis.max())) if len(axis) else (0.0, 0.0)
        # Half of each, so that the difference is finite.
        extent = min(max(2.0 * (high / 2 - low / 2), abs(low) * 1e-12, _LEAST_EXTENT), _MOST_EXTENT)
        axes.append((low, (_N_FINEST - 1e-6) / extent))
    (x0, x_scale), (y0, y_scale) = axes
    frame = frame_of(*distances, float(np.median(x)) if len(x) else 0.0, float(np.median(y)) if len(y) else 0.0)
    locations = coordinates_of(frame, rows.x[alive], rows.y[alive])
    low, high = (float(locations.min()), float(locations.max())) if len(alive) else (0.0, 1.0)
    step = max(high - low, 1e-6) / FULL
    return Grid(*distances, x0, y0, x_scale, y_scale, low, step, frame.scale * step), frame


def build_part(
    sample: Sample,
    grid: Grid,
    frame: Frame,
    subscriptions: RankedSubscriptions,
    threshold: NDArray[np.float64],
    numbers: NDArray[np.int32],
    part: int,
    cost_of_cell: float,
) -> PartArrays:
    """The lists of these subscriptions. Where they begin is written to the rows of their keywords."""
    rows, words = subscriptions.layout(), sample.words
    words.row[FIRST_BUCKET + part :: N_COLUMNS] = NO_BUCKET
    count = np.zeros(len(words.row) // N_COLUMNS, np.int64)
    n_postings = int(count_postings(rows, numbers, count))
    keywords = np.flatnonzero(count)
    start = np.concatenate([[0], np.cumsum(count[keywords])]).astype(np.int64)
    count[keywords] = start[1:]
    most_words = max(1, subscriptions.most_words)
    ordered, weight = np.empty(most_words, np.int64), np.empty(most_words)
    subscription, rank = np.empty(n_postings, np.int32), np.empty(n_postings, np.int32)
    fill_postings(words, rows, numbers, count, subscription, rank, ordered, weight)
    postings = (keywords, start, subscription, rank)
    costs = Costs(sample.mass, cost_of_cell, float(max(1, sample.n)), _LEAST_DIVIDED)
    output: list[NDArray[Any]] = [
        np.empty(size * n_postings + _FIRST_CAPACITY, dtype) for size, dtype in ((40, np.int32), (2, np.int64), (4, np.int64))
    ]
    sizes = np.array([PER_LINE, 0, 0], np.int64)
    of_levels = np.empty((MOST_EDGES + 1) * N_LEVELS), np.empty((MOST_EDGES + 1) * N_LEVELS, np.int64)
    n_keys = _FIRST_CAPACITY
    done, gap = 0, LACKS_KEYS
    scratch: tuple[NDArray[Any], ...] = ()
    while gap != DONE:
        if gap == LACKS_KEYS:
            n_keys *= 4
            keys = [np.empty(n_keys, dtype) for dtype in (np.int64, np.int32, np.int64, np.int32)]
            scratch = (*keys, ordered, weight, np.empty(2049, np.int64), *of_levels)
        else:
            output = [doubled(array, int(used)) for array, used in zip(output, sizes * (1, 2, 2), strict=True)]
        done, gap = build_lists(
            words, grid, frame, costs, rows, threshold, postings, tuple(output), sizes, scratch, FIRST_BUCKET + part, done
        )
    entry, bucket, cell = output
    n_slots = 16
    while 2 * n_slots < 3 * int(sizes[2]):
        n_slots *= 2
    slot, bloom = aligned_zeros(2 * n_slots, np.int64), np.zeros(n_slots, np.uint8)
    insert_cells(cell, int(sizes[2]), slot, bloom)
    entry[int(sizes[0]) : int(sizes[0]) + BEYOND] = 0
    return PartArrays(aligned_copy(bucket[: 2 * int(sizes[1])]), slot, bloom, aligned_copy(entry[: int(sizes[0]) + BEYOND]))


def empty_part() -> PartArrays:
    """A part without lists."""
    return PartArrays(np.zeros(0, np.int64), np.zeros(32, np.int64), np.zeros(16, np.uint8), np.zeros(BEYOND, np.int32))


# --- rebuild -----------------------------------------------------------------------------------------------------


class RebuildResult(NamedTuple):
    """The base part of the index, the subscriptions and thresholds in it, and what it was built with."""

    numbers: NDArray[np.int32]
    threshold: NDArray[np.float64]
    grid: Grid
    frame: Frame
    sample: Sample
    part: PartArrays


class RebuildInput(NamedTuple):
    """What a rebuild reads. A rebuild in a thread gets a copy."""

    distances: DistanceScale
    subscriptions: RankedSubscriptions
    window: WindowArrays | None
    cost_of_cell: float

    def rebuild(self) -> RebuildResult:
        numbers, threshold = self.subscriptions.alive(), self.subscriptions.threshold.copy()
        grid, frame = enclosing_grid(self.distances, self.subscriptions, self.window)
        sample = with_words_of(self.subscriptions, sample_of(self.window, grid))
        part = build_part(sample, grid, frame, self.subscriptions, threshold, numbers, 0, self.cost_of_cell)
        return RebuildResult(numbers, threshold[numbers], grid, frame, sample, part)

    def copy(self) -> RebuildInput:
        """A copy that later writes do not change."""
        window = None if self.window is None else _newest(self.window)
        return self._replace(subscriptions=self.subscriptions.copy(), window=window)


class BackgroundRebuild(BackgroundTask[RebuildResult]):
    """A rebuild in a thread."""

    def __init__(self, source: RebuildInput) -> None:
        super().__init__(source.rebuild)
        # Subscriptions that it does not have, or not as they are now.
        self.changed: list[NDArray[np.int32]] = []


def with_words_of(subscriptions: RankedSubscriptions, sample: Sample) -> Sample:
    """A sample that has a row for every word of a subscription."""
    row, edge = sample.words
    n_known, n_keywords = len(row) // N_COLUMNS, int(subscriptions.layout().keyword.max(initial=-1)) + 1
    if n_keywords <= n_known:
        return sample
    row = np.concatenate([row, empty_rows(n_known, n_keywords + n_keywords // 8)])
    return sample._replace(words=KeywordArrays(row, edge))


def _newest(window: WindowArrays) -> WindowArrays:
    """A copy of the messages of a sample."""
    n = len(window.time)
    return copied_part(window, max(0, n - SAMPLE), n)
