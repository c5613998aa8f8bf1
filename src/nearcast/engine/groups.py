"""What an index returns: pairs of a message and a clause in groups, and the work it took to find them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.deliveries import flatten_groups


class Groups(NamedTuple):
    """Pairs grouped by their key: `key[i]` with each of `member[begin[i]:end[i]]`.

    A match has a message of the batch as key and clauses as members; a move has a clause as key and messages as members.
    `member` may be memory that the next call of the index in the same thread writes to again: `copied` keeps it.
    """

    key: NDArray[np.int32]
    member: NDArray[np.int32]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]

    @property
    def n_pairs(self) -> int:
        return int((self.end - self.begin).sum())

    def pairs(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The key and the member of each pair."""
        n = self.n_pairs
        key, member = np.empty(n, np.int32), np.empty(n, np.int32)
        flatten_groups(*self, key, member)
        return key, member

    def copied(self) -> Groups:
        """The same in memory of its own."""
        return self._replace(member=self.member[: int(self.end.max(initial=0))].copy())


class Work(NamedTuple):
    """What a search cost: nodes or lists visited, living clauses or messages tested."""

    nodes: int
    candidates: int


def total(parts: Iterable[Work]) -> Work:
    """The sum of several searches."""
    nodes, candidates = np.array(list(parts), np.int64).sum(axis=0).tolist()
    return Work(nodes, candidates)


def grouped(key: NDArray[np.int32], member: NDArray[np.int32], n_keys: int) -> Groups:
    """Pairs, in the order of their keys, as groups of the keys 0 … `n_keys - 1`."""
    keys = np.arange(n_keys, dtype=np.int32)
    bounds = np.searchsorted(key, np.arange(n_keys + 1, dtype=np.int32))
    return Groups(keys, member, bounds[:-1], bounds[1:])


def joined(parts: Sequence[Groups], n_keys: int) -> Groups:
    """The pairs of several groups by the keys 0 … `n_keys - 1`, together."""
    pairs = [part.pairs() for part in parts]
    key, member = (np.concatenate(columns) for columns in zip(*pairs, strict=True))
    order = np.argsort(key, kind="stable")
    return grouped(key[order], member[order], n_keys)


def single_pairs(key: NDArray[np.int32], member: NDArray[np.int32]) -> Groups:
    """Pairs in any order, each a group by itself."""
    bounds = np.arange(len(key) + 1)
    return Groups(key, member, bounds[:-1], bounds[1:])


NO_PAIRS = single_pairs(np.empty(0, np.int32), np.empty(0, np.int32))
