"""The options and the arrays of the R-trees with keywords."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nearcast.engine.registry import Parameters
from nearcast.errors import IndexParameterError
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
    n_listed: np.ndarray  # int32[n_built]: the number of its lists


REPRESENTATIVES = ("all", "one", "many")
SELECTIONS = ("random", "df", "idf", "local")
ROOTS = ("wide", "packed")


@dataclass(frozen=True, slots=True)
class TextualRTreeParameters(Parameters):
    """`representatives`: which keywords of a clause the nodes above it know: "all" (R^t), "one" (R^t+), "many" (R^t++: another
    one on each level, and no keywords to verify). `selection`: which one, or which first: "random" (of `seed`), "df" (few
    frequent ones that cover all clauses), "idf" (the rarest), "local" (the rarest in its part of the plane). `node_capacity`:
    entries per node, at least half used after a split (the paper's B = 50, b = 25). `root`, for "many" only: "packed"
    as it comes, perhaps with two entries, or "wide": then it gets the entries of its children.
    """

    representatives: str = "many"
    selection: str = "idf"
    node_capacity: int = 50
    root: str = "wide"
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value, expected in (
            ("representatives", self.representatives, REPRESENTATIVES),
            ("selection", self.selection, SELECTIONS),
            ("root", self.root, ROOTS),
        ):
            if value not in expected:
                raise IndexParameterError(f"{name}={value!r} is not possible; expected one of {', '.join(expected)}")
        if not 4 <= self.node_capacity <= 1024:
            raise IndexParameterError(f"node_capacity={self.node_capacity!r} is not possible; expected 4 to 1024")
        if self.seed < 0:
            raise IndexParameterError(f"seed={self.seed!r} is not possible; expected 0 or more")
