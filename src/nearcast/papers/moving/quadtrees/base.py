"""A moving index of a quadtree of clauses and lists of messages by its cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work
from nearcast.engine.kernel_calls import run_until_it_fits
from nearcast.moving.index import Boxes, MovingIndex
from nearcast.moving.live_messages import LiveMessages
from nearcast.papers.boolean.quadtrees.index import CellIndex, CellParameters
from nearcast.papers.boolean.quadtrees.layout import DEPTHS, N_BOUND, N_FILED, N_LISTS, OWNER_SHIFT
from nearcast.papers.moving.quadtrees.kernels.match import look_around_in_cells, look_in_cells
from nearcast.papers.moving.quadtrees.messages import MessageCells

_MESSAGE = "message_"
# Lists, and places in them, that no clause uses any more are cleared away when they are so many times more than those used.
_SLACK = 4
_LEAST = 1024


class MovingCells(MovingIndex):
    """Clauses in the cells that are cheapest for them where they are; messages in the same cells, under all their keywords."""

    cells_class: ClassVar[type[CellIndex]]

    parameters: CellParameters

    def __init__(self, parameters: CellParameters) -> None:
        super().__init__(parameters)
        self._cells = self.cells_class(parameters)
        self._messages = MessageCells(parameters.max_depth)

    def build(self, clauses: ClauseStore, messages: LiveMessages) -> None:
        self._cells.build(clauses)
        self._build_messages(messages)

    def _build_messages(self, messages: LiveMessages) -> None:
        self._messages.build(messages, self._cells._places.frame, self._cells._lists.door[DEPTHS::2])

    def insert(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        frame = self._cells._places.frame
        self._cells.insert(clauses, slots)
        head = self._cells._lists.head
        if int(head[N_LISTS]) > _SLACK * max(_LEAST, int(head[N_FILED])):
            self._cells.build(clauses)
        if self._cells._places.frame is not frame:
            self._build_messages(messages)
            return
        self._forget_bonds()
        lists = self._cells._lists
        owners = np.unique(lists.list_key[lists.bound[lists.bound_start[slots]]] >> OWNER_SHIFT)
        self._messages.deepen(messages, owners, lists.door[2 * owners + DEPTHS])

    def _forget_bonds(self) -> None:
        """Clear away the places that clauses were bound to before they moved."""
        lists = self._cells._lists
        n_used = int(lists.n_bound.sum())
        if int(lists.head[N_BOUND]) <= _SLACK * max(_LEAST, n_used):
            return
        start = np.concatenate([[0], np.cumsum(lists.n_bound)]).astype(np.int64)
        positions = np.repeat(lists.bound_start - start[:-1], lists.n_bound) + np.arange(n_used)
        self._cells._lists = lists._replace(bound=lists.bound[positions], bound_start=start[:-1].copy())
        lists.head[N_BOUND] = n_used

    def delete(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        self._cells.delete(clauses, slots)

    def match(self, clauses: ClauseStore, batch: MessageBatch) -> tuple[Groups, Work]:
        return self._cells.match(clauses, batch)

    def store(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        self._messages.store(messages, slots)

    def find_messages(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], excluded: Boxes
    ) -> tuple[Groups, Work]:
        layout, live, cells, lists = clauses.layout(), messages.layout(), self._cells._lists, self._messages.lists
        grid = (self._cells._places.frame, self.parameters.max_depth)
        return run_until_it_fits(
            len(slots),
            lambda first, n_out, output: look_in_cells(
                cells, lists, grid, layout, live, slots, tuple(excluded), first, n_out, output
            ),
            is_by_clause=True,
        )

    def find_messages_in(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], boxes: Boxes
    ) -> tuple[Groups, Work]:
        layout, live, cells, lists = clauses.layout(), messages.layout(), self._cells._lists, self._messages.lists
        grid, depths = (self._cells._places.frame, self.parameters.max_depth), self._messages.depths
        return run_until_it_fits(
            len(slots),
            lambda first, n_out, output: look_around_in_cells(
                cells, lists, depths, grid, layout, live, slots, tuple(boxes), first, n_out, output
            ),
            is_by_clause=True,
        )

    def purge(self, clauses: ClauseStore, messages: LiveMessages) -> None:
        self._build_messages(messages)

    def explain(self, clauses: ClauseStore, batch: MessageBatch, slot: int) -> list[str]:
        return self._cells.explain(clauses, batch, slot)

    def stats(self) -> dict[str, int | float]:
        own = self._cells.stats()
        return {**own, **self._messages.stats(), "bytes": own["bytes"] + self._messages.n_bytes}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**self._cells.arrays(), **{f"{_MESSAGE}{name}": a for name, a in self._messages.arrays().items()}}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._cells.restore(arrays)
        self._messages.restore({name[len(_MESSAGE) :]: a for name, a in arrays.items() if name.startswith(_MESSAGE)})
