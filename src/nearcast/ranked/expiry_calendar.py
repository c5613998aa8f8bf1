"""Who waits for the end of which message: chunks of subscriptions by place of the window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import GrowingArray, aligned_empty
from nearcast.ranked.kernels.expiry_calendar import has_chunks, wait_for_oldest
from nearcast.ranked.kernels.layouts import WindowArrays
from nearcast.ranked.kernels.list_layout import CHUNK, MOST_PUT_OFF, NO_CHUNK, USED, EndArrays, FloorArrays

_FIRST_CHUNKS = 64


class ExpiryCalendar:
    """Lists of chunks by place of the window."""

    def __init__(self, given: Mapping[str, NDArray[Any]] | None = None) -> None:
        self._head = np.array([NO_CHUNK, 0, 0], np.int64) if given is None else given["head"]
        self._first = GrowingArray(np.int32, None if given is None else given["first"])
        self._chunk = aligned_empty(_FIRST_CHUNKS * CHUNK, np.int32) if given is None else given["chunk"]

    def grow(self, n_places: int) -> None:
        if n_places > self._first.n:
            self._first.extend(NO_CHUNK, n_places - self._first.n)

    def give_room(self) -> None:
        """Half as many chunks more, if there are not enough left for all that are let wait together."""
        if has_chunks(self._head, self._chunk, MOST_PUT_OFF + 1):
            return
        n_more = max(_FIRST_CHUNKS, len(self._chunk) // CHUNK // 2)
        grown = aligned_empty(len(self._chunk) + n_more * CHUNK, np.int32)
        grown[: len(self._chunk)] = self._chunk
        self._chunk = grown

    def layout(self) -> EndArrays:
        return EndArrays(self._head, self._first.used, self._chunk)

    def wait(self, numbers: NDArray[np.int32], buffers: FloorArrays, window: WindowArrays, living: tuple[int, bool]) -> None:
        """Let subscriptions wait at the oldest of their best messages."""
        done = 0
        while True:
            done = wait_for_oldest(self.layout(), buffers, window, numbers, done, *living)
            if done == len(numbers):
                return
            self.give_room()

    def clear(self, n_places: int) -> None:
        """Places at the beginning of the window are gone; nobody waits there."""
        self._first.drop(n_places)

    @property
    def n_bytes(self) -> int:
        return self._first.n_bytes + self._chunk.nbytes

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"head": self._head, "first": self._first.used, "chunk": self._chunk[: int(self._head[USED]) * CHUNK]}
