"""`frequency_pyramid`: owns the pyramid and keeps it up to date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.boolean.index import BooleanIndex
from nearcast.columns.clauses import ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work
from nearcast.engine.kernel_calls import Stamps, run_until_it_fits
from nearcast.engine.registry import Parameters, check_range
from nearcast.kernels.quadtree import DEEPEST
from nearcast.papers.boolean.frequency_pyramid.allocate import empty_pyramid, empty_work, trimmed, widened_frequency, with_room
from nearcast.papers.boolean.frequency_pyramid.explain import tell_way
from nearcast.papers.boolean.frequency_pyramid.kernels.collect_dead import sweep
from nearcast.papers.boolean.frequency_pyramid.kernels.insert import count_owners, file_clauses
from nearcast.papers.boolean.frequency_pyramid.kernels.match import match_messages
from nearcast.papers.boolean.frequency_pyramid.layout import (
    LONGEST,
    N_BUILT,
    N_EDGES,
    N_ENTRIES,
    N_FILED,
    N_FREQUENT,
    N_LISTS,
    N_NODES,
    N_SHARED,
    UNSWEPT,
    Options,
    PyramidArrays,
)
from nearcast.papers.boolean.quadtrees.cost_inputs import frame_of_clauses

# Built anew when this many clauses have come one by one, and as many as were built: then the grids fit their region again.
_LEAST_REBUILT = 1024
_EDGES = 256  # edges that a message looks for at once


@dataclass(frozen=True, slots=True)
class FrequencyPyramidParameters(Parameters):
    """How far lists grow, and how far down the pyramid goes.

    `list_size`: a keyword with more clauses than this in a cell is frequent there and gets a trie. `node_size`: clauses that
    may end at one node of a trie before the smaller ones go a grid down. `max_depth`: the finest grid has 2^max_depth cells on
    a side. `is_sharing`: whether neighbouring cells share lists. `cleaned`: slots that each clause that comes or goes makes the
    cleaner look at. Paper: theta = 5, a finest grid of 512 cells; the authors' program sends down from 20 on, slower here.
    """

    list_size: int = 5
    node_size: int = 5
    max_depth: int = 9
    is_sharing: bool = True
    cleaned: int = 4

    def __post_init__(self) -> None:
        check_range("list_size", self.list_size, 1, 1000)
        check_range("node_size", self.node_size, 1, 4000)
        check_range("max_depth", self.max_depth, 1, DEEPEST)
        check_range("cleaned", self.cleaned, 0, 1_000_000)


class FrequencyPyramid(BooleanIndex):
    """Each clause under its rarest keyword in the coarsest grid; what is frequent goes into tries, and from full tries down."""

    name = "frequency_pyramid"
    aliases = ("fast",)
    paper = "FAST: Mahmood, Aly, Aref, ICDE 2018"
    summary = (
        "a pyramid of grids: lists by rarest keyword, tries of locally frequent keywords, finer grids where tries are full"
    )
    parameters_class = FrequencyPyramidParameters
    parameters: FrequencyPyramidParameters

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        given = self.parameters
        self._options = Options(given.list_size, given.node_size, given.max_depth, int(given.is_sharing))
        self._stamps = Stamps()
        # No kernel yet: a matcher that is opened takes over saved arrays at once.
        self._pyramid = empty_pyramid(np.zeros(6), 1)

    # --- building and updating -----------------------------------------------------------------------------------------

    def build(self, clauses: ClauseStore, history: MessageBatch | None = None) -> None:
        """File all, one by one; what is rare is known from the first on. The history is not used."""
        layout = clauses.layout()
        slots = np.flatnonzero(layout.is_alive).astype(np.int32)
        frame = frame_of_clauses(layout, slots, self.parameters.max_depth)
        self._pyramid = empty_pyramid(frame, clauses.n_keywords + 1)
        self._file(clauses, slots)
        self._pyramid.head[N_BUILT] = len(slots)
        self._pyramid = trimmed(self._pyramid)

    def insert(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        head = self._pyramid.head
        if head[N_FILED] + len(slots) - head[N_BUILT] > max(_LEAST_REBUILT, head[N_BUILT]):
            self.build(clauses)
            return
        self._pyramid = widened_frequency(self._pyramid, clauses.n_keywords + 1)
        self._file(clauses, slots)
        self._sweep(clauses, len(slots))

    def _file(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        layout, work = clauses.layout(), empty_work()
        count_owners(self._pyramid.frequency, layout.keyword_start, layout.keyword, slots, 1)
        while not file_clauses(self._pyramid, layout, work, self._options, slots):
            self._pyramid, work = with_room(self._pyramid, work)

    def delete(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        """Clauses stay where they are and are skipped, until the cleaner or a full list comes upon them."""
        layout = clauses.layout()
        count_owners(self._pyramid.frequency, layout.keyword_start, layout.keyword, slots, -1)
        self._pyramid.head[N_FILED] -= len(slots)
        self._pyramid.head[UNSWEPT] = len(self._pyramid.slot) // 2
        self._sweep(clauses, len(slots))

    def _sweep(self, clauses: ClauseStore, n_changes: int) -> None:
        sweep(self._pyramid, clauses.layout().is_alive, n_changes * self.parameters.cleaned)

    # --- matching ------------------------------------------------------------------------------------------------------

    def match(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]:
        stamp, mark = self._stamps.take(messages.n_keywords, len(messages))
        pyramid, layout, max_depth = self._pyramid, clauses.layout(), self.parameters.max_depth
        scratch = (stamp, *_room(pyramid, max_depth, messages))
        return run_until_it_fits(
            len(messages),
            lambda first, n_out, output: match_messages(
                pyramid, max_depth, layout, messages.arrays, scratch, mark, first, n_out, output
            ),
        )

    # --- insight and storage -------------------------------------------------------------------------------------------

    def explain(self, clauses: ClauseStore, messages: MessageBatch, slot: int) -> list[str]:
        return tell_way(self._pyramid, self.parameters.max_depth, clauses.layout(), messages.arrays, slot)

    def stats(self) -> dict[str, int | float]:
        head = self._pyramid.head
        n_filed = int(head[N_FILED])
        return {
            **super().stats(),
            "lists": int(head[N_LISTS]),
            "longest_list": int(head[LONGEST]),
            "nodes": int(head[N_NODES]),
            "edges": int(head[N_EDGES]),
            "frequent": int(head[N_FREQUENT]),
            "shared": int(head[N_SHARED]),
            "copies": float(head[N_ENTRIES] / n_filed) if n_filed else 1.0,
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: array for name, array in self._pyramid._asdict().items() if name != "number"}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        own = {name: arrays[name] for name in PyramidArrays._fields if name != "number"}
        self._pyramid = PyramidArrays(number=arrays["word"].view(np.float64), **own)


def _room(pyramid: PyramidArrays, max_depth: int, messages: MessageBatch) -> tuple[NDArray[np.int64], ...]:
    """Scratch of a match: keys and bits by depth, edges, homes, places; lists found, nodes in line, cells ahead."""
    longest = int(np.diff(messages.arrays.keyword_start).max(initial=0)) + 1
    n_lists, n_nodes = int(pyramid.head[N_LISTS]), int(pyramid.head[N_NODES])
    sizes = (
        *(2 * [(max_depth + 2) * longest]),
        *(3 * [max(longest, _EDGES)]),
        n_lists + 1,
        2 * (n_nodes + 1),
        5 * 4 * (max_depth + 1),
    )
    return tuple(np.empty(size, np.int64) for size in sizes)
