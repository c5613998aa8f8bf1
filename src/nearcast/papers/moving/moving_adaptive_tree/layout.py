"""The arrays of the lists of messages at the nodes of the tree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.papers.boolean.adaptive_tree.layout import DEEPEST_LEVEL

# The record of a node's list: its first entry, its size, its capacity.
BEGIN, COUNT, CAPACITY = 0, 1, 2
LIST_FIELDS = 4

# Fields of `head`: entries in use or freed; copies of messages; nodes whose messages must be reinserted; a mark for "seen in
# this epoch"; the sizes that a kernel needs, of entries and of `pending`.
N_USED, N_COPIES, N_REINSERT, EPOCH, NEEDED_USED, NEEDED_PENDING = range(6)
HEAD_FIELDS = 6

# The record of a node whose messages must be reinserted: whether it had children; its messages, from PENDING_FIRST to
# PENDING_LAST of `pending`; the length of the path from the root to it; the nodes of the path.
HAD_CHILDREN, PENDING_FIRST, PENDING_LAST, LENGTH, PATH = 0, 1, 2, 3, 4
REINSERT_FIELDS = PATH + DEEPEST_LEVEL + 2
BEGUN = 2  # HAD_CHILDREN of a node whose messages are being reinserted


class ListArrays(NamedTuple):
    """The messages stored at each node. Paper: the m-lists of AP+-Tree nodes.

    For each live message and each leaf position that it reaches, whether there is a leaf or not, exactly one node on the path
    from the root holds the message. So a clause finds each of its messages once, at its leaves or above them. The fields that a
    scan tests first are stored in the order of the scan. `point` is rounded monotonically.
    """

    node_list: np.ndarray  # int32[LIST_FIELDS * n_nodes]
    slot: np.ndarray  # int32[n_entries]
    signature: np.ndarray  # int64[n_entries]: bits of the message's keywords
    point: np.ndarray  # float32[2 * n_entries]: x, y
    free: np.ndarray  # int32[N_CLASSES]
    stamp: np.ndarray  # int32[n_message_slots]
    reinsert: np.ndarray  # int32[REINSERT_FIELDS * n]
    pending: np.ndarray  # int32[]: messages to reinsert
    leaf_guess: np.ndarray  # int32[n_clauses]: a leaf where a clause was found last; only a guess, for prefetching
    head: np.ndarray  # int64[HEAD_FIELDS]


class StoreScratch(NamedTuple):
    """Scratch for storing one message."""

    rank: np.ndarray  # int32[]: as many as a message has keywords
    queue: np.ndarray  # int32[]
    position: np.ndarray  # int32[]
    target: np.ndarray  # int32[]


class PathScratch(NamedTuple):
    """Scratch for following one clause."""

    rank: np.ndarray  # int32[]: as many as a clause has keywords
    queue: np.ndarray  # int32[n_nodes]
    offset: np.ndarray  # int32[n_nodes]
    region: np.ndarray  # float64[4 * n_nodes]
    new_queue: np.ndarray  # int32[n_nodes]
    proven: np.ndarray  # int64[n_nodes]: bits of the keywords that the path proves
    seen: np.ndarray  # int32[n_nodes]: the last move that visited the node, negative if on both its paths
