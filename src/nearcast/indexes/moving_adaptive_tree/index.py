"""`moving_adaptive_tree`: clauses and living messages in one adaptive tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.live_messages import LiveMessages
from nearcast.columns.messages import MessageBatch
from nearcast.errors import IndexParameterError
from nearcast.indexes.adaptive_tree.parameters import AdaptiveTreeParameters
from nearcast.indexes.base import Matches, Parameters
from nearcast.indexes.moving_adaptive_tree.listed_tree import ListedTree
from nearcast.indexes.moving_adaptive_tree.separated_tree import SeparatedTree
from nearcast.indexes.moving_base import Boxes, Found, MovingIndex

_PLACES = ("tree", "keyword_grid", "space_grid")
_MOST_COPIES = 4096


@dataclass(frozen=True, slots=True)
class MovingAdaptiveTreeParameters(AdaptiveTreeParameters):
    """Those of `adaptive_tree`, and where the messages are.

    `message_lists`: in the "tree" itself, or in a "keyword_grid" or "space_grid" beside it. `max_message_copies`: at how many
    nodes of the tree a message may stand. Fewer copies of clauses than where they stay: each must be moved.
    """

    max_copies: float = 1.5
    message_lists: str = "tree"
    max_message_copies: int = 32

    def __post_init__(self) -> None:
        AdaptiveTreeParameters.__post_init__(self)
        if self.message_lists not in _PLACES:
            given = f"message_lists={self.message_lists!r}"
            raise IndexParameterError(f"{given} is not known; expected {' or '.join(_PLACES)}")
        if not 1 <= self.max_message_copies <= _MOST_COPIES:
            given = f"max_message_copies={self.max_message_copies!r}"
            raise IndexParameterError(f"{given} is not possible; expected 1 to {_MOST_COPIES}")


class MovingAdaptiveTree(MovingIndex):
    """Messages stand at the leaves that they reach, or above; a clause looks at its leaves and above."""

    name = "moving_adaptive_tree"
    aliases = ("ap-plus-tree",)
    paper = "AP+-Tree of Wang et al. 2017"
    summary = "the adaptive tree with the living messages in its nodes"
    parameters_class = MovingAdaptiveTreeParameters
    parameters: MovingAdaptiveTreeParameters

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        own = self.parameters
        self._tree: ListedTree | SeparatedTree
        if own.message_lists == "tree":
            self._tree = ListedTree(own, own.max_message_copies)
        else:
            self._tree = SeparatedTree(own, is_space_first=own.message_lists == "space_grid")

    def build(self, clauses: ClauseStore, messages: LiveMessages) -> None:
        self._tree.build(clauses)
        self._tree.restore_messages(messages)

    def insert(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        self._tree.insert_beside(clauses, messages, slots)

    def delete(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        self._tree.delete_beside(clauses, messages, slots)

    def match(self, clauses: ClauseStore, batch: MessageBatch) -> Matches:
        return self._tree.match(clauses, batch)

    def store(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        self._tree.store(messages, slots)

    def look(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], besides: Boxes) -> Found:
        return self._tree.look(clauses, messages, slots, besides)

    def refile(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], to: Boxes) -> None:
        self._tree.refile_beside(clauses, messages, slots, to)

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
