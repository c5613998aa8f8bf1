"""The arrays of the tree, of the inputs of its cost model, and of the work in progress while it changes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Kinds of node, and the fields of a node's record.
LEAF, KEYWORD, SPACE = 0, 1, 2
KIND, FIRST, SIZE, EXTRA = 0, 1, 2, 3
NODE_FIELDS = 4
ROOT = 0
NO_NODE = -1

# A block has some fields of any inner node, then its children, then (by keyword) the left end of each cut.
N_CHANGES, N_CHECKED, N_DIVIDED, BOUNDS = 0, 1, 2, 3
BLOCK_FIELDS = 4

# `SIZE` of a node divided by space is columns * ROWS + rows.
ROWS = 1 << 12

NO_RANK = -(2**31)
BEFORE_ALL = -(2**31) + 1  # the left end of the first cut

# Fields of `head`.
N_NODES, N_BLOCK, N_BOUND, N_ENTRIES, FREE_NODE, N_FILED, N_FRONT, N_BACK, DEEPEST, N_REBUILT = range(10)
HEAD_FIELDS = 10


class TreeArrays(NamedTuple):
    """The tree as it is matched. Arrays are longer than what is in use: `head` counts.

    A leaf: FIRST = its first entry, SIZE = its entries, EXTRA = its capacity. An inner node: FIRST = its block, EXTRA = the
    child that every message enters: clauses without an l-th keyword (by keyword), or that cover the region (by space). By
    keyword: SIZE = cuts, each from its left end to the next; the first and last are open, so every rank falls into one. By
    space: a grid; `bound` holds the copies made per clause, then the inner bounds of columns, then those of rows.
    """

    rank: np.ndarray  # int32[n_keywords]: position of a keyword in the order; NO_RANK = no clause had it yet
    region: np.ndarray  # float64[4]: the region of the root
    node: np.ndarray  # int32[NODE_FIELDS * n_nodes]
    n_below: np.ndarray  # int32[n_nodes]: distinct clauses filed below, now
    n_at_division: np.ndarray  # int32[n_nodes]: the same when the parent was divided
    share: np.ndarray  # float32[n_nodes]: the expected share of all messages that reach the node
    block: np.ndarray  # int32[]
    bound: np.ndarray  # float64[]
    clause: np.ndarray  # int32[n_entries]
    signature: np.ndarray  # int64[n_entries]: bits of the keywords that the path to the leaf does not prove
    box: np.ndarray  # float64[4 * n_entries]
    free_block: np.ndarray  # int32[N_CLASSES]
    free_bound: np.ndarray  # int32[N_CLASSES]
    free_entry: np.ndarray  # int32[N_CLASSES]
    head: np.ndarray  # int64[HEAD_FIELDS]


# Fields of `facts`: messages that arrive in a time step, the share of clauses that report a move in it, weights of what an
# update and a reconstruction cost against a verification, the most steps to look ahead, speed of clauses that never moved.
ARRIVALS, REPORTS, UPDATE_WEIGHT, REBUILD_WEIGHT, MOST_STEPS, TYPICAL_SPEED = range(6)
MOTION_FIELDS = 6


class MotionArrays(NamedTuple):
    """How clauses move. No ARRIVALS: that costs nothing."""

    velocity: np.ndarray  # float32[2 * n_clauses]: x and y of the last move; nan = not moved yet
    facts: np.ndarray  # float64[MOTION_FIELDS]


class DensityArrays(NamedTuple):
    """Where messages are: `count_sum[row * (width + 1) + column]` is the count left of the column and below the row."""

    count_sum: np.ndarray  # float64[(width + 1)^2]
    frame: np.ndarray  # float64[7]: low, high, cells per half unit of x, then of y; then the width


class CostInputs(NamedTuple):
    """What the cost model reads."""

    likelihood: np.ndarray  # float32[]: by rank, from 0: the share of messages that have the keyword
    density: DensityArrays  # where messages are
    motion: MotionArrays


class Options(NamedTuple):
    """The parameters as kernels take them."""

    fanout: int
    leaf_size: int
    priority: int
    is_optimal: int
    is_refining: int
    max_copies: float
    drift_limit: float  # NEVER = no reconstruction
    noise_weight: float  # 1.0 = the limit is raised by what chance alone explains
    least_change: float


BY_COST, BY_KEYWORD_FIRST, BY_SPACE_FIRST = 0, 1, 2
NEVER = -1.0

# What is still allowed on the way down: division by keyword, by space.
MAY_KEYWORD, MAY_SPACE = 1, 2

# Fields of an item: a node to be divided, a node visited by a clause, or a node to be rebuilt. START and STOP are
# the run of its clauses in `order`; START of a visit is the visit it came from.
NODE, START, STOP, OFFSET, ALLOWED, DEPTH, PROVEN = range(7)
ITEM_FIELDS = 7
# And of its region: a box, and how many copies there are of a clause on average.
SPREAD = 4
REGION_FIELDS = 5

# Fields of `state`.
N_ITEMS, N_PENDING, POSITION = 0, 1, 2
STATE_FIELDS = 3

# Sizes that a kernel needs before it continues.
(
    NEEDED_NODES,
    NEEDED_BLOCK,
    NEEDED_BOUND,
    NEEDED_ENTRIES,
    NEEDED_LOCAL,
    NEEDED_KEYWORDS,
    NEEDED_ORDER,
    NEEDED_VISITS,
    NEEDED_PENDING,
) = range(9)
NEEDED_FIELDS = 9


class WorkArrays(NamedTuple):
    """The work in progress: clauses by a local number, a stack of items to divide, and scratch.

    A kernel that stops because capacity ran out finds everything here when it is called again.
    """

    state: np.ndarray  # int64[STATE_FIELDS]
    needed: np.ndarray  # int64[WANTED_FIELDS]
    item: np.ndarray  # int64[]
    item_region: np.ndarray  # float64[]
    clause: np.ndarray  # int32[n_local]: slots
    box: np.ndarray  # float64[4 * n_local]
    rank_start: np.ndarray  # int64[n_local + 1]
    rank: np.ndarray  # int32[]: the keywords of each, in order
    order: np.ndarray  # int32[]: local numbers; an item has a run of it, and the last item the end
    key: np.ndarray  # int32[n_local]: distinct keywords at a node
    weight: np.ndarray  # float64[n_local + 1]
    chance: np.ndarray  # float64[n_local + 1]
    line: np.ndarray  # int32[]: by rank, shifted to begin at 0; zero between uses
    sample: np.ndarray  # float64[4 * SAMPLE]
    edge: np.ndarray  # float64[4 * (MOST_EDGES + 2)]
    bounds: np.ndarray  # int64[3 * (fanout + 2)]: cuts, columns, rows
    grid: np.ndarray  # float64[2 * (fanout + 2)]: inner bounds of columns, then of rows
    counts: np.ndarray  # int64[2 * (2 * fanout + 4)]
    table: np.ndarray  # int32[]: choices of the optimal division
    row: np.ndarray  # float64[4 * (MOST_KEYS + 1)]
    atom: np.ndarray  # int64[MOST_KEYS + 1 + 256]
    seen: np.ndarray  # uint8[n_clauses]: zero between uses
    stack: np.ndarray  # int32[]: a stack of nodes of a subtree
    visit: np.ndarray  # int64[]: items
    visit_region: np.ndarray  # float64[]
    pending: np.ndarray  # int64[]: items
    pending_region: np.ndarray  # float64[]


SAMPLE = 512  # boxes that the bounds of a grid are chosen by
MOST_EDGES = 128  # candidates for a bound
MOST_KEYS = 2048  # most keywords that the optimal division distinguishes
DEEPEST_LEVEL = 40
