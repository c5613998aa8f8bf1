"""The lists of messages that stand at the nodes of the tree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.indexes.adaptive_tree.layout import DEEPEST_LEVEL

# A list is a chain of chunks, each a line of cache: the next chunk, how many entries, the entries.
NEXT, COUNT, ENTRIES = 0, 1, 2
WIDTH = 16
PER_CHUNK = WIDTH - ENTRIES
NO_CHUNK = -1

# Fields of `head`: chunks in use or freed, the first freed one, entries in all; nodes whose messages are to be handed down
# again, the chunk this has come to, and a mark for "seen in this one".
N_CHUNKS, FREE_CHUNK, N_COPIES, N_REPLAY, CHAIN, EPOCH = range(6)
HEAD_FIELDS = 6
NOT_BEGUN = -2

# Of a node to be handed down again: how long the way from the root to it is, whether it had children, the nodes of the way.
LENGTH, HAD_CHILDREN, WAY = 0, 1, 2
REPLAY_FIELDS = WAY + DEEPEST_LEVEL + 2


class ListArrays(NamedTuple):
    """The messages stored at each node. Paper: the m-lists of AP+-Tree nodes.

    For every living message and every place for a leaf that it reaches, whether there is a leaf or not, exactly one node on
    the way from the root holds the message. So a clause finds each of its messages once, at its leaves or above them.
    """

    first: np.ndarray  # int32[n_nodes]: chunk
    item: np.ndarray  # int32[WIDTH * n_chunks]
    stamp: np.ndarray  # int32[n_message_slots]
    replay: np.ndarray  # int32[REPLAY_FIELDS * n]
    head: np.ndarray  # int64[HEAD_FIELDS]


class Scratch(NamedTuple):
    """Room for one message on its way down."""

    rank: np.ndarray  # int32[]: as many as a message has keywords
    queue: np.ndarray  # int32[]
    position: np.ndarray  # int32[]
    target: np.ndarray  # int32[]
