"""What every boolean index is: it files clauses and finds those a message matches.

An index answers exactly: each clause whose box meets the message and whose keywords the message has, once per message.
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
    """Parts of the plane that an index keeps clauses by: their sides, how often the plane was halved, clauses in them."""

    x0: NDArray[np.float64]
    y0: NDArray[np.float64]
    x1: NDArray[np.float64]
    y1: NDArray[np.float64]
    level: NDArray[np.int64]
    load: NDArray[np.int64]


class BooleanIndex(ABC):
    """File clauses, unfile them, match a batch of messages.

    The clauses live in a `ClauseStore` owned by the engine; an index holds slots of it. Removed clauses are marked dead in
    the store before `delete` is called, so an index may leave them filed and skip them when it verifies.
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
        """File every living clause, forgetting what was filed before.

        `history` is a sample of past messages for indexes that weigh their choices by it; without one they estimate.
        """

    @abstractmethod
    def insert(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        """File the new clauses at these slots."""

    @abstractmethod
    def delete(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        """Unfile the clauses at these slots."""

    @abstractmethod
    def match(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]:
        """Every matching pair, each once: the clauses of each message of the batch."""

    @property
    def wants_merge(self) -> bool:
        """Whether `begin_merge` would make matching faster."""
        return False

    def begin_merge(self, clauses: ClauseStore) -> Callable[[], Any]:
        """What a thread beside may do to bring the index into shape; `finish_merge` takes its result.

        Both calls are made by the writer, when nobody reads; between them the index goes on being read and changed.
        """
        raise NotImplementedError(f"{self.name} is always in shape")

    def finish_merge(self, clauses: ClauseStore, merged: Any) -> None:
        """Take over what a merge made, with what changed since it began."""
        raise NotImplementedError(f"{self.name} is always in shape")

    @abstractmethod
    def explain(self, clauses: ClauseStore, messages: MessageBatch, slot: int) -> list[str]:
        """The way of the first message through the structure towards one clause, in words."""

    def cells(self, box: Box, most: int) -> IndexCells | None:
        """The fullest cells that meet a box, at most so many; None if it has none to show."""
        return None

    def stats(self) -> dict[str, int | float]:
        """Sizes of the structure: bytes, and what else is worth plotting."""
        return {"bytes": sum(array.nbytes for array in self.arrays().values())}

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that must be saved to open the index again."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over arrays that `arrays` gave, possibly memory-mapped."""

    def facts(self) -> dict[str, Any]:
        """Name and parameters, as saved beside the arrays."""
        return {"name": self.name, "parameters": asdict(self.parameters)}
