"""What every moving index is: it files clauses and living messages, and finds one by the other.

Clauses move; messages come and die. An index answers exactly, as a boolean one does: each pair of a clause and a living message
whose boxes meet and where the message has the clause's keywords, once.
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
from nearcast.engine.groups import Differences, Found, Groups, Matches, MessageGroups, MoveGroups
from nearcast.engine.registry import Parameters
from nearcast.errors import IndexParameterError
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.moving.kernels.live_messages import PairOutput
from nearcast.moving.live_messages import LiveMessages

_FIRST_ROOM = 4096


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
    """Whether `look` needs no more of a clause than its keywords and its box in the store: it may be filed elsewhere."""
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
    def match(self, clauses: ClauseStore, batch: MessageBatch) -> Matches:
        """Every pair of a message of the batch and a filed clause, each once, grouped by message."""

    @abstractmethod
    def store(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        """File the messages at these slots."""

    def arrive(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], batch: MessageBatch) -> Matches:
        """File messages and match them; message m of the batch is at `slots[m]`."""
        self.store(clauses, messages, slots)
        return self.match(clauses, batch)

    def match_groups(self, clauses: ClauseStore, batch: MessageBatch, slots: NDArray[np.int32]) -> MessageGroups:
        """As `match`, message by message; message m of the batch is at `slots[m]`."""
        return _by_message(self.match(clauses, batch), slots)

    def arrive_groups(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], batch: MessageBatch
    ) -> MessageGroups:
        """As `arrive`, message by message."""
        return _by_message(self.arrive(clauses, messages, slots, batch), slots)

    @abstractmethod
    def look(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], besides: Boxes) -> Found:
        """The living messages that match each of these filed clauses and do not meet the box of the same place in `besides`."""

    def move(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], to: Boxes) -> Differences:
        """Give (distinct) clauses new boxes, in the store too; returns what that changes.

        Two looks rather than one: a message may stand in different places of the structure before and after.
        """
        layout = clauses.layout()
        before = Boxes(*(side[slots] for side in (layout.x0, layout.y0, layout.x1, layout.y1)))
        left = self.look(clauses, messages, slots, to)
        self.refile(clauses, messages, slots, to)
        return Differences(left, self.look(clauses, messages, slots, before))

    def move_groups(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], to: Boxes) -> MoveGroups:
        """As `move`, in groups."""
        left, entered = self.move(clauses, messages, slots, to)
        nodes, candidates = left.nodes_visited + entered.nodes_visited, left.candidates + entered.candidates
        return MoveGroups(_each_alone(left), _each_alone(entered), nodes, candidates)

    def look_around(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], boxes: Boxes) -> Found:
        """The living messages with the keywords of each of these (distinct, filed) clauses that meet the box given for it."""
        if not self.finds_anywhere:
            raise IndexParameterError(f"index {self.name!r} gives no safe regions; use 'moving_adaptive_tree'")
        layout = clauses.layout()
        own = Boxes(*(side[slots] for side in (layout.x0, layout.y0, layout.x1, layout.y1)))
        write_boxes(clauses, slots, boxes)
        found = self.look(clauses, messages, slots, nowhere(len(slots)))
        write_boxes(clauses, slots, own)
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


def _by_message(matches: Matches, slots: NDArray[np.int32]) -> MessageGroups:
    end = np.cumsum(np.bincount(matches.message, minlength=len(slots)))
    begin = np.concatenate([[0], end[:-1]])
    return MessageGroups(Groups(slots, matches.clause, begin, end), matches.nodes_visited, matches.candidates)


def _each_alone(found: Found) -> Groups:
    places = np.arange(len(found.clause) + 1)
    return Groups(found.clause, found.message, places[:-1], places[1:])


def write_boxes(clauses: ClauseStore, slots: NDArray[np.int32], to: Boxes) -> None:
    """Give clauses new boxes in their store."""
    layout = clauses.layout()
    for side, value in zip((layout.x0, layout.y0, layout.x1, layout.y1), to, strict=True):
        side[slots] = value


def nowhere(n: int) -> Boxes:
    """Boxes that meet nothing."""
    high, low = np.full(n, np.inf), np.full(n, -np.inf)
    return Boxes(high, high, low, low)


def collect_pairs(n_clauses: int, look_from: Callable[[int, int, PairOutput], tuple[int, int]]) -> Found:
    """Run a kernel over clauses, giving it more room whenever it stops for lack of it.

    `look_from(first, n_out, output)` goes on from position `first`, writes pairs from `n_out` on, and returns the position it
    stopped before and the number of pairs then; it stops early only where the pairs of a clause did not fit.
    """
    output = PairOutput(np.empty(_FIRST_ROOM, np.int32), np.empty(_FIRST_ROOM, np.int32), np.zeros(2, np.int64))
    first, n_out = 0, 0
    while True:
        first, n_out = look_from(first, n_out, output)
        if first >= n_clauses:
            break
        clause, message = np.empty(2 * len(output.clause), np.int32), np.empty(2 * len(output.clause), np.int32)
        clause[:n_out], message[:n_out] = output.clause[:n_out], output.message[:n_out]
        output = PairOutput(clause, message, output.counters)
    counters = output.counters
    return Found(output.clause[:n_out], output.message[:n_out], int(counters[NODES]), int(counters[CANDIDATES]))
