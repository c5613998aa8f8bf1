"""The arrays of a moving grid, of clauses or of messages, and how a list lies in memory.

A list is a run of blocks. A block holds its entries field by field, as vector units read them:

| lists of | a block |
|---|---|
| clauses | 4 times x0 and y0, 4 times x1 and y1, 4 signatures, 4 clauses |
| messages | 8 x, 8 y, 8 messages |

A block is one cache line. Coordinates have 16 bits, two in an int32, relative to the corner of their cell (see
`keys.cell_coordinate`, `simd.four_boxes` and `simd.eight_points`). Rounding is monotone: a point strictly inside a rounded box
is inside the exact box, and only a point on its border must be tested against the exact box. The first coordinate of a free
entry is all ones, and so is that of a range message (one with an area): no test of points finds them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

CATCH_ALL = 0  # the anchor of clauses without keywords, and of every message; keyword w is anchor 1 + w

BLOCK = 16
# A block has 1 << CLAUSE_BITS clauses, or 1 << MESSAGE_BITS messages.
CLAUSE_BITS, MESSAGE_BITS = 2, 3
NO_COORDINATE = (1 << 16) - 1
FREE_ENTRY = -1  # two of these
# Fields of a block.
SIGNATURES, CLAUSES = 8, 12
ROWS, MESSAGES = 4, 8
# Vector loads may read, and vector stores write, this far past the end of what they need.
SLACK = 64

# The finest grid has 2^FINE columns and rows; a cell of level l has 2^(FINE - l) of them.
FINE = 20
MOST_LEVELS = 12
CELL_BITS = 2 * MOST_LEVELS
CLASS_BITS = 5
RANGE_CLASS = 16  # added to the class of lists of range messages

# A list value packs the first block of a list, its capacity class and its size.
SIZE_BITS, CAPACITY_BITS = 28, 6
SIZE_MASK, CAPACITY_MASK = (1 << SIZE_BITS) - 1, (1 << CAPACITY_BITS) - 1
BLOCK_SHIFT = SIZE_BITS + CAPACITY_BITS
N_CAPACITIES = 1 << CAPACITY_BITS

# The second number of a directory entry: level; classes in use (bit 0: the list without a cell); ROUTED if messages are filed
# under this anchor; number of entries.
LEVEL_BITS = 5
LEVEL_MASK = (1 << LEVEL_BITS) - 1
CLASSES_MASK = (1 << 16) - 1
ROUTED = 1 << (LEVEL_BITS + 16)
COUNT_SHIFT = 32
ONE_ENTRY = 1 << COUNT_SHIFT

# Fields of `head`: blocks in use; keys in the table; entries; the position of `collect_dead`; classes in use by any anchor;
# entries outside the frame and all entries filed, since the build.
N_BLOCKS, N_KEYS, N_ENTRIES, CURSOR, ALL_CLASSES, N_OUTSIDE, N_FILED = range(7)
HEAD_FIELDS = 7

# Fields of a clause's record: anchor, position of its entry, mask, signature and up to four of its other keywords.
ANCHOR, POSITION, MASK, SIGNATURE, OTHERS = range(5)
RECORD = 8
N_OTHERS = RECORD - OTHERS
NO_KEYWORD, MORE_KEYWORDS = -1, -2
HAS_OTHERS = 1 << 27  # in a signature
NEEDS_KEYWORDS = 1 << 30  # in a mask of a record: the mask does not decide, keywords must be compared

# A cache line for the keywords of a message: how many it has, and all of them if they fit.
KEYWORD_LINE = 16

# The most blocks that an entry takes while the lists of its anchor are filled again.
BLOCKS_OF_ENTRY = 4

NO_CAPACITY = -1

# This many clauses, or messages, are processed together, so that their memory can be prefetched.
GROUP = 16


class KeywordGridArrays(NamedTuple):
    """Lists by anchor, class and cell. Each anchor also has a list without a cell, for all entries if they are few, else for
    those too large for a cell."""

    # int64[2 * n_anchors]: the list without a cell (0 = none); see LEVEL_BITS
    directory: np.ndarray
    # int64[2 * n_slots]: key of a list in a cell (0 = free), the list value
    slot: np.ndarray
    # int32[]: blocks; block 0 is never used
    pool: np.ndarray
    # int32[N_CAPACITIES]: the first free run of blocks of each capacity class, linked through their first elements; 0 = none
    free: np.ndarray
    # int64[2 * (MOST_LEVELS + 1)]: the most columns, and rows, that an entry of a class extends beyond its corner
    span: np.ndarray
    # int64[2 * (MOST_LEVELS + 1)]: the number of entries at which the grid of an anchor gets each level, and a finer one
    limit: np.ndarray
    head: np.ndarray  # int64[HEAD_FIELDS]


class MessageRuns(NamedTuple):
    """The messages of clauses: those of clause i are `message[begin[i]:end[i]]`. The other arrays are scratch for one group."""

    message: np.ndarray  # int32[capacity]
    begin: np.ndarray  # int64[n]
    end: np.ndarray  # int64[n]
    pending: np.ndarray  # int32[capacity]: candidates from the scans of lists
    pending_end: np.ndarray  # int64[GROUP]: the end of each clause's candidates in `pending`
    unsure: np.ndarray  # int32[capacity]: candidates whose keywords must be compared
    unsure_end: np.ndarray  # int64[GROUP]: the end of each clause's candidates in `unsure`


class MoveOutput(NamedTuple):
    """The output of `find_move_changes`: the messages that leave and enter each clause. `key` and `lists` are scratch."""

    left: MessageRuns
    entered: MessageRuns
    key: np.ndarray  # int64[lists of a group]
    lists: np.ndarray  # int64[lists of a group]
    counters: np.ndarray  # int64[2], at NODES and CANDIDATES


class MatchOutput(NamedTuple):
    """The output of `match_messages`: the clauses of message m are `clause[begin[m]:end[m]]`. The other arrays are scratch."""

    clause: np.ndarray  # int32[capacity]
    begin: np.ndarray  # int64[n]
    end: np.ndarray  # int64[n]
    pending: np.ndarray  # int32[capacity]
    key: np.ndarray  # int64[lists of a group]
    lists: np.ndarray  # int64[lists of a group]
    counters: np.ndarray  # int64[2], at NODES and CANDIDATES
