"""What every moving index is: it files clauses and living messages, and finds one by the other.

Clauses move; messages come and die. An index answers exactly, as a boolean one does: each pair of a clause and a living message
whose boxes meet and where the message has the clause's keywords, once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work, total
from nearcast.engine.registry import Parameters
from nearcast.errors import IndexParameterError
from nearcast.moving.live_messages import LiveMessages


class Boxes(NamedTuple):
    """A box for each of some clauses."""

    x0: NDArray[np.float64]
    y0: NDArray[np.float64]
    x1: NDArray[np.float64]
    y1: NDArray[np.float64]


class MovingIndex(ABC):
    """File clauses and messages, move clauses, look for messages.

    Clauses live in a `ClauseStore`, messages in `LiveMessages`, both owned by the engine; an index holds slots of both. Removed
    clauses and dead messages are marked so in their stores; dead messages may stay filed until `purge`.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    paper: ClassVar[str]
    summary: ClassVar[str]
    parameters_class: ClassVar[type[Parameters]] = Parameters
    finds_anywhere: ClassVar[bool] = False
    """Whether `find_messages` reads only the keywords and the box of a clause in the store, so it may be filed elsewhere."""
    is_sweeping: ClassVar[bool] = False
    """Whether dead messages are forgotten bit by bit, by `sweep`, rather than all at once."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    @abstractmethod
    def build(self, clauses: ClauseStore, messages: LiveMessages) -> None:
        """File every living clause and message, forgetting what was filed before."""

    @abstractmethod
    def insert(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        """File the clauses at these slots."""

    @abstractmethod
    def delete(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        """Unfile the clauses at these slots; their boxes are still those they were filed with."""

    @abstractmethod
    def match(self, clauses: ClauseStore, batch: MessageBatch) -> tuple[Groups, Work]:
        """Every matching pair, each once: the filed clauses of each message of the batch."""

    @abstractmethod
    def store(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        """File the messages at these slots."""

    def arrive(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], batch: MessageBatch
    ) -> tuple[Groups, Work]:
        """File messages and match them; message m of the batch is at `slots[m]`."""
        self.store(clauses, messages, slots)
        return self.match(clauses, batch)

    @abstractmethod
    def find_messages(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], excluded: Boxes
    ) -> tuple[Groups, Work]:
        """For each of these filed clauses, the live messages that match it and lie outside `excluded[i]`.

        A move calls this twice: for what leaves and for what enters.
        """

    def move(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], to: Boxes
    ) -> tuple[Groups, Groups, Work]:
        """Give (distinct) clauses new boxes, in the store too; the messages that leave and that enter each of them.

        Two searches rather than one: a message may stand in different places of the structure before and after.
        """
        layout = clauses.layout()
        before = Boxes(*(bound[slots] for bound in (layout.x0, layout.y0, layout.x1, layout.y1)))
        left, work = self.find_messages(clauses, messages, slots, to)
        self.refile(clauses, messages, slots, to)
        entered, more_work = self.find_messages(clauses, messages, slots, before)
        return left, entered, total([work, more_work])

    def find_messages_in(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], boxes: Boxes
    ) -> tuple[Groups, Work]:
        """The live messages with the keywords of each of these (distinct, filed) clauses that meet the box given for it."""
        if not self.finds_anywhere:
            raise IndexParameterError(f"index {self.name!r} gives no safe regions; use 'moving_adaptive_tree'")
        layout = clauses.layout()
        before = Boxes(*(bound[slots] for bound in (layout.x0, layout.y0, layout.x1, layout.y1)))
        write_boxes(clauses, slots, boxes)
        found = self.find_messages(clauses, messages, slots, nowhere(len(slots)))
        write_boxes(clauses, slots, before)
        return found

    def refile(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], to: Boxes) -> None:
        """As `move`, without telling what changes."""
        self.delete(clauses, messages, slots)
        write_boxes(clauses, slots, to)
        self.insert(clauses, messages, slots)

    @abstractmethod
    def purge(self, clauses: ClauseStore, messages: LiveMessages) -> None:
        """Forget dead messages: afterwards no slot of a dead message is named any more."""

    def sweep(self, messages: LiveMessages, n_gone: int) -> bool:
        """A part of `purge`, in proportion to `n_gone` messages that died just now.

        True when a round has ended: whatever was dead when it began, at the end of the round before, is forgotten. Never of an
        index that forgets all at once.
        """
        return False

    @abstractmethod
    def explain(self, clauses: ClauseStore, batch: MessageBatch, slot: int) -> list[str]:
        """The way of the first message through the structure towards one clause, in words."""

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


def write_boxes(clauses: ClauseStore, slots: NDArray[np.int32], to: Boxes) -> None:
    """Give clauses new boxes in their store."""
    layout = clauses.layout()
    for side, value in zip((layout.x0, layout.y0, layout.x1, layout.y1), to, strict=True):
        side[slots] = value


def nowhere(n: int) -> Boxes:
    """Boxes that meet nothing."""
    high, low = np.full(n, np.inf), np.full(n, -np.inf)
    return Boxes(high, high, low, low)
