"""The adaptive tree for clauses only, with the messages in a grid of their own beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore
from nearcast.engine.groups import Groups, Work
from nearcast.moving.index import Boxes, write_boxes
from nearcast.moving.live_messages import LiveMessages
from nearcast.papers.boolean.adaptive_tree.index import AdaptiveTree, AdaptiveTreeParameters
from nearcast.papers.moving.grid_lists.base import GridParameters
from nearcast.papers.moving.grid_lists.keyword_first import GridKeywordFirst
from nearcast.papers.moving.grid_lists.keyword_grid import Shape
from nearcast.papers.moving.grid_lists.messages import MessageGrid
from nearcast.papers.moving.grid_lists.space_first import GridSpaceFirst

_GRID = "grid_"
# Few are between two places at a time, lest nodes are built anew for being empty and full again.
_TOGETHER = 64


class SeparatedTree(AdaptiveTree):
    """Paper: AP+k with `is_space_first` false, AP+s with true; grids as in KK-Index and SS-Index."""

    def __init__(self, parameters: AdaptiveTreeParameters, is_space_first: bool) -> None:
        super().__init__(parameters)
        grid = GridParameters()
        smallest = GridSpaceFirst.smallest_grid if is_space_first else GridKeywordFirst.smallest_grid
        self._grid = MessageGrid(Shape(grid.side, grid.most_cells, is_space_first, smallest))

    def restore_messages(self, messages: LiveMessages) -> None:
        self._grid.build(messages)

    def store(self, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        self._grid.store(messages, slots)

    def drop_dead(self, messages: LiveMessages) -> None:
        self._grid.build(messages)

    def find_messages(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], excluded: Boxes
    ) -> tuple[Groups, Work]:
        return self._grid.find_messages(clauses, messages, slots, excluded)

    def insert_beside(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        self.insert(clauses, slots)

    def delete_beside(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        self.delete(clauses, slots)

    def refile_beside(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], to: Boxes) -> None:
        for first in range(0, len(slots), _TOGETHER):
            some = slots[first : first + _TOGETHER]
            self.delete(clauses, some)
            write_boxes(clauses, some, Boxes(*(side[first : first + _TOGETHER] for side in to)))
            self.insert(clauses, some)

    def stats(self) -> dict[str, int | float]:
        own = super().stats()
        return {**own, **self._grid.stats(), "bytes": own["bytes"] + self._grid.n_bytes}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**super().arrays(), **{f"{_GRID}{name}": array for name, array in self._grid.arrays().items()}}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super().restore(arrays)
        self._grid.restore({name[len(_GRID) :]: array for name, array in arrays.items() if name.startswith(_GRID)})
