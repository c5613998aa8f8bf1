"""The arrays of the trie, and those of the clauses in trie order that other structures share with it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NO_RANK = -1  # the rank of a keyword no filed clause names
BY_KEYWORDS, BY_CHILDREN, BY_COST = 0, 1, 2  # how a walk finds the children a message may enter


class FiledArrays(NamedTuple):
    """Clauses in trie order: by their keyword ranks, a shorter list before a longer one that begins with it.

    A keyword's rank is its place in the order chosen at build. The rank `n_ranks[0]`, above all of them, stands for a
    keyword that every message has; clauses without keywords are found by it where a keyword is needed.
    Paper: the subscription ids of the trie; position = id.
    """

    rank: np.ndarray  # int32[n_keywords at build]; NO_RANK = in no filed clause
    n_ranks: np.ndarray  # int64[1]
    clause: np.ndarray  # int32[n]: the slot of the clause at each position
    box: np.ndarray  # float64[4 * n]: x0, y0, x1, y1 of the clause at each position
    word_start: np.ndarray  # int64[n + 1]
    word: np.ndarray  # int32[]: the ranks of the clause at each position, ascending
    rarest: np.ndarray  # int32[n]: the rank of its rarest keyword, n_ranks[0] if it has none


class TrieArrays(NamedTuple):
    """Nodes level by level from the root; the children of a node stand together, ascending by rank.

    The clauses below a node are the positions first[n] … stop[n] - 1; those that end in it come first, up to ending_stop[n].
    Paper: [n_l, n_u] = first, stop; the ε-leaf of a node = first … ending_stop.
    """

    word: np.ndarray  # int32[n_nodes]: rank of the keyword that leads into the node; NO_RANK for the root
    child_start: np.ndarray  # int32[n_nodes + 1]: children of n are child_start[n] … child_start[n + 1] - 1
    first: np.ndarray  # int32[n_nodes]
    ending_stop: np.ndarray  # int32[n_nodes]
    stop: np.ndarray  # int32[n_nodes]
    box: np.ndarray  # float64[4 * n_nodes]: x0, y0, x1, y1 around all clauses below
    level_start: np.ndarray  # int64[n_levels + 1]: first node of each level
    widest: np.ndarray  # int64[1]: most children of a node


class RankedMessages(NamedTuple):
    """The keywords of a batch as ascending ranks; each message ends with the rank every message has."""

    start: np.ndarray  # int64[n + 1]
    rank: np.ndarray  # int32[]
