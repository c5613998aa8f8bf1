"""The arrays of the R-trees with keywords."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.pools import ListPool
from nearcast.papers.boolean.kernels.keyword_lists import KeywordListArrays
from nearcast.papers.boolean.kernels.rtree import RTreeArrays


class SetTreeArrays(NamedTuple):
    """An R-tree and, for each node, the sorted set of the keywords listed below it. Paper: R^t-tree, R^t+-tree.

    Listed is every keyword of a clause, or its representative alone; for a clause without keywords NO_KEYWORD.
    """

    tree: RTreeArrays
    sets: ListPool  # list `n` is the set of node `n`
    representative: np.ndarray  # int32[n_clauses]: the one listed keyword of each clause; empty if all are listed


class CountTreeArrays(NamedTuple):
    """An R-tree and inverted files that name each clause once per keyword. Paper: R^t++-tree.

    Group `n` of the lists belongs to node `n` as an entry of its parent: under the keyword whose position in a clause is the
    depth of the parent (the root has depth 1). Group `n_nodes + n` holds what leaf `n` has beyond: the keywords whose position
    is the depth of the leaves or more. Items are ranks, which number the clauses in the order of the leaves.
    """

    tree: RTreeArrays
    lists: KeywordListArrays
    slot: np.ndarray  # int32[n_built]: the clause of each rank
    n_listed: np.ndarray  # int32[n_built]: in how many lists it stands
