"""The lists of messages that stand at the nodes of the tree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.papers.boolean.adaptive_tree.layout import DEEPEST_LEVEL

# The record of a node's list: its first entry, how many, and for how many there is room.
BEGIN, COUNT, ROOM = 0, 1, 2
LIST_FIELDS = 4

# Fields of `head`: entries in use or freed, copies of messages in all; nodes whose messages are to be handed down again, a mark
# for "seen in this one"; room that a kernel asks for, of entries and of messages to be handed down.
N_USED, N_COPIES, N_REPLAY, EPOCH, WANTED_USED, WANTED_PILE = range(6)
HEAD_FIELDS = 6

# Of a node to be handed down again: whether it had children, its messages (from PILE_FIRST to PILE_LAST of `pile`), how long
# the way from the root to it is, the nodes of the way.
HAD_CHILDREN, PILE_FIRST, PILE_LAST, LENGTH, WAY = 0, 1, 2, 3, 4
REPLAY_FIELDS = WAY + DEEPEST_LEVEL + 2
BEGUN = 2  # HAD_CHILDREN of a node whose messages are on their way


class ListArrays(NamedTuple):
    """The messages stored at each node. Paper: the m-lists of AP+-Tree nodes.

    For every living message and every place for a leaf that it reaches, whether there is a leaf or not, exactly one node on
    the way from the root holds the message. So a clause finds each of its messages once, at its leaves or above them.
    What a scan asks first stands beside the slot, in the order of the scan; `place` is rounded, never in the wrong order.
    """

    own: np.ndarray  # int32[LIST_FIELDS * n_nodes]
    slot: np.ndarray  # int32[n_entries]
    signature: np.ndarray  # int64[n_entries]: bits of the message's keywords
    place: np.ndarray  # float32[2 * n_entries]: x, y
    free: np.ndarray  # int32[N_CLASSES]
    stamp: np.ndarray  # int32[n_message_slots]
    replay: np.ndarray  # int32[REPLAY_FIELDS * n]
    pile: np.ndarray  # int32[]: messages to be handed down
    home: np.ndarray  # int32[n_clauses]: a leaf where a clause was found last; only a guess, to ask for its memory ahead
    head: np.ndarray  # int64[HEAD_FIELDS]


class Scratch(NamedTuple):
    """Room for one message on its way down."""

    rank: np.ndarray  # int32[]: as many as a message has keywords
    queue: np.ndarray  # int32[]
    position: np.ndarray  # int32[]
    target: np.ndarray  # int32[]


class Follower(NamedTuple):
    """Room for one clause on its way down."""

    rank: np.ndarray  # int32[]: as many as a clause has keywords
    queue: np.ndarray  # int32[n_nodes]
    offset: np.ndarray  # int32[n_nodes]
    region: np.ndarray  # float64[4 * n_nodes]
    new_queue: np.ndarray  # int32[n_nodes]
    proven: np.ndarray  # int64[n_nodes]: bits of the keywords that the way proves
    seen: np.ndarray  # int32[n_nodes]: the last move that came by, negative if on both its ways
