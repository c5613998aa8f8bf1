"""`moving_adaptive_tree`: clauses and live messages in one adaptive tree."""

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
from nearcast.papers.boolean.adaptive_tree.index import AdaptiveTree, AdaptiveTreeParameters
from nearcast.papers.moving.grid_lists.index import GridKeywordFirst, GridParameters, GridSpaceFirst
from nearcast.papers.moving.grid_lists.keyword_grid import GridShape, MessageGrid
from nearcast.papers.moving.moving_adaptive_tree.parameters import MovingAdaptiveTreeParameters
from nearcast.papers.moving.moving_adaptive_tree.tree_with_messages import TreeWithMessages

_GRID = "grid_"
# Clauses are refiled in small groups: nodes should not be rebuilt because they are empty for a moment.
_GROUP = 64


class TreeAndGrid(AdaptiveTree):
    """The tree for clauses, a grid for messages. Paper: AP+s if `is_space_first`, else AP+k; grids as in SS-Index and KK-
    Index."""

    def __init__(self, parameters: AdaptiveTreeParameters, is_space_first: bool) -> None:
        super().__init__(parameters)
        grid = GridParameters()
        smallest = GridSpaceFirst.smallest_grid if is_space_first else GridKeywordFirst.smallest_grid
        self._grid = MessageGrid(GridShape(grid.side, grid.most_cells, is_space_first, smallest))

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

    def insert_clauses(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        self.insert(clauses, slots)

    def delete_clauses(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        self.delete(clauses, slots)

    def refile_clauses(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], to: Boxes) -> None:
        for first in range(0, len(slots), _GROUP):
            some = slots[first : first + _GROUP]
            self.delete(clauses, some)
            write_boxes(clauses, some, Boxes(*(bound[first : first + _GROUP] for bound in to)))
            self.insert(clauses, some)

    def stats(self) -> dict[str, int | float]:
        stats = super().stats()
        return {**stats, **self._grid.stats(), "bytes": stats["bytes"] + self._grid.n_bytes}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**super().arrays(), **{f"{_GRID}{name}": array for name, array in self._grid.arrays().items()}}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super().restore(arrays)
        self._grid.restore({name[len(_GRID) :]: array for name, array in arrays.items() if name.startswith(_GRID)})


class MovingAdaptiveTree(MovingIndex):
    """Messages are stored at the leaves they reach, or above; a clause searches its leaves and the nodes above."""

    name = "moving_adaptive_tree"
    aliases = ("ap-plus-tree",)
    paper = "AP+-Tree of Wang et al. 2017"
    summary = "the adaptive tree with the live messages in its nodes"
    parameters_class = MovingAdaptiveTreeParameters
    searches_any_box = True
    parameters: MovingAdaptiveTreeParameters

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        options = self.parameters
        self._tree: TreeWithMessages | TreeAndGrid
        if options.message_lists == "tree":
            self._tree = TreeWithMessages(options)
        else:
            self._tree = TreeAndGrid(options, is_space_first=options.message_lists == "space_grid")

    def build(self, clauses: ClauseStore, messages: LiveMessages) -> None:
        self._tree.build(clauses)
        self._tree.restore_messages(messages)

    def insert(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        self._tree.insert_clauses(clauses, messages, slots)

    def delete(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        self._tree.delete_clauses(clauses, messages, slots)

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
        if isinstance(self._tree, TreeAndGrid):
            return super().move(clauses, messages, slots, to)
        return self._tree.move_clauses_to(clauses, messages, slots, to)

    def refile(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], to: Boxes) -> None:
        if isinstance(self._tree, TreeAndGrid):
            self._tree.refile_clauses(clauses, messages, slots, to)
        else:
            self._tree.move_clauses_to(clauses, messages, slots, to)

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
