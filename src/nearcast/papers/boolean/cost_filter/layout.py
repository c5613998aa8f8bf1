"""What the cost model reads, and the scratch of the walk through both structures."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Positions in the unit costs: a step in the trie, a step in the quadtree, a look at a clause of a list.
TRIE_STEP, QUADTREE_STEP, LOOK = 0, 1, 2

FRAME_FIELDS = 5  # node, level, where the message goes on, first window, last window
WINDOW_FIELDS = 3  # first item, last item, quadtree node of the list


class CostArrays(NamedTuple):
    """The figures of the cost model. Paper: κ_T, κ_Q; L_i; F_i; S_avg; D; Avg_RT; H_q."""

    unit_cost: np.ndarray  # float64[3]: microseconds, or 1 each; at TRIE_STEP, QUADTREE_STEP, LOOK
    exponent: np.ndarray  # float64[3]: of the steps in the trie, of the lists met, of the steps per list; 1 if not calibrated
    caution: np.ndarray  # float64[1]: the trie is taken only if it is estimated to be so many times cheaper; at least 1
    level_size: np.ndarray  # float64[n_levels]: trie nodes on each level, 1 for the root
    fanout: np.ndarray  # float64[n_levels + 1]: mean number of children on each level; the last ones are 0
    words_per_clause: np.ndarray  # float64[1]: mean, at least 1
    words_per_cell: np.ndarray  # float64[1]: mean size of the sets of a quadtree node
    lists_before: np.ndarray  # float64[(side + 1)**2]: lists in the grid cells below and left of each corner


class HybridScratch(NamedTuple):
    """Room of the walk; where it does not suffice, lists are verified directly."""

    stamp: np.ndarray  # int32[n_ranks + 1]
    stack: np.ndarray  # int32[]: of the walk of the trie
    search_stack: np.ndarray  # int32[]: of the search in the quadtree
    found: np.ndarray  # int32[n quadtree nodes]
    frame: np.ndarray  # int64[FRAME_FIELDS * room]
    window: np.ndarray  # int64[WINDOW_FIELDS * room]
