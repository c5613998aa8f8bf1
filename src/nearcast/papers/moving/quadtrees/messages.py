"""The messages' side of a moving quadtree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import resized
from nearcast.moving.index import nowhere
from nearcast.moving.live_messages import LiveMessages
from nearcast.papers.moving.grid_lists.keyword_grid import GridSide, Postings, Shape
from nearcast.papers.moving.grid_lists.layout import WANTED_FIELDS, GridArrays
from nearcast.papers.moving.quadtrees.kernels.messages import post_deeper, post_messages

# Lists are found by the code of a cell, which tells the depth too: the side of a grid plays no part.
_SHAPE = Shape(side=1, most_cells=1, is_space_first=True, smallest_grid=0)


class MessageCells:
    """Each message under all its keywords, in the root cell and at every depth at which its keyword has clauses."""

    def __init__(self, max_depth: int) -> None:
        self._max_depth = max_depth
        self._side = GridSide(_SHAPE)
        self._frame: NDArray[np.float64] = np.zeros(6)
        self.depths: NDArray[np.int32] = np.zeros(0, np.int32)
        """By owner, a bit for each depth at which its messages stand, besides the root cell."""

    @property
    def _grid(self) -> tuple[NDArray[np.float64], int]:
        return self._frame, self._max_depth

    @property
    def lists(self) -> GridArrays:
        return self._side.lists

    def build(self, messages: LiveMessages, frame: NDArray[np.float64], depths: NDArray[np.int32]) -> None:
        """Forget everything and post the living; `depths` has a bit for each depth at which an owner has clauses."""
        none = np.zeros(0, np.int32)
        self._side.build(Postings(none, none, nowhere(0)), frame)
        self._frame, self.depths = frame, depths.copy()
        self.store(messages, messages.slots())

    def store(self, messages: LiveMessages, slots: NDArray[np.int32]) -> None:
        first, wanted = 0, np.zeros(WANTED_FIELDS, np.int64)
        while True:
            first = post_messages(self.lists, self._grid, self.depths, messages.layout(), slots, first, wanted)
            if first == len(slots):
                return
            self._side.grow(wanted)

    def deepen(self, messages: LiveMessages, owners: NDArray[np.int64], depths: NDArray[np.int32]) -> None:
        """Post the messages of (distinct) owners at the depths that they have clauses at by now."""
        self.depths = resized(self.depths, int(owners.max(initial=-1)) + 1)
        for at in np.flatnonzero(depths & ~self.depths[owners]).tolist():
            owner = int(owners[at])
            new = int(depths[at]) & ~int(self.depths[owner])
            for depth in range(new.bit_length()):
                if (new >> depth) & 1:
                    self._post_deeper(messages, owner, depth)
            self.depths[owner] |= new

    def _post_deeper(self, messages: LiveMessages, owner: int, depth: int) -> None:
        first, wanted = 0, np.zeros(WANTED_FIELDS, np.int64)
        while True:
            first, is_done = post_deeper(self.lists, self._grid, owner, depth, messages.layout(), first, wanted)
            if is_done:
                return
            self._side.grow(wanted)

    def stats(self) -> dict[str, int | float]:
        return self._side.stats("message")

    @property
    def n_bytes(self) -> int:
        return self._side.n_bytes + self.depths.nbytes

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"depths": self.depths, "places_frame": self._frame, **self._side.arrays()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.depths, self._frame = arrays["depths"], arrays["places_frame"]
        self._side.restore(arrays)
