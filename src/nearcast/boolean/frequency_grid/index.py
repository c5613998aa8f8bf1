"""`frequency_grid`: owns the grid and the late clauses, builds, updates, merges and matches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.boolean.frequency_grid.assemble import (
    CopyBudget,
    assemble,
    frequency_of,
    living,
    no_grid,
    no_late,
    widened_late,
    with_more_room,
)
from nearcast.boolean.frequency_grid.cost_inputs import expect_clauses, expect_history, widened
from nearcast.boolean.frequency_grid.explain import cells_under, explain_path
from nearcast.boolean.frequency_grid.kernels import delta
from nearcast.boolean.frequency_grid.kernels.match import match_messages
from nearcast.boolean.frequency_grid.kernels.remove import withdraw_clauses
from nearcast.boolean.frequency_grid.layout import (
    LEAST_LEVEL,
    LEVEL_BITS,
    LEVEL_MASK,
    MOST_LEVELS,
    N_BUILT,
    N_CLAUSES,
    N_ENTRIES,
    N_LATE,
    N_LISTS,
    SLACK,
    ExpectationArrays,
    GridArrays,
    LateArrays,
    Scratch,
)
from nearcast.boolean.index import BooleanIndex, IndexCells
from nearcast.columns.clauses import ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.engine import kernel_calls
from nearcast.engine.groups import Groups, Work
from nearcast.engine.registry import Parameters
from nearcast.errors import IndexParameterError
from nearcast.kernels.layouts import CANDIDATES, NODES, ClauseArrays
from nearcast.model.regions import Box

BUDGETS = {"small": CopyBudget(1e-4, 2.0), "balanced": CopyBudget(1e-5, 4.0), "fast": CopyBudget(5e-6, 8.0)}
# Late clauses are merged when they are more than this share of what was built, but not before there are some.
_SHARE = 0.1
_LEAST_LATE = 1024
# Up to this many clauses a merge is a matter of milliseconds and happens at once.
_MERGED_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class FrequencyGridParameters(Parameters):
    """`memory`: "small", "balanced" or "fast", how dear a copy of a clause is. `max_level`: cells are at most halved so often.

    `probe_cost`: what it costs to look up a cell, in tests of a candidate.
    """

    memory: str = "fast"
    max_level: int = 11
    probe_cost: float = 40.0

    def __post_init__(self) -> None:
        if self.memory not in BUDGETS:
            raise IndexParameterError(f"memory={self.memory!r} is not possible; expected one of {', '.join(BUDGETS)}")
        if not LEAST_LEVEL <= self.max_level <= MOST_LEVELS:
            raise IndexParameterError(f"max_level={self.max_level!r} is not possible; expected {LEAST_LEVEL} to {MOST_LEVELS}")
        if not 0.0 <= self.probe_cost <= 1e6:
            raise IndexParameterError(f"probe_cost={self.probe_cost!r} is not possible; expected 0 to a million")


class _Rooms(threading.local):
    """Where the matches of one thread are written: kept, since fresh memory costs more than what is written to it."""

    clause: NDArray[np.int32]
    pending: NDArray[np.int64]

    def __init__(self) -> None:
        self.grow(kernel_calls.FIRST_CAPACITY + SLACK, 0)

    def grow(self, room: int, n_used: int) -> None:
        """More room, with the first `n_used` matches kept."""
        clause = np.empty(room, np.int32)
        if n_used:
            clause[:n_used] = self.clause[:n_used]
        self.clause, self.pending = clause, np.empty(room, np.int64)


class FrequencyGrid(BooleanIndex):
    """Lists by rarest keyword, each keyword with the grid that is cheapest for the messages expected."""

    name = "frequency_grid"
    paper = "none: of our own; keys as in Yan & Garcia-Molina 1994, cost of cells as in Wang et al. 2017 (AP-Tree)"
    summary = "lists by rarest keyword and grid cell for vector units; a grid level per keyword by cost: the fastest here"
    parameters_class = FrequencyGridParameters
    parameters: FrequencyGridParameters

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._rooms = _Rooms()
        self._grid = no_grid(self.parameters.max_level)
        self._late = no_late(1)
        # What a history told; without one, every build guesses anew.
        self._counted: ExpectationArrays | None = None
        self._generation = 0
        # While a merge is under way: the clauses deleted since it began.
        self._gone: list[NDArray[np.int32]] | None = None

    # --- building and updating -----------------------------------------------------------------------------------------

    def build(self, clauses: ClauseStore, history: MessageBatch | None = None) -> None:
        """Without a history, that of an earlier build still counts. A merge under way comes to nothing."""
        if history is not None and len(history):
            self._counted = expect_history(history, clauses.n_keywords + 1, self.parameters.max_level)
        self._generation += 1
        self._gone = None
        self._adopt(self._assembled(clauses.layout(), clauses.n_keywords))

    def _assembled(self, layout: ClauseArrays, n_keywords: int) -> GridArrays:
        slots = living(layout)
        frequency = frequency_of(layout, slots, n_keywords)
        expected = self._counted or expect_clauses(layout, slots, frequency, self.parameters.max_level)
        parameters = self.parameters
        costs = (parameters.max_level, parameters.probe_cost, BUDGETS[parameters.memory])
        return assemble(layout, slots, frequency, widened(expected, n_keywords + 1), *costs)

    def _adopt(self, grid: GridArrays) -> None:
        self._grid, self._late = grid, no_late(len(grid.door) // 2)

    def insert(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        n_late = int(self._late.head[N_LATE]) + len(slots)
        if n_late > self._most_late() and clauses.n_alive <= _MERGED_AT_ONCE:
            self.build(clauses)
        else:
            self._insert_late(clauses, slots)

    def _insert_late(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        layout = clauses.layout()
        self._late = widened_late(self._late, clauses.n_keywords + 1)
        first = 0
        while (first := delta.insert_clauses(self._grid, self._late, layout, slots, first)) < len(slots):
            self._late = with_more_room(self._late, len(slots) - first)

    def delete(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        layout = clauses.layout()
        is_late = slots >= self._grid.head[N_BUILT]
        if is_late.any():
            delta.remove_clauses(self._grid, self._late, layout, slots[is_late])
        if not is_late.all():
            self._withdraw(layout, slots[~is_late])
        if self._gone is not None:
            self._gone.append(slots)

    def _withdraw(self, layout: ClauseArrays, slots: NDArray[np.int32]) -> None:
        n_taken, n_clauses = withdraw_clauses(self._grid, layout, slots)
        self._grid.head[N_ENTRIES] -= n_taken
        self._grid.head[N_CLAUSES] -= n_clauses

    # --- merging -------------------------------------------------------------------------------------------------------

    def _most_late(self) -> float:
        return max(_LEAST_LATE, _SHARE * int(self._grid.head[N_CLAUSES]))

    @property
    def wants_merge(self) -> bool:
        return self._gone is None and int(self._late.head[N_LATE]) > self._most_late()

    def begin_merge(self, clauses: ClauseStore) -> Callable[[], Any]:
        layout, n_keywords, generation = clauses.layout(), clauses.n_keywords, self._generation
        self._gone = []
        return lambda: (generation, self._assembled(layout, n_keywords))

    def finish_merge(self, clauses: ClauseStore, merged: Any) -> None:
        generation, grid = merged
        if generation != self._generation or self._gone is None:
            return
        gone = np.concatenate([np.empty(0, np.int32), *self._gone])
        self._gone = None
        self._adopt(grid)
        n_merged, layout = int(grid.head[N_BUILT]), clauses.layout()
        # A clause that died meanwhile may or may not have been met alive by the merge.
        self._withdraw(layout, gone[gone < n_merged])
        newer = n_merged + np.flatnonzero(layout.is_alive[n_merged:]).astype(np.int32)
        if len(newer):
            self._insert_late(clauses, newer)

    # --- matching ------------------------------------------------------------------------------------------------------

    def match(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]:
        n = len(messages)
        begin, end, counters = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(2, np.int64)
        grid, late, layout, arrays = self._grid, self._late, clauses.layout(), messages.arrays
        width = 1 + int(np.diff(arrays.keyword_start).max(initial=0))
        rooms, first, n_out = self._rooms, 0, 0
        while True:
            scratch = Scratch(rooms.clause, rooms.pending, begin, end, counters)
            first, n_out = match_messages(grid, late, layout, arrays, width, first, n_out, scratch)
            if first >= n:
                key = np.arange(n, dtype=np.int32)
                return Groups(key, scratch.clause, begin, end), Work(int(counters[NODES]), int(counters[CANDIDATES]))
            rooms.grow(2 * len(rooms.clause), n_out)

    # --- insight and storage -------------------------------------------------------------------------------------------

    def explain(self, clauses: ClauseStore, messages: MessageBatch, slot: int) -> list[str]:
        return explain_path(self._grid, self._late, clauses.layout(), messages, slot)

    def cells(self, box: Box, most: int) -> IndexCells:
        return cells_under(self._grid, box, most)

    def stats(self) -> dict[str, int | float]:
        head, level = self._grid.head, self._grid.door[::2] & LEVEL_MASK
        n_clauses = int(head[N_CLAUSES])
        return {
            **super().stats(),
            "copies": int(head[N_ENTRIES]) / max(1, n_clauses),
            "lists": int(head[N_LISTS]) + int(np.count_nonzero(self._grid.door[::2] >> LEVEL_BITS)),
            "divided_keywords": int(np.count_nonzero(level)),
            "depth": 1 + int(level.max(initial=0)),
            "late": int(self._late.head[N_LATE]),
            "late_bytes": sum(array.nbytes for array in self._late),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        late = {f"late_{name}": array for name, array in self._late._asdict().items()}
        counted = self._counted._asdict() if self._counted is not None else {}
        return {**self._grid._asdict(), **late, **{f"counted_{name}": array for name, array in counted.items()}}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._grid = GridArrays(*(arrays[name] for name in GridArrays._fields))
        self._late = LateArrays(*(arrays[f"late_{name}"] for name in LateArrays._fields))
        if "counted_hit" in arrays:
            self._counted = ExpectationArrays(*(arrays[f"counted_{name}"] for name in ExpectationArrays._fields))
