"""The flat arrays that every boolean index reads and writes: messages, clauses and matching pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class MessageArrays(NamedTuple):
    """A batch of messages. A point message is a box with x0 == x1 and y0 == y1.

    Keywords of message `m` are `keyword[keyword_start[m]:keyword_start[m + 1]]`: sorted, distinct, known to the vocabulary.
    """

    keyword_start: np.ndarray  # int64[n + 1]
    keyword: np.ndarray  # int32[]
    x0: np.ndarray  # float64[n]
    y0: np.ndarray  # float64[n]
    x1: np.ndarray  # float64[n]
    y1: np.ndarray  # float64[n]


class ClauseArrays(NamedTuple):
    """The clauses of an index: a box and the keywords that must all be present.

    A subscription is one clause when its interest is a plain list of keywords and its region is a box; otherwise it is the
    product of its alternatives and the boxes that cover its region, and each match is checked further by the engine.
    Keywords of clause `c` are `keyword[keyword_start[c]:keyword_start[c + 1]]`: sorted, distinct.
    Arrays may be longer than the clauses in use; slots are given out in order and never reused.
    """

    keyword_start: np.ndarray  # int64[capacity + 1]
    keyword: np.ndarray  # int32[]
    x0: np.ndarray  # float64[capacity]
    y0: np.ndarray  # float64[capacity]
    x1: np.ndarray  # float64[capacity]
    y1: np.ndarray  # float64[capacity]
    is_alive: np.ndarray  # uint8[capacity]


class Output(NamedTuple):
    """The output of a match kernel: the pairs it finds, and counters of its work."""

    message: np.ndarray  # int32[room]
    clause: np.ndarray  # int32[room]
    counters: np.ndarray  # int64[2], at NODES and CANDIDATES


# Positions in the counters: nodes or lists visited, live clauses tested.
NODES, CANDIDATES = 0, 1
