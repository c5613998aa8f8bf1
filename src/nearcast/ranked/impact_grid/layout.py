"""The arrays of the impact grid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class KeywordArrays(NamedTuple):
    """What is known of keywords: `row[w]` has N_COLUMNS numbers, see below; `edge` has the lower edges of weight classes.

    A message whose weight for a keyword is r is in class c if c of the keyword's edges are at most r. Keywords are ordered by
    the number of messages that have them, then by id: the rarer first.
    """

    row: np.ndarray  # int32[keywords · N_COLUMNS]
    edge: np.ndarray  # float64[]


# Columns of a row: where its edges begin, their number and the slot of the word (`pack_edges`); the number of messages of the
# sample that have it; the first bucket of its lists in each part: -1 = none, below that the only bucket b, as -2 - b.
EDGES, FREQUENCY, FIRST_BUCKET, N_COLUMNS = 0, 1, 2, 4
NO_BUCKET = -1
MOST_EDGES = 7
N_PARTS = 2


class PartArrays(NamedTuple):
    """Lists of subscriptions, all written at the same time.

    A bucket is a keyword and a class of weight. A message looks at the buckets of its class and of lower ones, so a
    subscription is only in those cells of a bucket that no lower one has. A list begins at a line of memory and has blocks of
    sixteen entries: column by column (`simd_near_plain.py`), the subscription last. A scan reads it from beginning to end.
    """

    bucket: np.ndarray  # int64[2 · buckets], the list for everywhere (0 = none) and the bits of the levels that have cells
    slot: np.ndarray  # int64[2 · slots], of a hash table: a cell (`cell_key`) + 1 (0 = free), and its list
    bloom: np.ndarray  # uint8[slots], eight bits for a slot: a cell whose bit is not set is not there
    entry: np.ndarray  # int32[], with spare numbers at the end, as a scan reads beyond the last list


# A list is named by its first line of memory (upper bits) and the number of its entries.
COUNT_BITS = 32
MOST_ENTRIES = (1 << COUNT_BITS) - 1
PER_LINE = 16
# Cells of level 1 to 4 have this many bits of each coordinate.
LEVEL_BITS = (0, 3, 5, 7, 9)
FINEST = 9
N_LEVELS = 5


class Costs(NamedTuple):
    """What decides between cells: where messages are, costs, size of the sample, fewest subscriptions with cells."""

    mass: np.ndarray  # float64[513, 513], the share of messages to the lower left of each corner
    cell: float
    n_sample: float
    least_divided: int


class Grid(NamedTuple):
    """The origin and the scale of cells and steps. Locations outside belong to the outermost cells."""

    is_lonlat: bool
    max_distance: float
    x: float
    y: float
    x_scale: float  # finest cells per unit
    y_scale: float
    low: float  # coordinates of `ranked/kernels/bounds.py`, of every axis
    step: float  # in these coordinates
    loss: float  # of proximity, for a step


class FindScratch(NamedTuple):
    """Memory that `find_matches` uses for a few messages at a time."""

    item: np.ndarray  # int64[], lists to scan
    item_word: np.ndarray  # int64[], the word each is for, see `find_lists`
    item_start: np.ndarray  # int64[MOST_AT_ONCE + 1]
    near_start: np.ndarray  # int64[MOST_AT_ONCE + 1]
    figures: np.ndarray  # float32[OWN + words of a message]
    relative_weight: np.ndarray  # int16[words of a message · N_SLOTS], see `describe_message`
    word_facts: np.ndarray  # int64[words of a message · N_WORD_FACTS], see `describe_message`
    table: tuple[np.ndarray, np.ndarray]  # see `score_near`
    common: np.ndarray  # float64[words of a message]
    repeated: np.ndarray  # float64[words of a message · its figures], see `gather_repeated`
