"""`moving_adaptive_tree`: clauses and living messages in one adaptive tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work
from nearcast.engine.registry import Parameters
from nearcast.moving.index import Boxes, MovingIndex, write_boxes
from nearcast.moving.live_messages import LiveMessages
from nearcast.papers.boolean.adaptive_tree.index import AdaptiveTree
from nearcast.papers.boolean.adaptive_tree.parameters import AdaptiveTreeParameters
from nearcast.papers.moving.grid_lists.index import GridKeywordFirst, GridParameters, GridSpaceFirst
from nearcast.papers.moving.grid_lists.keyword_grid import MessageGrid, Shape
from nearcast.papers.moving.moving_adaptive_tree.parameters import MovingAdaptiveTreeParameters
from nearcast.papers.moving.moving_adaptive_tree.tree_with_messages import ListedTree

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


class MovingAdaptiveTree(MovingIndex):
    """Messages stand at the leaves that they reach, or above; a clause looks at its leaves and above."""

    name = "moving_adaptive_tree"
    aliases = ("ap-plus-tree",)
    paper = "AP+-Tree of Wang et al. 2017"
    summary = "the adaptive tree with the living messages in its nodes"
    parameters_class = MovingAdaptiveTreeParameters
    searches_any_box = True
    parameters: MovingAdaptiveTreeParameters

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        own = self.parameters
        self._tree: ListedTree | SeparatedTree
        if own.message_lists == "tree":
            self._tree = ListedTree(own)
        else:
            self._tree = SeparatedTree(own, is_space_first=own.message_lists == "space_grid")

    def build(self, clauses: ClauseStore, messages: LiveMessages) -> None:
        self._tree.build(clauses)
        self._tree.restore_messages(messages)

    def insert(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        self._tree.insert_beside(clauses, messages, slots)

    def delete(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        self._tree.delete_beside(clauses, messages, slots)

    def match(self, clauses: ClauseStore, batch: MessageBatch) -> tuple[Groups, Work]:
        return self._tree.match(clauses, batch)

    def store(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        self._tree.store(messages, slots)

    def find_messages(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], excluded: Boxes
    ) -> tuple[Groups, Work]:
        return self._tree.find_messages(clauses, messages, slots, excluded)

    def move(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], to: Boxes
    ) -> tuple[Groups, Groups, Work]:
        if isinstance(self._tree, SeparatedTree):
            return super().move(clauses, messages, slots, to)
        return self._tree.move_beside(clauses, messages, slots, to)

    def refile(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], to: Boxes) -> None:
        if isinstance(self._tree, SeparatedTree):
            self._tree.refile_beside(clauses, messages, slots, to)
        else:
            self._tree.move_beside(clauses, messages, slots, to)

    def purge(self, clauses: ClauseStore, messages: LiveMessages) -> None:
        self._tree.drop_dead(messages)

    def explain(self, clauses: ClauseStore, batch: MessageBatch, slot: int) -> list[str]:
        return self._tree.explain(clauses, batch, slot)

    def stats(self) -> dict[str, int | float]:
        return self._tree.stats()

    def arrays(self) -> dict[str, NDArray[Any]]:
        return self._tree.arrays()

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._tree.restore(arrays)
