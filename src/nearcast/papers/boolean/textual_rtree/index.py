"""`textual_rtree`: the R-tree with keywords, in the form that its options ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.boolean.index import BooleanIndex
from nearcast.columns.clauses import ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work
from nearcast.engine.registry import Parameters
from nearcast.papers.boolean.textual_rtree.count_tree import CountTree
from nearcast.papers.boolean.textual_rtree.layout import TextualRTreeParameters
from nearcast.papers.boolean.textual_rtree.set_tree import SetTree


class TextualRTree(BooleanIndex):
    """Hands everything to a `SetTree` (representatives "all" and "one") or a `CountTree` ("many")."""

    name = "textual_rtree"
    aliases = ("rt-tree",)
    paper = "Li, Wang, Wang & Feng 2013 (R^t-tree, R^t+-tree, R^t++-tree)"
    summary = "R-tree whose nodes know keywords of the clauses below: all, one representative, or one more on each level"
    parameters_class = TextualRTreeParameters
    parameters: TextualRTreeParameters

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        form = CountTree if self.parameters.representatives == "many" else SetTree
        self._form: BooleanIndex = form(parameters)

    def build(self, clauses: ClauseStore, history: MessageBatch | None = None) -> None:
        self._form.build(clauses, history)

    def insert(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        self._form.insert(clauses, slots)

    def delete(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        self._form.delete(clauses, slots)

    def match(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]:
        return self._form.match(clauses, messages)

    def explain(self, clauses: ClauseStore, messages: MessageBatch, slot: int) -> list[str]:
        return self._form.explain(clauses, messages, slot)

    def stats(self) -> dict[str, int | float]:
        return self._form.stats()

    def arrays(self) -> dict[str, NDArray[Any]]:
        return self._form.arrays()

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._form.restore(arrays)
