"""The interface of a moving index: it files clauses and live messages, and finds each by the other.

Clauses move; messages arrive and expire. Like a boolean index it answers exactly: each pair of a clause and a live message
whose boxes meet, and where the message has the clause's keywords, once.
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
    """A box for each clause of a list, as four columns."""

    x0: NDArray[np.float64]
    y0: NDArray[np.float64]
    x1: NDArray[np.float64]
    y1: NDArray[np.float64]


class MovingIndex(ABC):
    """Files clauses and messages, moves clauses, finds messages.

    The engine owns the clauses (`ClauseStore`) and the messages (`LiveMessages`); an index holds slots of both. The stores mark
    removed clauses and dead messages. Dead messages may stay filed until `purge`.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    paper: ClassVar[str]
    summary: ClassVar[str]
    parameters_class: ClassVar[type[Parameters]] = Parameters
    searches_any_box: ClassVar[bool] = False
    """Whether `find_messages` needs only the box and keywords in the store: a clause can be searched with another box."""
    collects_dead: ClassVar[bool] = False
    """Whether the index drops dead messages in small steps, by `collect_dead`, instead of all at once by `purge`."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    @abstractmethod
    def build(self, clauses: ClauseStore, messages: LiveMessages) -> None:
        """Drop everything, then file all live clauses and messages."""

    @abstractmethod
    def insert(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        """File the clauses at these slots."""

    @abstractmethod
    def delete(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        """Remove the clauses at these slots. Their boxes in the store are still those they were filed with."""

    @abstractmethod
    def match(self, clauses: ClauseStore, batch: MessageBatch) -> tuple[Groups, Work]:
        """The filed clauses that each message of the batch matches, each pair once."""

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
        """Give (distinct) clauses new boxes, also in the store; returns the messages that leave and enter each clause.

        It takes two searches: the box before and the box after may lead to different lists.
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
        """For each of these (distinct, filed) clauses, the live messages with its keywords that meet `boxes[i]`."""
        if not self.searches_any_box:
            raise IndexParameterError(f"index {self.name!r} gives no safe regions; use 'moving_adaptive_tree'")
        layout = clauses.layout()
        before = Boxes(*(bound[slots] for bound in (layout.x0, layout.y0, layout.x1, layout.y1)))
        write_boxes(clauses, slots, boxes)
        groups_and_work = self.find_messages(clauses, messages, slots, empty_boxes(len(slots)))
        write_boxes(clauses, slots, before)
        return groups_and_work

    def refile(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], to: Boxes) -> None:
        """As `move`, without searching for what changes."""
        self.delete(clauses, messages, slots)
        write_boxes(clauses, slots, to)
        self.insert(clauses, messages, slots)

    @abstractmethod
    def purge(self, clauses: ClauseStore, messages: LiveMessages) -> None:
        """Drop all dead messages: afterwards the index refers to no slot of a dead message."""

    def collect_dead(self, messages: LiveMessages, n_expired: int) -> bool:
        """Do a part of `purge`, in proportion to the `n_expired` messages that died just now.

        True when a round ends: every message that was dead when the round began is dropped then. The next round begins at
        once. Called only if `collects_dead`.
        """
        return False

    @abstractmethod
    def explain(self, clauses: ClauseStore, batch: MessageBatch, slot: int) -> list[str]:
        """The path of the first message through the structure towards one clause, in words."""

    def stats(self) -> dict[str, int | float]:
        """Sizes of the structure: bytes, and whatever else is worth plotting."""
        return {"bytes": sum(array.nbytes for array in self.arrays().values())}

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that `restore` needs to open the index again."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Use arrays that `arrays` returned, possibly memory-mapped."""

    def facts(self) -> dict[str, Any]:
        """Name and parameters, saved together with the arrays."""
        return {"name": self.name, "parameters": asdict(self.parameters)}


def write_boxes(clauses: ClauseStore, slots: NDArray[np.int32], to: Boxes) -> None:
    """Give clauses new boxes in their store."""
    layout = clauses.layout()
    for bound, value in zip((layout.x0, layout.y0, layout.x1, layout.y1), to, strict=True):
        bound[slots] = value


def empty_boxes(n: int) -> Boxes:
    """`n` boxes that meet nothing."""
    high, low = np.full(n, np.inf), np.full(n, -np.inf)
    return Boxes(high, high, low, low)
