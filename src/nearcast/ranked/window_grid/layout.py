"""The arrays of lists by keyword and blocks of neighbours."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Entries of one block, blocks of one group. A list that fits into one block has none; one that fits into a group has no groups.
BLOCK = GROUP = 32


class GridArrays(NamedTuple):
    """Pieces one after the other; `table` says where each starts in every group of columns, and all starts count from there.

    A list holds the messages of the piece with one keyword, each with its heft for those whose rarest word in common it is:
    what words in common add to the similarity is at most their squared weights times that, over the length of the
    subscription. Which words are rarer is told by the lengths of their lists. The entries of a long list are in order of
    falling heft by classes, and in a class along a curve that keeps neighbours together. A run is a block, or a list without
    blocks; a group is so many blocks that follow each other in a list.
    """

    table: np.ndarray  # int64[pieces, N_COLUMNS]
    coarse: np.ndarray  # int32[], the first list with a keyword of at least i << shift
    keyword: np.ndarray  # int32[lists], rising
    entry_start: np.ndarray  # int32[lists + 1 of each piece]
    block_start: np.ndarray  # int32[lists + 1 of each piece]
    group_start: np.ndarray  # int32[lists + 1 of each piece]
    entry: np.ndarray  # int32[ENTRY · entries], run by run its columns, see below
    figure: np.ndarray  # float32[ENTRY · entries], the same memory
    block: np.ndarray  # float32[RUN · blocks], low and high corner, largest heft
    group: np.ndarray  # float32[RUN · groups], the same
    record: np.ndarray  # float64[], all of a message in one place, see below
    as_number: np.ndarray  # int64[], the same memory


# Columns of the table, after the sequence numbers.
COARSE_START, LIST_START, BORDER_START, ENTRY_START, BLOCK_START, GROUP_START = range(2, 8)
RECORD_START, SHIFT, N_COARSE = range(8, 11)
# Columns of an entry: three coordinates (`bounds.py`); heft; how much a word counts that the message has once, and
# how much more one that it repeats counts at most, all rounded up; where its record starts, from the first of the piece; bits
# of its words, and of those that it repeats.
PLACE, HEFT, ONCE, MORE, OFFSET, SIGNATURE, REPEATED, ENTRY = 0, 3, 4, 5, 6, 7, 8, 9
# Of a block or group: a box, and the largest heft.
LOW, HIGH, LARGEST, RUN = 0, 3, 6, 7
# A record: sequence number, place, length, how many words, and each word with its count in one number, rising.
X, Y, LENGTH, N_WORDS, WORDS = 1, 2, 3, 4, 5
TIMES_BITS = 31
MOST_TIMES = (1 << TIMES_BITS) - 1
