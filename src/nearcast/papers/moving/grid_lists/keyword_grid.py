"""One side of a grid index, clauses or messages: owns the lists, and gives them room."""

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
    WANTED_FIELDS,
    WANTED_ITEMS,
    WANTED_LISTS,
    WANTED_SLOTS,
    GridArrays,
    look_for_messages,
)

_FEWEST_SLOTS = 64
# Built again when so many more are filed: which owners are grids is decided then. Small worlds need not.
_GROWTH = 2
_LEAST = 1024


class Shape(NamedTuple):
    """How a side is laid out: columns (and rows), the most cells of one thing, whether lists are found by cell first, and from
    how many things on an owner is a grid."""

    side: int
    most_cells: int
    is_space_first: bool
    smallest_grid: int


class Postings(NamedTuple):
    """Things to file: under which owner, what, where."""

    owner: NDArray[np.int32]
    value: NDArray[np.int32]
    boxes: Boxes


class GridSide:
    """Lists by owner and cell."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self.lists = _empty(shape, np.zeros(6), np.zeros(0, np.uint8))

    @property
    def is_outgrown(self) -> bool:
        """Whether it is time to build anew."""
        head = self.lists.head
        return int(head[N_FILED]) > max(_LEAST, _GROWTH * int(head[N_BUILT]))

    def build(self, postings: Postings, frame: NDArray[np.float64]) -> None:
        """Forget everything and file these."""
        count = np.bincount(postings.owner, minlength=1)
        self.lists = _empty(self._shape, frame, (count >= self._shape.smallest_grid).astype(np.uint8))
        # Most have few cells, and lists are short.
        n = len(postings.owner)
        self.lists = _with_room(self.lists, np.array([n // 2, n, 2 * n], np.int64))
        self.file(postings)
        self.lists.head[N_BUILT] = len(postings.owner)

    def file(self, postings: Postings) -> None:
        first, wanted = 0, np.zeros(WANTED_FIELDS, np.int64)
        while True:
            first = kernels.file_postings(self.lists, postings.owner, postings.value, *postings.boxes, first, wanted)
            if first == len(postings.owner):
                return
            self.grow(wanted)

    def grow(self, wanted: NDArray[np.int64]) -> None:
        """Give the lists the room that a kernel asked for."""
        self.lists = _with_room(self.lists, wanted)

    def unfile(self, postings: Postings) -> None:
        kernels.unfile_postings(self.lists, postings.owner, postings.value, *postings.boxes)

    def stats(self, what: str) -> dict[str, int | float]:
        head = self.lists.head
        return {f"{what}_lists": int(head[N_LISTS]), f"{what}_entries": int(head[N_ENTRIES])}

    def arrays(self) -> dict[str, NDArray[Any]]:
        n_lists, n_items = int(self.lists.head[N_LISTS]), int(self.lists.head[N_ITEMS])
        used = {name: getattr(self.lists, name)[:n_lists] for name in ("start", "size", "room")}
        return {**self.lists._asdict(), **used, "item": self.lists.item[:n_items]}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.lists = GridArrays(**{name: arrays[name] for name in GridArrays._fields})

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for array in self.lists)


def postings_of_messages(messages: LiveMessages, slots: NDArray[np.int32]) -> Postings:
    """Each message under all its keywords, and under the owner of all."""
    live = messages.layout()
    batch = messages.batch(slots, 0).arrays
    lengths = np.diff(batch.keyword_start)
    owner = np.concatenate([np.full(len(slots), CATCH_ALL, np.int32), 1 + batch.keyword]).astype(np.int32)
    value = np.concatenate([slots, np.repeat(slots, lengths)])
    return Postings(owner, value, Boxes(live.x0[value], live.y0[value], live.x1[value], live.y1[value]))


def _empty(shape: Shape, frame: NDArray[np.float64], is_grid: NDArray[np.uint8]) -> GridArrays:
    none = np.zeros(0, np.int32)
    return GridArrays(
        slot=np.zeros(2 * _FEWEST_SLOTS, np.int64),
        start=np.zeros(0, np.int64),
        size=none,
        room=none,
        item=none,
        free=np.full(N_CLASSES, NO_CHUNK, np.int32),
        is_grid=is_grid,
        frame=frame,
        shape=np.array([shape.side, shape.most_cells, int(shape.is_space_first)], np.int64),
        head=np.zeros(HEAD_FIELDS, np.int64),
    )


def _with_room(grid: GridArrays, wanted: NDArray[np.int64]) -> GridArrays:
    n_lists, n_items = int(grid.head[N_LISTS]), int(grid.head[N_ITEMS])
    if wanted[WANTED_SLOTS] > len(grid.slot) // 2:
        n_slots = len(grid.slot) // 2
        while n_slots < wanted[WANTED_SLOTS]:
            n_slots *= 2
        slot = np.zeros(2 * n_slots, np.int64)
        rehash(slot, grid.slot)
        grid = grid._replace(slot=slot)
    needed_lists, needed_items = int(wanted[WANTED_LISTS]), int(wanted[WANTED_ITEMS])
    n = needed_lists * 3 // 2 + 16
    columns = {name: resized(getattr(grid, name), n, None, n_lists, needed_lists) for name in ("start", "size", "room")}
    return grid._replace(**columns, item=resized(grid.item, needed_items * 3 // 2 + 16, None, n_items, needed_items))


class MessageGrid:
    """Each message in the lists of all its keywords; a clause looks into those of its rarest."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._side = GridSide(shape)
        self._n_with: NDArray[np.int64] = np.zeros(1, np.int64)

    def build(self, messages: LiveMessages) -> None:
        """Forget everything and store the living."""
        slots, live = messages.slots(), messages.layout()
        frame = enclosing_frame(live.x0[slots], live.y0[slots], live.x1[slots], live.y1[slots], self._shape.side)
        postings = postings_of_messages(messages, slots)
        self._n_with = np.zeros(1, np.int64)
        self._count(postings)
        self._side.build(postings, frame)

    def store(self, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        postings = postings_of_messages(messages, slots)
        self._count(postings)
        self._side.file(postings)
        if self._side.is_outgrown:
            self.build(messages)

    def _count(self, postings: Postings) -> None:
        count = np.bincount(postings.owner, minlength=len(self._n_with))
        count[: len(self._n_with)] += self._n_with
        self._n_with = count.astype(np.int64)

    def find_messages(
        self, clauses: ClauseStore, messages: LiveMessages, slots: NDArray[np.int32], excluded: Boxes
    ) -> tuple[Groups, Work]:
        layout, live, lists, n_with = clauses.layout(), messages.layout(), self._side.lists, self._n_with
        return run_until_it_fits(
            len(slots),
            lambda first, n_out, output: look_for_messages(
                lists, n_with, layout, live, slots, tuple(excluded), first, n_out, output
            ),
            is_by_clause=True,
        )

    def stats(self) -> dict[str, int | float]:
        return self._side.stats("message")

    @property
    def n_bytes(self) -> int:
        return self._side.n_bytes + self._n_with.nbytes

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"n_with": self._n_with, **self._side.arrays()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._n_with = arrays["n_with"]
        self._side.restore(arrays)
