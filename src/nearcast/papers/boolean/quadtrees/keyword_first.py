"""`keyword_first_quadtree`: a quadtree per posting list."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearcast.errors import IndexParameterError
from nearcast.kernels.layouts import ClauseArrays
from nearcast.papers.boolean.quadtrees.cell_index import CellIndex, CellParameters
from nearcast.papers.boolean.quadtrees.kernels.keyword_first import match_messages
from nearcast.papers.boolean.quadtrees.kernels.lists import withdraw_clauses
from nearcast.papers.boolean.quadtrees.layout import OWNER_SHIFT, PlaceArrays


@dataclass(frozen=True, slots=True)
class KeywordFirstQuadtreeParameters(CellParameters):
    """`smallest_tree`: posting lists of fewer clauses are not divided; they are scanned sooner than a cell is found."""

    smallest_tree: int = 32

    def __post_init__(self) -> None:
        # Not super(): a dataclass with slots is made anew, which the short form does not survive.
        CellParameters.__post_init__(self)
        if self.smallest_tree < 1:
            raise IndexParameterError(f"smallest_tree={self.smallest_tree!r} is not possible; expected at least 1")


class KeywordFirstQuadtree(CellIndex):
    """Each clause under its rarest keyword, then in the cheapest cells for the messages that have the keyword."""

    name = "keyword_first_quadtree"
    aliases = ("rq-tree",)
    paper = "RQ-Tree of Wang et al. 2017 (AP-Tree), section 5.1.1"
    summary = "a posting list per rarest keyword, each with a quadtree whose cells are chosen by cost"
    parameters_class = KeywordFirstQuadtreeParameters
    parameters: KeywordFirstQuadtreeParameters
    is_space_first = False
    match_kernel = staticmethod(match_messages)

    def owner_weights(self, frequency: NDArray[np.int64], places: PlaceArrays) -> NDArray[np.float64]:
        """Only messages with the keyword come here: each counts in full."""
        return np.ones(len(frequency) + 1)

    def owner_trees(self, n_posted: NDArray[np.int64]) -> NDArray[np.uint8]:
        return (n_posted >= self.parameters.smallest_tree).astype(np.uint8)

    def _post(self, layout: ClauseArrays, slots: NDArray[np.int32]) -> None:
        super()._post(layout, slots)
        for number in self._grown_long(slots):
            self._divide(layout, number)

    def _grown_long(self, slots: NDArray[np.int32]) -> NDArray[np.int32]:
        """The undivided lists that these clauses stand in and that have become twice as long as they should be."""
        lists = self._lists
        numbers = np.unique(lists.bound[lists.bound_start[slots]])
        numbers = numbers[lists.pool.size[numbers] >= 2 * self.parameters.smallest_tree]
        long: NDArray[np.int32] = numbers[lists.is_tree[lists.list_key[numbers] >> OWNER_SHIFT] == 0]
        return long

    def _divide(self, layout: ClauseArrays, number: int) -> None:
        """File the clauses of an undivided list anew, in cells."""
        lists = self._lists
        start, size = int(lists.pool.start[number]), int(lists.pool.size[number])
        slots = lists.pool.item[start : start + size].copy()
        withdraw_clauses(lists, slots)
        lists.is_tree[lists.list_key[number] >> OWNER_SHIFT] = 1
        super()._post(layout, slots)
