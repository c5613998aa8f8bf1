"""Which keyword of a clause represents it, or the order in which its keywords do. Paper: RT 4.2.

Every order is legal: a clause that matches has all of its keywords in the message. The order decides how much is pruned.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import take_lists
from nearcast.kernels import sorting
from nearcast.kernels.layouts import ClauseArrays
from nearcast.papers.boolean.kernels.keyword_lists import NO_KEYWORD
from nearcast.papers.boolean.textual_rtree.kernels import maintain

GRID_SIDE = 100
_LAST = np.iinfo(np.int64).max


class KeywordOrder:
    """Orders the keywords of clauses by one selection. `weight` is that of each keyword, fixed when the order was made."""

    def __init__(self, selection: str, seed: int, weight: NDArray[np.int64]) -> None:
        self._selection = selection
        self._seed = seed
        self.weight = weight

    @classmethod
    def of_clauses(
        cls, selection: str, seed: int, clauses: ClauseArrays, slots: NDArray[np.int32], n_keywords: int
    ) -> KeywordOrder:
        """Weights by the frequencies among these clauses."""
        start, keyword = take_lists(clauses.keyword_start, clauses.keyword, slots)
        frequency = np.bincount(keyword, minlength=n_keywords).astype(np.int64)
        if selection != "df":
            return cls(selection, seed, frequency)
        return cls(selection, seed, greedy_ranks(start, keyword, frequency))

    def ordered(
        self, clauses: ClauseArrays, slots: NDArray[np.int32], n_keywords: int, is_local: bool = False
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The keywords of the clauses at `slots`, best first, as offsets and members; NO_KEYWORD if there are none.

        `is_local` counts in the cells of a grid over these clauses, so it needs all of them.
        """
        start, keyword = take_lists(clauses.keyword_start, clauses.keyword, slots)
        clause_of = np.repeat(slots, np.diff(start))
        known = self._known_weight(n_keywords)
        if self._selection == "random":
            weight = _scrambled(clause_of, keyword, self._seed)
        elif is_local and self._selection == "local":
            weight = _local_frequency(clauses, slots, start, keyword)
        else:
            weight = known[keyword]
        maintain.order_keywords(start, keyword, weight, known)
        return _with_no_keyword(start, keyword)

    def _known_weight(self, n_keywords: int) -> NDArray[np.int64]:
        """Words that came later are the rarest, and the last in the greedy order."""
        missing = n_keywords - len(self.weight)
        if missing <= 0:
            return self.weight
        return np.concatenate([self.weight, np.full(missing, _LAST if self._selection == "df" else 0, np.int64)])


def greedy_ranks(start: NDArray[np.int64], keyword: NDArray[np.int32], frequency: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rank of each keyword in the greedy order that covers every clause; unneeded ones follow, frequent ones first."""
    n_clauses, n_keywords = len(start) - 1, len(frequency)
    holder_start = np.zeros(n_keywords + 1, np.int64)
    sorting.offsets_from_counts(frequency, holder_start)
    holder = np.empty(len(keyword), np.int32)
    clause = np.repeat(np.arange(n_clauses, dtype=np.int32), np.diff(start))
    sorting.fill_lists(keyword, clause, holder_start[:-1].copy(), holder)
    rank = n_keywords + (n_clauses - frequency)
    heap, is_covered = np.empty(n_keywords, np.int64), np.zeros(n_clauses, np.bool_)
    maintain.pick_greedily(start, keyword, holder_start, holder, frequency.copy(), heap, is_covered, rank)
    return rank


def _with_no_keyword(start: NDArray[np.int64], keyword: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    lengths = np.diff(start)
    if lengths.all():
        return start, keyword
    filled = np.insert(keyword, start[:-1][lengths == 0], NO_KEYWORD)
    return np.concatenate([[0], np.cumsum(np.maximum(lengths, 1))]), filled


def _local_frequency(
    clauses: ClauseArrays, slots: NDArray[np.int32], start: NDArray[np.int64], keyword: NDArray[np.int32]
) -> NDArray[np.int64]:
    """How many clauses of the same cell have the keyword, for each keyword of each clause."""
    column = _cell_of(clauses.x0[slots] * 0.5 + clauses.x1[slots] * 0.5)
    row = _cell_of(clauses.y0[slots] * 0.5 + clauses.y1[slots] * 0.5)
    cell = np.repeat(row * GRID_SIDE + column, np.diff(start))
    width = int(keyword.max(initial=0)) + 1
    _, pair, count = np.unique(cell * width + keyword, return_inverse=True, return_counts=True)
    return count[pair].astype(np.int64)


def _cell_of(centre: NDArray[np.float64]) -> NDArray[np.int64]:
    if len(centre) == 0:
        return np.zeros(0, np.int64)
    share = np.arange(1, GRID_SIDE) / GRID_SIDE
    # Shares of both ends instead of a share of their difference, which overflows in a plane of the largest floats.
    bounds = centre.min() * (1.0 - share) + centre.max() * share
    return np.searchsorted(bounds, centre, side="right")


def _scrambled(clause_of: NDArray[np.int32], keyword: NDArray[np.int32], seed: int) -> NDArray[np.int64]:
    """A number that looks random for each clause, keyword and seed, and is the same in each run (splitmix64)."""
    bits: NDArray[Any] = clause_of.astype(np.uint64) << np.uint64(32) | keyword.astype(np.uint64)
    bits += np.uint64(seed % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ bits >> np.uint64(shift)) * np.uint64(factor)
    scrambled: NDArray[np.int64] = (bits ^ bits >> np.uint64(31)).view(np.int64)
    return scrambled
