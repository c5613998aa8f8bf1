"""The result buffers of all subscriptions: their room in one pool, filled from what a search of the window found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import GrowingArray, GrowingColumns
from nearcast.kernels.pools import FreeList
from nearcast.papers.ranked.skyband.kernels.buffers import BufferArrays, count_near, fill_many
from nearcast.ranked.buffer_kind import BufferKind
from nearcast.ranked.kernels.layouts import WindowArrays
from nearcast.ranked.window_index import Best

_COLUMNS: dict[str, tuple[type[np.generic], int]] = {
    "start": (np.int64, 0),
    "room": (np.int32, 0),
    "size": (np.int32, 0),
    "is_complete": (np.uint8, 1),
    "threshold": (np.float64, 0),
    "guard_time": (np.float64, 0),
    "guard_number": (np.int64, 0),
}
_ENTRIES = {"score": np.float64, "number": np.int64, "dominators": np.int32}


class ResultBuffers:
    """Buffers by subscription number, of the room their kind gives them for their k."""

    def __init__(self, kind: BufferKind, given: Mapping[str, NDArray[Any]] | None = None) -> None:
        self.kind = kind
        self._rows = GrowingColumns(_COLUMNS, given)
        self.kept_by_cut = GrowingColumns({"kept": (np.int32, 1)}, given)
        self._entries = {name: GrowingArray(dtype, (given or {}).get(name)) for name, dtype in _ENTRIES.items()}
        # Buffers freed before the last save are not remembered.
        self._free = FreeList()

    def grow(self, n: int) -> None:
        self._rows.grow(n)
        self.kept_by_cut.grow(n)

    @property
    def threshold(self) -> NDArray[np.float64]:
        """The score below which a message is of no use, by subscription number."""
        return self._rows["threshold"]

    def sizes(self, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """How many messages are held."""
        held: NDArray[np.int32] = self._rows["size"][numbers]
        return held

    @property
    def n_bytes(self) -> int:
        return self._rows.n_bytes + self.kept_by_cut.n_bytes + sum(column.memory.nbytes for column in self._entries.values())

    def layout(self) -> BufferArrays:
        return BufferArrays(**self._rows.used(), **{name: column.used for name, column in self._entries.items()})

    def give_room(self, numbers: NDArray[np.int32], k: NDArray[np.int32]) -> None:
        """Empty buffers for new subscriptions."""
        for distinct in np.unique(k).tolist():
            chosen = numbers[k == distinct]
            room = self.kind.room(distinct)
            start, n_new = self._free.take(room, room, len(chosen), self._entries["score"].n)
            for column in self._entries.values():
                column.extend(0, room * n_new)
            self._rows["start"][chosen] = start
            self._rows["room"][chosen] = room
            self._rows["size"][chosen] = 0
            self.kept_by_cut["kept"][chosen] = self.kind.kept(distinct)

    def free(self, numbers: NDArray[np.int32]) -> None:
        """Give up the buffers of subscriptions that go."""
        self._free.give_back(self._rows["start"][numbers], self._rows["room"][numbers])
        self._rows["size"][numbers] = 0
        self._rows["room"][numbers] = 0

    def wanted(self, k: NDArray[np.int32]) -> NDArray[np.int32]:
        """How many messages to look for, by the k of each subscription."""
        distinct, which = np.unique(k, return_inverse=True)
        return np.array([self.kind.wanted(one) for one in distinct.tolist()], np.int32)[which]

    def fill(self, numbers: NDArray[np.int32], k: NDArray[np.int32], best: Best, window: WindowArrays) -> None:
        """Hold what was found; `k` is that of every subscription, by number."""
        wanted = self.wanted(k[numbers])
        n_filled = count_near(best.start, best.n, best.score, k[numbers], self.kind.least_share)
        is_complete = (n_filled == best.n) & (best.n < wanted)
        fill_many(
            self.layout(), window, k, numbers, best.start, n_filled, is_complete, best.number, best.score, self.kind.is_banded
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**self._rows.used(), **self.kept_by_cut.used(), **{name: column.used for name, column in self._entries.items()}}
