"""What an index finds: pairs of a clause and a message, as they are or kept in groups, and the work it took."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Matches(NamedTuple):
    """Matching (message, clause) pairs grouped by message in order, and the work it took."""

    message: NDArray[np.int32]
    clause: NDArray[np.int32]
    nodes_visited: int
    candidates: int


class Runs(NamedTuple):
    """The same, kept message by message: the clauses of message m are `clause[begin[m]:end[m]]`.

    `clause` may be memory that the next match in the same thread writes to again.
    """

    clause: NDArray[np.int32]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    nodes_visited: int
    candidates: int


class Found(NamedTuple):
    """Pairs of a clause and the slot of a living message, and the work it took."""

    clause: NDArray[np.int32]
    message: NDArray[np.int32]
    nodes_visited: int
    candidates: int


class Differences(NamedTuple):
    """What a move of clauses changes: pairs that were and are not (left), pairs that were not and are (entered)."""

    left: Found
    entered: Found


class Groups(NamedTuple):
    """Pairs kept group by group: `of[i]` with each of `member[begin[i]:end[i]]`.

    `member` may be memory that the next call in the same thread writes to again.
    """

    of: NDArray[np.int32]
    member: NDArray[np.int32]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]

    @property
    def n_pairs(self) -> int:
        return int((self.end - self.begin).sum())


class MessageGroups(NamedTuple):
    """The clauses of each message, by its slot, and the work it took."""

    groups: Groups
    nodes_visited: int
    candidates: int


class MoveGroups(NamedTuple):
    """The messages that leave and that enter each clause, and the work it took."""

    left: Groups
    entered: Groups
    nodes_visited: int
    candidates: int
