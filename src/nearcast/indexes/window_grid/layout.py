"""The arrays of lists by keyword and blocks of neighbours."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Entries of one block, blocks of one group. A list that fits into one block has none; one that fits into a group has no groups.
BLOCK = GROUP = 32


class GridArrays(NamedTuple):
    """Pieces one after the other; `table` says where each starts in every group of columns, and all starts count from there.

    A list holds the messages of the piece with one keyword. `heft` is the most that the vector of a message has in one word,
    counted in weights of that word: its largest count over its length. So a word of weight w adds at most w² · heft / length
    of the subscription to the similarity. Entries of a list are in order of falling heft by classes, and in a class along a
    curve that keeps neighbours together. A run is a block, or a list without blocks; a group is so many blocks that follow each
    other in a list.
    """

    table: np.ndarray  # int64[pieces, N_COLUMNS]
    coarse: np.ndarray  # int32[], the first list with a keyword of at least i << shift
    keyword: np.ndarray  # int32[lists], rising
    entry_start: np.ndarray  # int32[lists + 1 of each piece]
    block_start: np.ndarray  # int32[lists + 1 of each piece]
    group_start: np.ndarray  # int32[lists + 1 of each piece]
    offset: np.ndarray  # int32[entries], where the record of the message starts, from the first of the piece
    signature: np.ndarray  # int32[entries], bits of the words of the message
    figures: np.ndarray  # float32[4 · entries], of each run all x, all y, all z (`kernels/near_bounds.py`), all hefts, up
    block_heft: np.ndarray  # float32[blocks]
    box: np.ndarray  # float32[6 · blocks], low and high corner of each
    group_heft: np.ndarray  # float32[groups]
    group_box: np.ndarray  # float32[6 · groups]
    record: np.ndarray  # float64[], all of a message in one place, see below
    as_number: np.ndarray  # int64[], the same memory


# Columns of the table, after the sequence numbers.
COARSE_START, LIST_START, BORDER_START, ENTRY_START, FIGURE_START, BLOCK_START, BOX_START = range(2, 9)
GROUP_START, GROUP_BOX_START, RECORD_START, SHIFT, N_COARSE = range(9, 14)
# A record: sequence number, place, length, how many words, and each word with its count in one number, rising.
X, Y, LENGTH, N_WORDS, WORDS = 1, 2, 3, 4, 5
TIMES_BITS = 31
MOST_TIMES = (1 << TIMES_BITS) - 1
