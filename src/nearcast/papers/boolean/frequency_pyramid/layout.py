"""The arrays of the pyramid, its options for kernels, and the work in progress."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Fields of a node. A cell: BELOW = the first of its four quarters. A node of a trie: BELOW = the list of what ends there.
MASK, BELOW = 0, 1
NODE_FIELDS = 2
ROOT = 0  # the first of four, of which only it is used
FIRST_NODES = 4
NOTHING = -1  # no quarters, no list, no edge: as an edge it would lead to the root

NO_ANCHOR = 0  # the anchor of clauses without keywords; keyword w is anchor 1 + w
ANCHOR_SHIFT = 31

# The words of an entry besides its signature: x0, y0, x1, y1 as float64, then the clause.
CLAUSE = 4
ENTRY_WORDS = 5

# Fields of `head`.
N_NODES, N_WORDS, N_EDGES, N_LISTS, N_ENTRIES, N_FILED, N_BUILT, LONGEST, CLEANER, N_UNCLEANED, N_FREQUENT, N_SHARED = range(12)
HEAD_FIELDS = 12


class PyramidArrays(NamedTuple):
    """Cells and tries. Arrays are longer than what is in use: `head` counts.

    A list is a chunk of `word`: a header (clauses, capacity, and which quarters share it or how many clauses may move down),
    then the signatures of its clauses, then their entries. A list of a cell may be that of several quarters of one cell above.
    An edge leads from a cell or a node of a trie, by an anchor, to a list (its start, >= 0) or to a node of a trie (~number). A
    clause is filed once on the path from the root to any point of its box.
    """

    node: np.ndarray  # int64[NODE_FIELDS * n_nodes]: bits of the anchors of its edges, and BELOW
    slot: np.ndarray  # int64[2 * n_slots]: key (node, anchor) and value; at most 3/4 used
    word: np.ndarray  # int64[n_words]
    number: np.ndarray  # float64[n_words]: the same memory
    free_word: np.ndarray  # int64[N_CLASSES]: freed chunks by size
    frequency: np.ndarray  # int64[n_anchors]: living clauses that have the keyword
    frame: np.ndarray  # float64[6]: low, high, scale of x, then of y
    head: np.ndarray  # int64[HEAD_FIELDS]


class Options(NamedTuple):
    """The parameters as kernels take them."""

    list_size: int  # Paper: theta, a keyword of more clauses than this is frequent
    node_size: int  # clauses that may end at a node of a trie before some move down
    max_depth: int
    is_sharing: int


# Fields of an item: a clause to be filed in some quarters of a cell, which is at COLUMN and ROW of the grid of DEPTH - 1.
ITEM_CLAUSE, BLOCK, QUARTERS, DEPTH, COLUMN, ROW = range(6)
ITEM_FIELDS = 6

# Fields of `state`.
N_ITEMS, POSITION = 0, 1
# Sizes that a kernel needs before it continues.
NEEDED_NODES, NEEDED_SLOTS, NEEDED_WORDS, NEEDED_ITEMS = range(4)
NEEDED_FIELDS = 4


class WorkArrays(NamedTuple):
    """The work in progress, so that a kernel may stop without capacity and be called again."""

    state: np.ndarray  # int64[2]
    needed: np.ndarray  # int64[WANTED_FIELDS]
    item: np.ndarray  # int64[ITEM_FIELDS * most items]: a stack
