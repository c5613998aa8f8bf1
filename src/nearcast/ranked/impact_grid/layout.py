"""The arrays of the impact grid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class WordArrays(NamedTuple):
    """What is known of keywords: `row[w]` has N_COLUMNS numbers, see below; `edge` are the borders of the classes of weight.

    A message whose heft for a keyword is r is in class c of it if c of its borders are at most r. Keywords are in
    order by how many messages have them, then by number: the rarer first.
    """

    row: np.ndarray  # int32[keywords · N_COLUMNS]
    edge: np.ndarray  # float64[]


# Where the borders begin with how many there are and the slot of the word (`pack_edges`), in how many messages of the sample
# it is, and the first bucket of its lists in each part: -1 = none, below that the only bucket, turned around.
EDGES, FREQUENCY, FIRST_BUCKET, N_COLUMNS = 0, 1, 2, 4
NO_BUCKET = -1
MOST_EDGES = 7
N_PARTS = 2


class PartArrays(NamedTuple):
    """Lists of subscriptions, all of one time.

    A bucket is a keyword and a class of weight. Messages of a class look at its bucket and at those of lower classes, so that a
    subscription is only in those cells of a bucket that it reached in no lower one. A list begins with a line of memory, and
    has sixteen entries at a time: the columns of each (`simd_near_plain.py`), with the subscription last. So it is read
    from one end to the other.
    """

    bucket: np.ndarray  # int64[2 · buckets], the list for everywhere (0 = none) and the bits of the levels that have cells
    slot: np.ndarray  # int64[2 · slots], of a hash table: a cell (`cell_key`) + 1 (0 = free), and its list
    sieve: np.ndarray  # uint8[slots], eight bits for a slot: a cell whose bit is not set is not there
    entry: np.ndarray  # int32[], behind the last list as much room as a list is read beyond its end


# A list is named by its first line of memory, and below that by how many entries it has.
COUNT_BITS = 32
MOST_ENTRIES = (1 << COUNT_BITS) - 1
PER_LINE = 16
# Cells of level 1 to 4 are so many bits of each coordinate.
LEVEL_BITS = (0, 3, 5, 7, 9)
FINEST = 9
N_LEVELS = 5


class Costs(NamedTuple):
    """What decides between cells: where messages are, what a cell costs, and from how many subscriptions on there are any."""

    mass: np.ndarray  # float64[513, 513], the share of messages to the lower left of each corner
    cell: float
    n_sample: float
    least_divided: int


class Grid(NamedTuple):
    """Where cells and steps count from, and how large they are; outside of it are the outermost cells."""

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
    """Memory that `find_reached` uses again for every few messages."""

    item: np.ndarray  # int64[], lists to look at
    owner: np.ndarray  # int64[], for which words
    item_start: np.ndarray  # int64[MOST_AT_ONCE + 1]
    near_start: np.ndarray  # int64[MOST_AT_ONCE + 1]
    figures: np.ndarray  # float32[OWN + words of a message]
    worth: np.ndarray  # int16[words of a message · N_SLOTS], see `describe`
    known: np.ndarray  # int64[words of a message · N_KNOWN], see `describe`
    table: tuple[np.ndarray, np.ndarray]  # see `score_near`
    common: np.ndarray  # float64[words of a message]
    repeated: np.ndarray  # float64[words of a message · its figures], see `gather_repeated`
