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
from nearcast.moving.index import Boxes, MovingIndex
from nearcast.moving.live_messages import LiveMessages
from nearcast.papers.moving.moving_adaptive_tree.parameters import MovingAdaptiveTreeParameters
from nearcast.papers.moving.moving_adaptive_tree.tree_beside_grid import SeparatedTree
from nearcast.papers.moving.moving_adaptive_tree.tree_with_messages import ListedTree


class MovingAdaptiveTree(MovingIndex):
    """Messages stand at the leaves that they reach, or above; a clause looks at its leaves and above."""

    name = "moving_adaptive_tree"
    aliases = ("ap-plus-tree",)
    paper = "AP+-Tree of Wang et al. 2017"
    summary = "the adaptive tree with the living messages in its nodes"
    parameters_class = MovingAdaptiveTreeParameters
    finds_anywhere = True
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
