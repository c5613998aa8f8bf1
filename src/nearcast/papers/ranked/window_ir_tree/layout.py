"""The arrays of trees of boxes with words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Members of a node.
FANOUT = 32


class TreeArrays(NamedTuple):
    """Pieces one after the other; `table` says where each starts in every group of columns, and all starts count from there.

    The nodes of a piece are those over messages, then those over them, and so on; the last one is the root. A node has `FANOUT`
    members or what is left. `heft` of a word in a node is the most that a message of it has of the word: count over length.
    """

    table: np.ndarray  # int64[pieces, N_COLUMNS]
    offset: np.ndarray  # int32[messages], sequence number from the first of the piece, neighbours together
    first_member: np.ndarray  # int32[nodes], a message in the order of `offset`, or a node
    end_member: np.ndarray  # int32[nodes]
    box: np.ndarray  # float32[6 · nodes], low and high corner of each
    word_start: np.ndarray  # int32[nodes + 1 of each piece]
    keyword: np.ndarray  # int32[words], rising in each node
    heft: np.ndarray  # float32[words], rounded up


# Columns of the table, after the sequence numbers.
MESSAGE_START, NODE_START, BOX_START, BORDER_START, WORD_START, N_LEAVES, N_NODES = range(2, 9)
