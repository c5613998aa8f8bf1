"""The arrays of a frequency grid, and how a list lies in memory.

A list is one run of int32: three counts, then three parts.

| part | holds | one entry |
|---|---|---|
| covering | clauses of one keyword whose box covers the whole cell: delivered without a test | the clause |
| single | other clauses of one keyword (or none) | x0, y0, x1, y1, clause |
| multiple | clauses of several keywords | signature; then a record |

A part stands field by field, as vector units read it: all x0, then all y0. Records of multiple entries follow one by one, since
few signatures fit: the clause, its box, and up to three of its other keywords, rarest first. Sides are float32 in the place of
an int32, rounded to the nearest: a point strictly inside the rounded box is inside the exact one, only a point on its border
needs a look at the exact one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

CATCH_ALL = 0  # the owner of clauses without keywords; keyword w is owner 1 + w
NO_LIST = 0  # the value of a key without a list

HEADER = 3
SINGLE_FIELDS = 5
N_OTHERS = 3  # keywords in a record, and in a signature
RECORD_BOX = 1
RECORD_OTHERS = RECORD_BOX + 4
RECORD_FIELDS = RECORD_OTHERS + N_OTHERS
MULTIPLE_SIZE = 1 + RECORD_FIELDS
COVERING, SINGLE, MULTIPLE = 0, 1, 2

# Keywords in a record: none here, and more than fit.
NO_KEYWORD, MORE_KEYWORDS = -1, -2

# A cache line holds this many int32.
LINE = 16
# Vector loads may read, and vector stores write, this far past the end of what they need.
SLACK = 32

MOST_LEVELS = 13
LEAST_LEVEL = 2
# A door is the place of the list without a cell, the lines it takes beyond the first, and the level of the grid (0 = none).
LEVEL_BITS, LINES_BITS = 5, 3
LEVEL_MASK, LINES_MASK = (1 << LEVEL_BITS) - 1, (1 << LINES_BITS) - 1
CELL_BITS = 2 * MOST_LEVELS
# Cells of this level, folded to eight by eight, tell whether the list without a cell can hold anything near a message.
FOLD_LEVEL = 5

# Fields of `head`.
N_BUILT, N_CLAUSES, N_LISTS, N_ENTRIES, N_OWNERS, N_RUN, MAX_LEVEL = range(7)
HEAD_FIELDS = 7


class GridArrays(NamedTuple):
    """What was built at once. Owner 1 + w is keyword w; each clause is listed under the owner of its rarest keyword."""

    door: np.ndarray  # int64[2 * n_owners]: see LEVEL_BITS (0 = no lists at all); folded cells of the list without a cell
    slot: np.ndarray  # int64[2 * n_slots]: 1 + key of a list in a cell (0 = free), place and lines; probed from a line on
    run: np.ndarray  # int32[]: every list
    frequency: np.ndarray  # int32[n_keywords]: clauses that named the keyword when this was built
    frame: np.ndarray  # float64[6]: low, high, scale of x, then of y, at the finest level
    wide: np.ndarray  # float32[n_owners]: clauses over more cells than this stand in the list without a cell
    head: np.ndarray  # int64[HEAD_FIELDS]


class LateArrays(NamedTuple):
    """Clauses that came after the grid was built, in chains of small blocks by owner and cell of a coarser grid.

    A block is the next older block, the number of entries, and room for five: five times x0, then y0, x1, y1, signature and
    clause: two cache lines.
    """

    level: np.ndarray  # uint8[n_owners]: 1 + level of the owner's late grid; 0 = nothing is late
    slot: np.ndarray  # int64[2 * n_slots]: 1 + key (0 = free), newest block (0 = none any more)
    sieve: np.ndarray  # uint8[n_slots]: a bit for every key; most keys that are not filed fall on a bit that is not set
    block: np.ndarray  # int32[BLOCK_SIZE * capacity]; block 0 is nothing
    head: np.ndarray  # int64[LATE_FIELDS]


# Beside a late signature: the clause has keywords other than its owner's, which it takes more than a signature to know.
HAS_OTHERS = 1 << 27
BLOCK_ROOM = 5
BLOCK_HEADER = 2
BLOCK_SIZE = BLOCK_HEADER + 6 * BLOCK_ROOM
# Fields of the head of late clauses.
N_BLOCKS, N_KEYS, N_LATE, FREE_BLOCK = range(4)
LATE_FIELDS = 4
# The late grid of a keyword is this many levels coarser: a hundredth of the clauses needs fewer cells.
LATE_COARSER = 3


class ExpectationArrays(NamedTuple):
    """What messages are expected: which keywords they have, and where they are.

    `below[i * (n + 1) + j]` is the share of messages in the first `i` of `n` columns and the first `j` of `n` rows.
    """

    hit: np.ndarray  # float32[n_owners]: share of messages that have the keyword
    below: np.ndarray  # float32[(n + 1) * (n + 1)]
    frame: np.ndarray  # float64[6]


class Scratch(NamedTuple):
    """Where a match kernel writes: matches of message m are `clause[begin[m]:end[m]]`."""

    clause: np.ndarray  # int32[room]
    pending: np.ndarray  # int64[room]: places of records to check
    begin: np.ndarray  # int64[n_messages]
    end: np.ndarray  # int64[n_messages]
    counters: np.ndarray  # int64[2]
