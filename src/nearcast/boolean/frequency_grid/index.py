"""`frequency_grid`: builds, updates and merges the grid and the delta of later clauses, and matches."""

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
    empty_delta,
    empty_grid,
    frequency_of,
    living_slots,
    reserve_blocks,
    resized_delta,
)
from nearcast.boolean.frequency_grid.cost_inputs import estimate_from_clauses, estimate_from_history, resized_estimate
from nearcast.boolean.frequency_grid.explain import cells_under, explain_path
from nearcast.boolean.frequency_grid.kernels.delta import insert_clauses, remove_clauses
from nearcast.boolean.frequency_grid.kernels.match import match_messages
from nearcast.boolean.frequency_grid.kernels.remove import remove_from_lists
from nearcast.boolean.frequency_grid.layout import (
    LEAST_LEVEL,
    LEVEL_BITS,
    LEVEL_MASK,
    MOST_LEVELS,
    N_BUILT,
    N_CLAUSES,
    N_DELTA,
    N_ENTRIES,
    N_LISTS,
    SLACK,
    DeltaArrays,
    GridArrays,
    MessageEstimate,
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
# The delta is merged when it has more than this share of the built clauses, and at least a minimum.
_SHARE = 0.1
_LEAST_DELTA = 1024
# Up to this many clauses a merge is a matter of milliseconds and happens at once.
_MERGED_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class FrequencyGridParameters(Parameters):
    """`memory`: "small", "balanced" or "fast": what a copy of a clause costs. `max_level`: cells are halved at most this often.

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


class _Output(threading.local):
    """The output arrays of one thread. They are reused, since new memory costs more than writing the matches to it."""

    clause: NDArray[np.int32]
    pending: NDArray[np.int64]

    def __init__(self) -> None:
        self.reserve(kernel_calls.FIRST_CAPACITY + SLACK, 0)

    def reserve(self, capacity: int, n_used: int) -> None:
        """Arrays of this capacity, with the first `n_used` matches copied."""
        clause = np.empty(capacity, np.int32)
        if n_used:
            clause[:n_used] = self.clause[:n_used]
        self.clause, self.pending = clause, np.empty(capacity, np.int64)


class FrequencyGrid(BooleanIndex):
    """Lists by rarest keyword; each keyword has the grid that is cheapest for the expected messages."""

    name = "frequency_grid"
    paper = "none: of our own; keys as in Yan & Garcia-Molina 1994, cost of cells as in Wang et al. 2017 (AP-Tree)"
    summary = "lists by rarest keyword and grid cell for vector units; a grid level per keyword by cost: the fastest here"
    parameters_class = FrequencyGridParameters
    parameters: FrequencyGridParameters

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._output = _Output()
        self._grid = empty_grid(self.parameters.max_level)
        self._delta = empty_delta(1)
        # Counted in a history; without one, every build estimates from the clauses.
        self._history_estimate: MessageEstimate | None = None
        self._generation = 0
        # During a merge: the clauses deleted since it began.
        self._deleted: list[NDArray[np.int32]] | None = None

    # --- building and updating -----------------------------------------------------------------------------------------

    def build(self, clauses: ClauseStore, history: MessageBatch | None = None) -> None:
        """Without a history, that of an earlier build is used. The result of a running merge is dropped."""
        if history is not None and len(history):
            self._history_estimate = estimate_from_history(history, clauses.n_keywords + 1, self.parameters.max_level)
        self._generation += 1
        self._deleted = None
        self._adopt(self._assembled(clauses.layout(), clauses.n_keywords))

    def _assembled(self, layout: ClauseArrays, n_keywords: int) -> GridArrays:
        slots = living_slots(layout)
        frequency = frequency_of(layout, slots, n_keywords)
        estimate = self._history_estimate or estimate_from_clauses(layout, slots, frequency, self.parameters.max_level)
        parameters = self.parameters
        costs = (parameters.max_level, parameters.probe_cost, BUDGETS[parameters.memory])
        return assemble(layout, slots, frequency, resized_estimate(estimate, n_keywords + 1), *costs)

    def _adopt(self, grid: GridArrays) -> None:
        self._grid, self._delta = grid, empty_delta(len(grid.directory) // 2)

    def insert(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        n_delta = int(self._delta.head[N_DELTA]) + len(slots)
        if n_delta > self._delta_limit() and clauses.n_alive <= _MERGED_AT_ONCE:
            self.build(clauses)
        else:
            self._insert_delta(clauses, slots)

    def _insert_delta(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        layout = clauses.layout()
        self._delta = resized_delta(self._delta, clauses.n_keywords + 1)
        first = 0
        while (first := insert_clauses(self._grid, self._delta, layout, slots, first)) < len(slots):
            self._delta = reserve_blocks(self._delta, len(slots) - first)

    def delete(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        layout = clauses.layout()
        is_delta = slots >= self._grid.head[N_BUILT]
        if is_delta.any():
            remove_clauses(self._grid, self._delta, layout, slots[is_delta])
        if not is_delta.all():
            self._remove_from_lists(layout, slots[~is_delta])
        if self._deleted is not None:
            self._deleted.append(slots)

    def _remove_from_lists(self, layout: ClauseArrays, slots: NDArray[np.int32]) -> None:
        n_copies, n_clauses = remove_from_lists(self._grid, layout, slots)
        self._grid.head[N_ENTRIES] -= n_copies
        self._grid.head[N_CLAUSES] -= n_clauses

    # --- merging -------------------------------------------------------------------------------------------------------

    def _delta_limit(self) -> float:
        return max(_LEAST_DELTA, _SHARE * int(self._grid.head[N_CLAUSES]))

    @property
    def wants_merge(self) -> bool:
        return self._deleted is None and int(self._delta.head[N_DELTA]) > self._delta_limit()

    def begin_merge(self, clauses: ClauseStore) -> Callable[[], Any]:
        layout, n_keywords, generation = clauses.layout(), clauses.n_keywords, self._generation
        self._deleted = []
        return lambda: (generation, self._assembled(layout, n_keywords))

    def finish_merge(self, clauses: ClauseStore, merged: Any) -> None:
        generation, grid = merged
        if generation != self._generation or self._deleted is None:
            return
        deleted = np.concatenate([np.empty(0, np.int32), *self._deleted])
        self._deleted = None
        self._adopt(grid)
        n_merged, layout = int(grid.head[N_BUILT]), clauses.layout()
        # The merge may have seen a clause that was deleted meanwhile, or not.
        self._remove_from_lists(layout, deleted[deleted < n_merged])
        newer = n_merged + np.flatnonzero(layout.is_alive[n_merged:]).astype(np.int32)
        if len(newer):
            self._insert_delta(clauses, newer)

    # --- matching ------------------------------------------------------------------------------------------------------

    def match(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]:
        n = len(messages)
        begin, end, counters = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(2, np.int64)
        grid, delta, layout, arrays = self._grid, self._delta, clauses.layout(), messages.arrays
        width = 1 + int(np.diff(arrays.keyword_start).max(initial=0))
        output, first, n_out = self._output, 0, 0
        while True:
            scratch = Scratch(output.clause, output.pending, begin, end, counters)
            first, n_out = match_messages(grid, delta, layout, arrays, width, first, n_out, scratch)
            if first >= n:
                key = np.arange(n, dtype=np.int32)
                return Groups(key, scratch.clause, begin, end), Work(int(counters[NODES]), int(counters[CANDIDATES]))
            output.reserve(2 * len(output.clause), n_out)

    # --- insight and storage -------------------------------------------------------------------------------------------

    def explain(self, clauses: ClauseStore, messages: MessageBatch, slot: int) -> list[str]:
        return explain_path(self._grid, self._delta, clauses.layout(), messages, slot)

    def cells(self, box: Box, most: int) -> IndexCells:
        return cells_under(self._grid, box, most)

    def stats(self) -> dict[str, int | float]:
        head, level = self._grid.head, self._grid.directory[::2] & LEVEL_MASK
        n_clauses = int(head[N_CLAUSES])
        return {
            **super().stats(),
            "copies": int(head[N_ENTRIES]) / max(1, n_clauses),
            "lists": int(head[N_LISTS]) + int(np.count_nonzero(self._grid.directory[::2] >> LEVEL_BITS)),
            "divided_keywords": int(np.count_nonzero(level)),
            "depth": 1 + int(level.max(initial=0)),
            "late": int(self._delta.head[N_DELTA]),
            "late_bytes": sum(array.nbytes for array in self._delta),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        delta = {f"delta_{name}": array for name, array in self._delta._asdict().items()}
        history = self._history_estimate._asdict() if self._history_estimate is not None else {}
        return {**self._grid._asdict(), **delta, **{f"history_{name}": array for name, array in history.items()}}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._grid = GridArrays(*(arrays[name] for name in GridArrays._fields))
        self._delta = DeltaArrays(*(arrays[f"delta_{name}"] for name in DeltaArrays._fields))
        if "history_keyword_share" in arrays:
            self._history_estimate = MessageEstimate(*(arrays[f"history_{name}"] for name in MessageEstimate._fields))
