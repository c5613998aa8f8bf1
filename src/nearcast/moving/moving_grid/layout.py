"""The arrays of one side of a moving grid, clauses or messages, and how a list lies in memory.

A list is a run of blocks, a block holds its entries field by field, as vector units read them:

| side | a block |
|---|---|
| clauses | 4 times x0 and y0, 4 times x1 and y1, 4 signatures, 4 clauses |
| messages | 8 x, 8 y, 8 messages |

Either is one cache line. Coordinates are of 16 bits, two in an int32, counted from the corner of their cell (see
`keys.place_in_cell`, `simd.four_boxes` and `simd.eight_points`). They never fall where exact ones rise: what lies strictly
inside a rounded box is inside the exact one, and only what lies on its border needs a look at the exact one. A free place has
ones for its first coordinate, and so have messages with an area: no test of points finds them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

CATCH_ALL = 0  # the owner of clauses without keywords, and of every message; keyword w is owner 1 + w

BLOCK = 16
# A block has 1 << so many entries.
CLAUSE_BITS, MESSAGE_BITS = 2, 3
NO_COORDINATE = (1 << 16) - 1
NOWHERE = -1  # two of these
# Fields of a block.
SIGNATURES, CLAUSES = 8, 12
ROWS, MESSAGES = 4, 8
# Vector loads may read, and vector stores write, this far past the end of what they need.
SLACK = 64

# Columns and rows are counted this fine; a cell of level l is 2^(FINE - l) of them.
FINE = 20
MOST_LEVELS = 12
CELL_BITS = 2 * MOST_LEVELS
CLASS_BITS = 5
AREA_CLASS = 16  # added to the class of lists of messages with an area

# What a list is found at: its first block, the class of its room, its size.
SIZE_BITS, ROOM_BITS = 28, 6
SIZE_MASK, ROOM_MASK = (1 << SIZE_BITS) - 1, (1 << ROOM_BITS) - 1
PLACE_SHIFT = SIZE_BITS + ROOM_BITS
N_ROOMS = 1 << ROOM_BITS

# The second number of a door: level, classes in use (bit 0: the list without a cell), whether messages are filed here; entries.
LEVEL_BITS = 5
LEVEL_MASK = (1 << LEVEL_BITS) - 1
CLASSES_MASK = (1 << 16) - 1
ROUTED = 1 << (LEVEL_BITS + 16)
COUNT_SHIFT = 32
ONE_ENTRY = 1 << COUNT_SHIFT

# Fields of `head`: blocks given out; keys in the table; entries; how far the sweep is; classes in use by any owner; what lies
# outside the frame, and all that was filed, since the build.
N_BLOCKS, N_KEYS, N_ENTRIES, CURSOR, ALL_CLASSES, N_OUTSIDE, N_FILED = range(7)
HEAD_FIELDS = 7

# Fields of a clause's record: its owner, where it stands, the masks and signature of its other keywords, up to four of these.
OWNER, PLACE, MASK, SIGNATURE, OTHERS = range(5)
RECORD = 8
N_OTHERS = RECORD - OTHERS
NO_KEYWORD, MORE_KEYWORDS = -1, -2
HAS_OTHERS = 1 << 27  # in a signature
NEEDS_WORDS = 1 << 30  # in a mask of a record: it does not say all that is asked of the others

# What is kept of a message's keywords, in a cache line: how many there are, and all of them if they fit.
WORDS = 16

# Blocks that an entry may take while the lists of its owner are filled again.
BLOCKS_OF_ENTRY = 4

NO_ROOM = -1

# Clauses, or messages, whose memory is asked for together.
GROUP = 16


class SideArrays(NamedTuple):
    """Lists by owner, class and cell; an owner with few entries, or with large ones, has a list without a cell."""

    door: np.ndarray  # int64[2 * n_owners]: the list without a cell (0 = none); see LEVEL_BITS
    slot: np.ndarray  # int64[2 * n_slots]: key of a list in a cell (0 = free), the list
    pool: np.ndarray  # int32[]: blocks; block 0 is never used
    free: np.ndarray  # int32[N_ROOMS]: the first free run of blocks of each room, linked through their first ints; 0 = none
    span: (
        np.ndarray
    )  # int64[2 * (MOST_LEVELS + 1)]: the most columns, and rows, that an entry of a class reaches beyond its corner
    limit: np.ndarray  # int64[2 * (MOST_LEVELS + 1)]: entries of an owner from which on its grid has this level, a finer level
    head: np.ndarray  # int64[HEAD_FIELDS]


class Runs(NamedTuple):
    """Messages found for clauses: those of clause i are `message[begin[i]:end[i]]`; the rest is scratch for one group."""

    message: np.ndarray  # int32[room]
    begin: np.ndarray  # int64[n]
    end: np.ndarray  # int64[n]
    pending: np.ndarray  # int32[room]: what scans of lists gave
    mark: np.ndarray  # int64[GROUP]: where that of each clause of the group ends in `pending`
    unsure: np.ndarray  # int32[room]: what of it must be looked at again
    kept: np.ndarray  # int64[GROUP]: where that of each clause of the group ends in `unsure`


class Differences(NamedTuple):
    """What `find_differences` fills: the messages that leave and enter clause by clause; the rest is scratch."""

    left: Runs
    entered: Runs
    key: np.ndarray  # int64[lists of a group]
    lists: np.ndarray  # int64[lists of a group]
    counters: np.ndarray  # int64[2], at NODES and CANDIDATES


class MessageMatches(NamedTuple):
    """What `match_messages` fills: the clauses of message m are `clause[begin[m]:end[m]]`; the rest is scratch."""

    clause: np.ndarray  # int32[room]
    begin: np.ndarray  # int64[n]
    end: np.ndarray  # int64[n]
    pending: np.ndarray  # int32[room]
    key: np.ndarray  # int64[lists of a group]
    lists: np.ndarray  # int64[lists of a group]
    counters: np.ndarray  # int64[2], at NODES and CANDIDATES
