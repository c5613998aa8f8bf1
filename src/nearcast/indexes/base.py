"""What every boolean index is: it files clauses and finds those a message matches.

An index answers exactly: each clause whose box meets the message and whose keywords the message has, once per message.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.kernels.layouts import CANDIDATES, NODES, Output
from nearcast.model.regions import Box

_FIRST_ROOM = 4096


@dataclass(frozen=True, slots=True)
class Parameters:
    """The options of an index: frozen dataclass fields with defaults. Base of each index's own."""


class Matches(NamedTuple):
    """Matching (message, clause) pairs grouped by message in order, and the work it took."""

    message: NDArray[np.int32]
    clause: NDArray[np.int32]
    nodes_visited: int
    candidates: int


class Runs(NamedTuple):
    """The same, kept message by message: the clauses of message m are `clause[begin[m]:end[m]]`.

    `clause` may be memory that the next match in the same thread writes to again.
    """

    clause: NDArray[np.int32]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    nodes_visited: int
    candidates: int


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
    def match(self, clauses: ClauseStore, messages: MessageBatch) -> Matches:
        """Every matching pair, each once."""

    def match_runs(self, clauses: ClauseStore, messages: MessageBatch) -> Runs:
        """As `match`, without naming the message of each pair."""
        matches = self.match(clauses, messages)
        place = np.searchsorted(matches.message, np.arange(len(messages) + 1, dtype=np.int32))
        return Runs(matches.clause, place[:-1], place[1:], matches.nodes_visited, matches.candidates)

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


class Stamps(threading.local):
    """Scratch of one thread: `stamp[keyword] == mark` tells that the current message has the keyword."""

    def __init__(self) -> None:
        self._stamp: NDArray[np.int32] = np.zeros(0, np.int32)
        self._last_mark = 0

    def take(self, n_keywords: int, n_messages: int) -> tuple[NDArray[np.int32], int]:
        """A stamp array, and the mark before the first message's (message `m` uses mark + 1 + m)."""
        if len(self._stamp) < n_keywords or self._last_mark + n_messages >= np.iinfo(np.int32).max:
            self._stamp = np.zeros(max(n_keywords, 2 * len(self._stamp)), np.int32)
            self._last_mark = 0
        mark = self._last_mark
        self._last_mark += n_messages
        return self._stamp, mark


def collect(n_messages: int, match_from: Callable[[int, int, Output], tuple[int, int]]) -> Matches:
    """Run a match kernel over a batch, giving it more room whenever it stops for lack of it.

    `match_from(first, n_out, output)` matches messages from `first` on, writes pairs from `n_out` on, and returns the
    message it stopped before and the number of pairs then; it stops early only where a message's pairs did not fit.
    """
    output = Output(np.empty(_FIRST_ROOM, np.int32), np.empty(_FIRST_ROOM, np.int32), np.zeros(2, np.int64))
    first, n_out = 0, 0
    while True:
        first, n_out = match_from(first, n_out, output)
        if first >= n_messages:
            break
        output = Output(_doubled(output.message, n_out), _doubled(output.clause, n_out), output.counters)
    counters = output.counters
    return Matches(output.message[:n_out], output.clause[:n_out], int(counters[NODES]), int(counters[CANDIDATES]))


def _doubled(array: NDArray[np.int32], n_used: int) -> NDArray[np.int32]:
    larger = np.empty(2 * len(array), np.int32)
    larger[:n_used] = array[:n_used]
    return larger
