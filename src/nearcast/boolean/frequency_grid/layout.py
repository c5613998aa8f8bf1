"""The arrays of a frequency grid, and how a list lies in memory.

A list is one run of int32: three counts, then three parts.

| part | holds | one entry |
|---|---|---|
| covering | clauses of one keyword whose box covers the whole cell: matched without a test | the clause |
| single | other clauses of one keyword (or none) | x0, y0, x1, y1, clause |
| multiple | clauses of several keywords | signature; then a record |

A part is stored field by field, as vector units read it: all x0, then all y0. Records of multiple entries follow one by one,
since few signatures fit: the clause, its box, and up to three of its other keywords, rarest first. Bounds are float32, stored
in the bits of an int32 and rounded to the nearest: a point strictly inside the rounded box is inside the exact one; only for
a point on its border the exact box is read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NO_ANCHOR = 0  # the anchor of clauses without keywords; keyword w is anchor 1 + w
NO_LIST = 0  # the value of a key without a list

HEADER = 3
SINGLE_FIELDS = 5
N_OTHERS = 3  # keywords in a record, and in a signature
RECORD_BOX = 1
RECORD_OTHERS = RECORD_BOX + 4
RECORD_FIELDS = RECORD_OTHERS + N_OTHERS
MULTIPLE_SIZE = 1 + RECORD_FIELDS
COVERING, SINGLE, MULTIPLE = 0, 1, 2

# In a record: no further keyword, and more keywords than fit.
NO_KEYWORD, MORE_KEYWORDS = -1, -2

# A cache line holds this many int32.
LINE = 16
# Vector loads may read, and vector stores write, this far past the end of what they need.
SLACK = 32

MOST_LEVELS = 13
LEAST_LEVEL = 2
# A span is the first position of a list and how many cache lines it takes after the first. A directory entry is the span of the
# list without a cell, and the level of the grid (0 = none).
LEVEL_BITS, LINES_BITS = 5, 3
LEVEL_MASK, LINES_MASK = (1 << LEVEL_BITS) - 1, (1 << LINES_BITS) - 1
CELL_BITS = 2 * MOST_LEVELS
# Cells of this level, folded to eight by eight, show whether the list without a cell can contain a clause near a message.
FOLD_LEVEL = 5

# Fields of `head`.
N_BUILT, N_CLAUSES, N_LISTS, N_ENTRIES, N_ANCHORS, N_RUN, MAX_LEVEL = range(7)
HEAD_FIELDS = 7


class GridArrays(NamedTuple):
    """What a build wrote. Each clause is listed under its rarest keyword, its anchor; keyword w is anchor 1 + w."""

    directory: np.ndarray  # int64[2 * n_anchors]: see LEVEL_BITS (0 = no lists at all); folded cells of the list without a cell
    slot: np.ndarray  # int64[2 * n_slots]: 1 + key of a list in a cell (0 = free), and its span
    run: np.ndarray  # int32[]: every list
    frequency: np.ndarray  # int32[n_keywords]: clauses that had the keyword when this was built
    frame: np.ndarray  # float64[6]: low, high, scale of x, then of y, at the finest level
    cell_limit: np.ndarray  # float32[n_anchors]: clauses over more cells than this are in the list without a cell
    head: np.ndarray  # int64[HEAD_FIELDS]


class DeltaArrays(NamedTuple):
    """Clauses that came after the grid was built, in chains of small blocks by anchor and cell of a coarser grid.

    A block of two cache lines is the next older block, the number of entries, and up to five entries: five times x0, then y0,
    x1, y1, signature and clause.
    """

    level: np.ndarray  # uint8[n_anchors]: 1 + level of the anchor's grid here; 0 = it has no clause here
    slot: np.ndarray  # int64[2 * n_slots]: 1 + key (0 = free), newest block (0 = the chain is empty)
    bloom: np.ndarray  # uint8[n_slots]: a Bloom filter with one bit per key
    block: np.ndarray  # int32[BLOCK_SIZE * capacity]; block 0 is nothing
    head: np.ndarray  # int64[LATE_FIELDS]


# A bit next to a signature of the delta: the clause has keywords other than its anchor, which must be compared one by one.
HAS_OTHERS = 1 << 27
BLOCK_CAPACITY = 5
BLOCK_HEADER = 2
BLOCK_SIZE = BLOCK_HEADER + 6 * BLOCK_CAPACITY
# Fields of the head of the delta.
N_BLOCKS, N_KEYS, N_DELTA, FREE_BLOCK = range(4)
DELTA_FIELDS = 4
# The grid of a keyword in the delta is this many levels coarser: a hundredth of the clauses needs fewer cells.
DELTA_COARSER = 3


class MessageEstimate(NamedTuple):
    """An estimate of the messages to come: which keywords they have, and where they are.

    `share_below[i * (n + 1) + j]` is the share of messages in the first `i` of `n` columns and the first `j` of `n` rows.
    """

    keyword_share: np.ndarray  # float32[n_anchors]: share of messages that have the keyword
    share_below: np.ndarray  # float32[(n + 1) * (n + 1)]
    frame: np.ndarray  # float64[6]


class Scratch(NamedTuple):
    """Where a match kernel writes: matches of message m are `clause[begin[m]:end[m]]`."""

    clause: np.ndarray  # int32[capacity]
    pending: np.ndarray  # int64[capacity]: positions of records to check
    begin: np.ndarray  # int64[n_messages]
    end: np.ndarray  # int64[n_messages]
    counters: np.ndarray  # int64[2]
