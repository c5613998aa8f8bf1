"""`BooleanIndex`: what every boolean index does.

It files clauses and finds those that match a message: exactly the clauses whose box meets the message and whose keywords the
message has, each once per message.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work
from nearcast.engine.registry import Parameters
from nearcast.model.regions import Box


class IndexCells(NamedTuple):
    """Cells of an index: their bounds, how often the plane was halved (`level`), and the clauses in each (`load`)."""

    x0: NDArray[np.float64]
    y0: NDArray[np.float64]
    x1: NDArray[np.float64]
    y1: NDArray[np.float64]
    level: NDArray[np.int64]
    load: NDArray[np.int64]


class BooleanIndex(ABC):
    """Files clauses, removes them, matches a batch of messages.

    Clauses are in the `ClauseStore` of the engine; an index keeps slots of it. Removed clauses are marked dead in the store
    before `delete` is called, so an index may leave them filed and skip them when it verifies.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    paper: ClassVar[str]
    summary: ClassVar[str]
    parameters_class: ClassVar[type[Parameters]] = Parameters

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    @abstractmethod
    def build(self, clauses: ClauseStore, history: MessageBatch | None = None) -> None:
        """File every living clause; what was filed before is dropped.

        `history` is a sample of past messages for indexes with a cost model; without one they estimate.
        """

    @abstractmethod
    def insert(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        """File the new clauses at these slots."""

    @abstractmethod
    def delete(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        """Remove the clauses at these slots."""

    @abstractmethod
    def match(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]:
        """Every matching pair, each once: the clauses of each message of the batch."""

    @property
    def wants_merge(self) -> bool:
        """Whether `begin_merge` would make matching faster."""
        return False

    def begin_merge(self, clauses: ClauseStore) -> Callable[[], Any]:
        """A function that merges changes in a background thread; `finish_merge` takes its result.

        The writer makes both calls, while nobody reads. Between them the index is read and changed as usual.
        """
        raise NotImplementedError(f"{self.name} has nothing to merge")

    def finish_merge(self, clauses: ClauseStore, merged: Any) -> None:
        """Replace the index by the merged one, together with the changes since the merge began."""
        raise NotImplementedError(f"{self.name} has nothing to merge")

    @abstractmethod
    def explain(self, clauses: ClauseStore, messages: MessageBatch, slot: int) -> list[str]:
        """The path of the first message through the structure to one clause, in words."""

    def cells(self, box: Box, most: int) -> IndexCells | None:
        """At most `most` of the fullest cells that meet a box; None if the index has no cells."""
        return None

    def stats(self) -> dict[str, int | float]:
        """Sizes of the structure: bytes, and others that are useful in a plot."""
        return {"bytes": sum(array.nbytes for array in self.arrays().values())}

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that must be saved to open the index again."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Use arrays that `arrays` returned, possibly memory-mapped."""

    def facts(self) -> dict[str, Any]:
        """Name and parameters, as saved with the arrays."""
        return {"name": self.name, "parameters": asdict(self.parameters)}
