"""`moving_grid`: our own moving index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.frames import enclosing_frame
from nearcast.columns.growing import aligned_zeros, resized
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work
from nearcast.engine.registry import Parameters
from nearcast.errors import IndexParameterError
from nearcast.kernels.keyword_sets import count_clauses
from nearcast.kernels.layouts import CANDIDATES, NODES
from nearcast.moving.index import Boxes, MovingIndex
from nearcast.moving.live_messages import LiveMessages
from nearcast.moving.moving_grid.kernels import clauses as clause_kernels
from nearcast.moving.moving_grid.kernels import levels
from nearcast.moving.moving_grid.kernels import messages as message_kernels
from nearcast.moving.moving_grid.kernels.collect_dead import collect_dead
from nearcast.moving.moving_grid.keyword_grid import KeywordGrid, anchors_to_relevel, level_limits, reserved_bits
from nearcast.moving.moving_grid.layout import (
    ANCHOR,
    CATCH_ALL,
    COUNT_SHIFT,
    FINE,
    GROUP,
    KEYWORD_LINE,
    LEVEL_MASK,
    MOST_LEVELS,
    RECORD,
    ROUTED,
)
from nearcast.moving.moving_grid.scratch import Scratch

# Rebuild when at least this many entries, and this share of all filed since the build, lie outside the frame.
_LEAST_OUTSIDE = 4096
_SHARE_OUTSIDE = 0.25
# Rounds of `collect_dead` while as many messages die as are alive.
_ROUNDS = 2
_MESSAGE = "message_"
_FEWEST_STEPS = 64
_MOVES_AT_ONCE = 4096
_LARGEST = float(np.finfo(np.float64).max)
_SAMPLE = 100_000
# At most this share of the boxes may lie outside the frame on each side.
_OUTSIDE = 0.002


@dataclass(frozen=True, slots=True)
class MovingGridParameters(Parameters):
    """From how many clauses, and messages, on a keyword has a grid; its first level (2^level columns and rows); and how many
    times as many messages make the grid finer (of clauses sixteen times as many)."""

    smallest_clause_grid: int = 64
    smallest_message_grid: int = 128
    first_level: int = 4
    growth: int = 64

    def __post_init__(self) -> None:
        for name, least, most in (
            ("smallest_clause_grid", 1, 1 << 20),
            ("smallest_message_grid", 1, 1 << 20),
            ("first_level", 1, MOST_LEVELS),
            ("growth", 2, 1 << 20),
        ):
            if not least <= getattr(self, name) <= most:
                raise IndexParameterError(f"{name}={getattr(self, name)!r} is not possible; expected {least} to {most}")


class MovingGrid(MovingIndex):
    """A clause is filed at its lower left corner in a grid for its size, a message at its location, both by keyword."""

    name = "moving_grid"
    collects_dead = True
    paper = "our own"
    summary = "grids of points by rarest keyword for clauses and messages; a move compares two boxes"
    parameters_class = MovingGridParameters
    parameters: MovingGridParameters

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        options = self.parameters
        self._clauses = KeywordGrid(level_limits(options.smallest_clause_grid, options.first_level, 16 * options.growth))
        self._messages = KeywordGrid(level_limits(options.smallest_message_grid, options.first_level, options.growth))
        self._frame: NDArray[np.float64] = np.zeros(6)
        self._record: NDArray[np.int32] = np.zeros(0, np.int32)
        self._keyword_lines: NDArray[np.int32] = np.zeros(0, np.int32)
        self._masks: NDArray[np.int32] = np.zeros(0, np.int32)
        self._frequency: NDArray[np.int64] = np.zeros(0, np.int64)
        self._reserved_bit: NDArray[np.int32] = np.zeros(0, np.int32)
        self._scratch = Scratch()

    # --- filing ------------------------------------------------------------------------------------------------------

    def build(self, clauses: ClauseStore, messages: LiveMessages) -> None:
        layout, live = clauses.layout(), messages.layout()
        slots, live_slots = np.flatnonzero(layout.is_alive).astype(np.int32), messages.slots()
        edges = [np.concatenate([bound[slots], other[live_slots]]) for bound, other in zip(layout[2:6], live[3:7], strict=True)]
        self._frame = frame_without_outliers(Boxes(*edges))
        self._frequency = np.zeros(clauses.n_keywords, np.int64)
        count_clauses(layout.keyword_start, layout.keyword, slots, self._frequency, 1)
        self._reserved_bit = reserved_bits(self._frequency)
        self._record = aligned_zeros(RECORD * clauses.n, np.int32)
        clause_kernels.write_records(
            layout.keyword_start, layout.keyword, self._frequency, self._reserved_bit, slots, self._record
        )
        count = np.bincount(self._anchors_of(slots), minlength=1 + clauses.n_keywords)
        self._clauses.clear(count.astype(np.int64))
        self._file_clauses(clauses, slots)
        anchors = 1 + messages.batch(live_slots, 0).arrays.keyword
        count_messages = np.bincount(anchors[anchors < len(count)], minlength=len(count))
        count_messages[CATCH_ALL] = len(live_slots)
        self._messages.clear(np.where(count > 0, count_messages, 0).astype(np.int64))
        self._messages.lists.directory[1::2] |= np.where(count > 0, ROUTED, 0)
        self.store(clauses, messages, live_slots)

    def insert(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        layout = clauses.layout()
        self._frequency = _with_spare(self._frequency, clauses.n_keywords)
        self._record = _with_spare(self._record, RECORD * clauses.n)
        count_clauses(layout.keyword_start, layout.keyword, slots, self._frequency, 1)
        clause_kernels.write_records(
            layout.keyword_start, layout.keyword, self._frequency, self._reserved_bit, slots, self._record
        )
        self._clauses.widen(1 + clauses.n_keywords)
        self._messages.widen(1 + clauses.n_keywords)
        self._file_clauses(clauses, slots)
        self._route(messages, np.unique(self._anchors_of(slots)))
        self._keep_frame(clauses, messages)

    def delete(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        layout = clauses.layout()
        count_clauses(layout.keyword_start, layout.keyword, slots, self._frequency, -1)
        to_relevel = anchors_to_relevel(len(slots), self._clauses)
        clause_kernels.unfile_clauses(self._clauses.lists, self._frame, layout, self._record, slots, to_relevel)
        self._relevel_clauses(clauses, to_relevel)

    def _anchors_of(self, slots: NDArray[np.int32]) -> NDArray[np.int32]:
        return self._record[RECORD * slots.astype(np.int64) + ANCHOR]

    def _file_clauses(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        to_relevel, first = anchors_to_relevel(len(slots), self._clauses), 0
        while True:
            lists = self._clauses.lists
            first = clause_kernels.file_clauses(lists, self._frame, clauses.layout(), self._record, slots, first, to_relevel)
            if first == len(slots):
                break
            self._clauses.grow(1)
        self._relevel_clauses(clauses, to_relevel)

    def _relevel_clauses(self, clauses: ClauseStore, to_relevel: NDArray[np.int64]) -> None:
        first = 1
        while first <= to_relevel[0]:
            first = levels.relevel_clauses(self._clauses.lists, self._frame, clauses.layout(), self._record, to_relevel, first)
            if first <= to_relevel[0]:
                self._clauses.grow(1 + self._clauses.entries_of(int(to_relevel[first])))

    def _keep_frame(self, clauses: ClauseStore, messages: LiveMessages) -> None:
        """Rebuild if too much lies outside the frame."""
        for grid in (self._clauses, self._messages):
            n_filed, n_outside = grid.counts
            if n_outside > max(_LEAST_OUTSIDE, _SHARE_OUTSIDE * n_filed):
                self.build(clauses, messages)
                return

    # --- messages ----------------------------------------------------------------------------------------------------

    def store(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        live, first, skip = messages.layout(), 0, 0
        width = 1 + int(live.n_keywords[slots].max(initial=0))
        to_relevel = anchors_to_relevel(width * len(slots), self._messages)
        self._keyword_lines = _with_spare(self._keyword_lines, KEYWORD_LINE * messages.n_slots)
        self._masks = _with_spare(self._masks, messages.n_slots)
        message_kernels.write_keyword_lines(live, self._reserved_bit, slots, self._keyword_lines, self._masks)
        while True:
            lists = self._messages.lists
            first, skip = message_kernels.file_messages(lists, self._frame, live, slots, first, skip, width, to_relevel)
            if first == len(slots):
                break
            self._messages.grow(GROUP * width)
        self._relevel_messages(messages, to_relevel)

    def arrive(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], batch: MessageBatch
    ) -> tuple[Groups, Work]:
        self.store(clauses, messages, slots)
        self._keep_frame(clauses, messages)
        return self.match(clauses, batch)

    def _route(self, messages: LiveMessages, anchors: NDArray[np.int32]) -> None:
        """File the live messages under anchors that had no clauses before."""
        directory = self._messages.lists.directory
        new = anchors[directory[2 * anchors.astype(np.int64) + 1] & ROUTED == 0].astype(np.int64)
        directory[2 * new + 1] |= ROUTED
        if len(new) == 0 or messages.n_alive == 0:
            return
        is_new = np.zeros(self._messages.n_anchors, np.uint8)
        is_new[new] = 1
        live, slots, to_relevel = messages.layout(), messages.slots(), anchors_to_relevel(len(new), self._messages)
        first, skip = 0, 0
        while True:
            lists = self._messages.lists
            first, skip = message_kernels.file_backlog(lists, self._frame, live, slots, is_new, first, skip, to_relevel)
            if first == len(slots):
                break
            self._messages.grow(1)
        self._relevel_messages(messages, to_relevel)

    def _relevel_messages(self, messages: LiveMessages, to_relevel: NDArray[np.int64]) -> None:
        first = 1
        while first <= to_relevel[0]:
            first = levels.relevel_messages(self._messages.lists, self._frame, messages.layout(), to_relevel, first)
            if first <= to_relevel[0]:
                self._messages.grow(1 + self._messages.entries_of(int(to_relevel[first])))

    def collect_dead(self, messages: LiveMessages, n_expired: int) -> bool:
        share = _ROUNDS * n_expired / max(1, messages.n_alive)
        n_steps = _FEWEST_STEPS + int(share * self._messages.n_steps)
        to_relevel = anchors_to_relevel(n_steps, self._messages)
        is_round = collect_dead(self._messages.lists, messages.layout().alive_bits, n_steps, to_relevel)
        self._relevel_messages(messages, to_relevel)
        return bool(is_round)

    def purge(self, clauses: ClauseStore, messages: LiveMessages) -> None:
        """Two rounds, because the first one may have been in progress."""
        for _ in range(2):
            while not self.collect_dead(messages, messages.n_alive):
                pass

    # --- finding -----------------------------------------------------------------------------------------------------

    def match(self, clauses: ClauseStore, batch: MessageBatch) -> tuple[Groups, Work]:
        output = self._scratch.match(self._clauses.lists, self._frame, clauses.layout(), self._record, batch)
        key = np.arange(len(batch), dtype=np.int32)
        work = Work(int(output.counters[NODES]), int(output.counters[CANDIDATES]))
        return Groups(key, output.clause, output.begin, output.end), work

    def find_messages(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], excluded: Boxes
    ) -> tuple[Groups, Work]:
        scratch, layout, live = self._scratch.prepare(len(slots)), clauses.layout(), messages.layout()
        lists, keyword_lines, masks = self._messages.lists, self._keyword_lines, self._masks
        scratch.find(lists, self._frame, layout, live, keyword_lines, masks, self._record, slots, excluded, False)
        _, entered, work = scratch.groups(slots)
        return entered, work

    def move(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], to: Boxes
    ) -> tuple[Groups, Groups, Work]:
        scratch = self._scratch.prepare(len(slots))
        layout, live = clauses.layout(), messages.layout()
        for first in range(0, len(slots), _MOVES_AT_ONCE):
            last = min(first + _MOVES_AT_ONCE, len(slots))
            lists, keyword_lines, masks = self._messages.lists, self._keyword_lines, self._masks
            scratch.find(lists, self._frame, layout, live, keyword_lines, masks, self._record, slots, to, True, first, last)
            self._move(clauses, slots, to, first, last)
        self._keep_frame(clauses, messages)
        return scratch.groups(slots)

    def refile(self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], to: Boxes) -> None:
        self._move(clauses, slots, to, 0, len(slots))

    def _move(self, clauses: ClauseStore, slots: NDArray[np.int32], to: Boxes, first: int, last: int) -> None:
        layout = clauses.layout()
        while True:
            lists = self._clauses.lists
            first = clause_kernels.move_clauses(lists, self._frame, layout, self._record, slots, tuple(to), first, last)
            if first == last:
                return
            self._clauses.grow(1)

    # --- insight and disk --------------------------------------------------------------------------------------------

    def explain(self, clauses: ClauseStore, batch: MessageBatch, slot: int) -> list[str]:
        anchor = int(self._record[RECORD * slot + ANCHOR])
        entry = int(self._clauses.lists.directory[2 * anchor + 1])
        what = "clauses without keywords" if anchor == CATCH_ALL else f"keyword {anchor - 1}"
        is_visited = anchor == CATCH_ALL or anchor - 1 in batch.arrays.keyword
        n_columns = 1 << (entry & LEVEL_MASK)
        grid = f"grid of {n_columns} x {n_columns} cells" if entry & LEVEL_MASK else "one list"
        verdict = "visited" if is_visited else "not visited: the message lacks that keyword"
        return [f"{what}: {entry >> COUNT_SHIFT} clauses in {grid}, {verdict}"]

    def stats(self) -> dict[str, int | float]:
        n_bytes = self._clauses.n_bytes + self._messages.n_bytes
        n_bytes += self._frequency.nbytes + self._record.nbytes + self._keyword_lines.nbytes + self._masks.nbytes
        return {
            "bytes": n_bytes,
            "clause_entries": self._clauses.n_entries,
            "message_entries": self._messages.n_entries,
            "message_bytes": self._messages.n_bytes,
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        common: dict[str, NDArray[Any]] = {
            "frame": self._frame,
            "record": self._record,
            "words": self._keyword_lines,
            "masks": self._masks,
            "frequency": self._frequency,
            "own_bit": self._reserved_bit,
        }
        of_messages = {f"{_MESSAGE}{name}": array for name, array in self._messages.arrays().items()}
        return {**common, **self._clauses.arrays(), **of_messages}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._frame, self._record, self._frequency = arrays["frame"], arrays["record"], arrays["frequency"]
        self._reserved_bit, self._keyword_lines, self._masks = arrays["own_bit"], arrays["words"], arrays["masks"]
        self._clauses.restore(arrays)
        self._messages.restore({name[len(_MESSAGE) :]: a for name, a in arrays.items() if name.startswith(_MESSAGE)})


def _with_spare(array: NDArray[Any], n: int) -> NDArray[Any]:
    """The aligned array with at least `n` elements, for entries that follow the build. If it must grow, a quarter is spare."""
    return resized(array, n + n // 4, needed=n, is_aligned=True)


def frame_without_outliers(boxes: Boxes) -> NDArray[np.float64]:
    """The frame around most boxes: a few far away must not make the cells large. Low, high and scale of x, then of y."""
    is_bounded = np.all([np.abs(edge) < _LARGEST for edge in boxes], axis=0)
    step = max(1, len(is_bounded) // _SAMPLE)
    x0, y0, x1, y1 = (edge[is_bounded][::step] for edge in boxes)
    if len(x0) == 0:
        return np.zeros(6)
    n_out = int(_OUTSIDE * len(x0))
    low = [np.partition(edge, n_out)[n_out : n_out + 1] for edge in (x0, y0)]
    high = [np.partition(edge, len(edge) - 1 - n_out)[len(edge) - 1 - n_out :][:1] for edge in (x1, y1)]
    frame: NDArray[np.float64] = enclosing_frame(low[0], low[1], high[0], high[1], 1 << FINE)
    return frame
