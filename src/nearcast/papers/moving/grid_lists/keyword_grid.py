"""The lists of a grid index, of clauses or of messages: owns the arrays and lets them grow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.frames import enclosing_frame
from nearcast.columns.growing import resized
from nearcast.engine.groups import Groups, Work
from nearcast.engine.kernel_calls import run_until_it_fits
from nearcast.kernels.hashing import rehash
from nearcast.kernels.pools import N_CLASSES, NO_CHUNK
from nearcast.moving.index import Boxes
from nearcast.moving.live_messages import LiveMessages
from nearcast.papers.moving.grid_lists import kernels
from nearcast.papers.moving.grid_lists.kernels import (
    CATCH_ALL,
    HEAD_FIELDS,
    N_BUILT,
    N_ENTRIES,
    N_FILED,
    N_ITEMS,
    N_LISTS,
    NEEDED_FIELDS,
    NEEDED_ITEMS,
    NEEDED_LISTS,
    NEEDED_SLOTS,
    UniformGridArrays,
    find_messages,
)

_FEWEST_SLOTS = 64
# Rebuild when the postings have grown by this factor: a build decides which anchors have grids. Small grids need not.
_GROWTH = 2
_LEAST = 1024


class GridShape(NamedTuple):
    """The layout of a grid: columns (and rows); the most cells of one posting; whether keys begin with the cell; the number of
    postings from which on an anchor has a grid."""

    width: int
    most_cells: int
    is_space_first: bool
    smallest_grid: int


class Postings(NamedTuple):
    """Clauses or messages to file, with their anchors and boxes."""

    anchor: NDArray[np.int32]
    value: NDArray[np.int32]
    boxes: Boxes


class UniformGrid:
    """Lists by anchor and cell."""

    def __init__(self, shape: GridShape) -> None:
        self._shape = shape
        self.lists = _empty(shape, np.zeros(6), np.zeros(0, np.uint8))

    @property
    def is_outgrown(self) -> bool:
        """Whether the grid should be rebuilt."""
        head = self.lists.head
        return int(head[N_FILED]) > max(_LEAST, _GROWTH * int(head[N_BUILT]))

    def build(self, postings: Postings, frame: NDArray[np.float64]) -> None:
        """Drop everything and file these postings."""
        count = np.bincount(postings.anchor, minlength=1)
        self.lists = _empty(self._shape, frame, (count >= self._shape.smallest_grid).astype(np.uint8))
        # A first guess: most postings have few cells, and lists are short.
        n = len(postings.anchor)
        self.lists = _grown(self.lists, np.array([n // 2, n, 2 * n], np.int64))
        self.file(postings)
        self.lists.head[N_BUILT] = len(postings.anchor)

    def file(self, postings: Postings) -> None:
        first, needed = 0, np.zeros(NEEDED_FIELDS, np.int64)
        while True:
            first = kernels.file_postings(self.lists, postings.anchor, postings.value, *postings.boxes, first, needed)
            if first == len(postings.anchor):
                return
            self.grow(needed)

    def grow(self, needed: NDArray[np.int64]) -> None:
        """Grow the arrays to the sizes that a kernel needs."""
        self.lists = _grown(self.lists, needed)

    def unfile(self, postings: Postings) -> None:
        kernels.unfile_postings(self.lists, postings.anchor, postings.value, *postings.boxes)

    def stats(self, what: str) -> dict[str, int | float]:
        head = self.lists.head
        return {f"{what}_lists": int(head[N_LISTS]), f"{what}_entries": int(head[N_ENTRIES])}

    def arrays(self) -> dict[str, NDArray[Any]]:
        n_lists, n_items = int(self.lists.head[N_LISTS]), int(self.lists.head[N_ITEMS])
        used = {name: getattr(self.lists, name)[:n_lists] for name in ("start", "size", "capacity")}
        return {**self.lists._asdict(), **used, "item": self.lists.item[:n_items]}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.lists = UniformGridArrays(**{name: arrays[name] for name in UniformGridArrays._fields})

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for array in self.lists)


def postings_of_messages(messages: LiveMessages, slots: NDArray[np.int32]) -> Postings:
    """The postings of messages: under each keyword, and under CATCH_ALL."""
    live = messages.layout()
    batch = messages.batch(slots, 0).arrays
    lengths = np.diff(batch.keyword_start)
    anchor = np.concatenate([np.full(len(slots), CATCH_ALL, np.int32), 1 + batch.keyword]).astype(np.int32)
    value = np.concatenate([slots, np.repeat(slots, lengths)])
    return Postings(anchor, value, Boxes(live.x0[value], live.y0[value], live.x1[value], live.y1[value]))


def _empty(shape: GridShape, frame: NDArray[np.float64], is_grid: NDArray[np.uint8]) -> UniformGridArrays:
    none = np.zeros(0, np.int32)
    return UniformGridArrays(
        slot=np.zeros(2 * _FEWEST_SLOTS, np.int64),
        start=np.zeros(0, np.int64),
        size=none,
        capacity=none,
        item=none,
        free=np.full(N_CLASSES, NO_CHUNK, np.int32),
        is_grid=is_grid,
        frame=frame,
        shape=np.array([shape.width, shape.most_cells, int(shape.is_space_first)], np.int64),
        head=np.zeros(HEAD_FIELDS, np.int64),
    )


def _grown(grid: UniformGridArrays, needed: NDArray[np.int64]) -> UniformGridArrays:
    n_lists, n_items = int(grid.head[N_LISTS]), int(grid.head[N_ITEMS])
    if needed[NEEDED_SLOTS] > len(grid.slot) // 2:
        n_slots = len(grid.slot) // 2
        while n_slots < needed[NEEDED_SLOTS]:
            n_slots *= 2
        slot = np.zeros(2 * n_slots, np.int64)
        rehash(slot, grid.slot)
        grid = grid._replace(slot=slot)
    needed_lists, needed_items = int(needed[NEEDED_LISTS]), int(needed[NEEDED_ITEMS])
    n = needed_lists * 3 // 2 + 16
    columns = {name: resized(getattr(grid, name), n, None, n_lists, needed_lists) for name in ("start", "size", "capacity")}
    return grid._replace(**columns, item=resized(grid.item, needed_items * 3 // 2 + 16, None, n_items, needed_items))


class MessageGrid:
    """Messages in the lists of all their keywords; a clause searches the lists of its rarest keyword."""

    def __init__(self, shape: GridShape) -> None:
        self._shape = shape
        self._grid = UniformGrid(shape)
        self._n_messages_of: NDArray[np.int64] = np.zeros(1, np.int64)

    def build(self, messages: LiveMessages) -> None:
        """Drop everything and store all live messages."""
        slots, live = messages.slots(), messages.layout()
        frame = enclosing_frame(live.x0[slots], live.y0[slots], live.x1[slots], live.y1[slots], self._shape.width)
        postings = postings_of_messages(messages, slots)
        self._n_messages_of = np.zeros(1, np.int64)
        self._count(postings)
        self._grid.build(postings, frame)

    def store(self, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        postings = postings_of_messages(messages, slots)
        self._count(postings)
        self._grid.file(postings)
        if self._grid.is_outgrown:
            self.build(messages)

    def _count(self, postings: Postings) -> None:
        count = np.bincount(postings.anchor, minlength=len(self._n_messages_of))
        count[: len(self._n_messages_of)] += self._n_messages_of
        self._n_messages_of = count.astype(np.int64)

    def find_messages(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], excluded: Boxes
    ) -> tuple[Groups, Work]:
        layout, live, lists, n_messages_of = clauses.layout(), messages.layout(), self._grid.lists, self._n_messages_of
        return run_until_it_fits(
            len(slots),
            lambda first, n_out, output: find_messages(
                lists, n_messages_of, layout, live, slots, tuple(excluded), first, n_out, output
            ),
            is_by_clause=True,
        )

    def stats(self) -> dict[str, int | float]:
        return self._grid.stats("message")

    @property
    def n_bytes(self) -> int:
        return self._grid.n_bytes + self._n_messages_of.nbytes

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"n_with": self._n_messages_of, **self._grid.arrays()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._n_messages_of = arrays["n_with"]
        self._grid.restore(arrays)
