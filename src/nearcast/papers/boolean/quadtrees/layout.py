"""The arrays of posting lists by keyword and quadtree cell."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.pools import ListPool

NO_ANCHOR = 0  # the anchor of clauses without keywords; keyword w is anchor 1 + w
NO_LIST = -1
ROOT_CODE = 1

# The key of a list: anchor, then the code of the cell.
ANCHOR_SHIFT = 31
CODE_MASK = (1 << ANCHOR_SHIFT) - 1

# Fields of `directory` and of `chain`, per anchor.
ROOT_LIST, DEPTHS = 0, 1
FIRST_LIST, N_LISTS_OF = 0, 1
# Fields of `head`.
N_LISTS, N_SLOTS_USED, N_BOUND, N_FILED, N_BUILT, DEPTHS_OF_ALL = range(6)
HEAD_FIELDS = 6
# Fields of `facts`.
MAX_DEPTH, N_MESSAGES, MEAN_KEYWORDS = range(3)


class CellListArrays(NamedTuple):
    """List `i` holds the clauses bound to one cell and posted under one keyword; entries of a list are stored together.

    Entry `e` has the clause `pool.item[e]`, its box `box[4 * e:4 * e + 4]` and its `signature[e]`: what a scan needs is stored
    in the order of the scan. The lists of the root cell are found through `directory`, all others through the table `slot`.
    """

    slot: np.ndarray  # int64[2 * n_slots]: key, value; at most 2/3 used
    directory: np.ndarray  # int32[2 * n_anchors]: list in the root cell or NO_LIST; bit d set: has lists at depth d > 0
    chain: np.ndarray  # int32[2 * n_anchors]: newest list or NO_LIST; number of lists
    list_key: np.ndarray  # int64[list capacity]
    list_next: np.ndarray  # int32[list capacity]: the next older list of the same anchor
    pool: ListPool
    box: np.ndarray  # float64[4 * entry capacity]: x0, y0, x1, y1
    signature: np.ndarray  # int64[entry capacity]: bits of the keywords other than the anchor; 0 = there are none
    bound_start: np.ndarray  # int64[n_clauses]
    n_bound: np.ndarray  # int32[n_clauses]: the lists of the clause, bound[start:start + n]
    bound: np.ndarray  # int32[]
    frequency: np.ndarray  # int64[n_keywords]: filed clauses that have the keyword
    weight: np.ndarray  # float64[n_anchors]: what a message in a cell costs, before the share of messages there
    is_tree: np.ndarray  # uint8[n_anchors]: 0 = the anchor has one list, in the root cell
    head: np.ndarray  # int64[HEAD_FIELDS]


class MessageLocations(NamedTuple):
    """Where messages are, as sorted cells of the greatest depth (without the leading one)."""

    frame: np.ndarray  # float64[6]: low, high, scale of x, then of y
    cell: np.ndarray  # int32[n_messages]
    anchor_start: np.ndarray  # int64[n_anchors + 1]
    anchor_cell: np.ndarray  # int32[]: per anchor, the cells of the messages that have its keyword
    facts: np.ndarray  # float64[3]: greatest depth, messages of the history (0 = there was none), their mean keywords
