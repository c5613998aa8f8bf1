"""Which subscriptions wait for the end of which message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import GrowingArray, GrowingColumns
from nearcast.papers.ranked.skyband.kernels.buffers import BufferArrays
from nearcast.papers.ranked.skyband.kernels.calendar import NOBODY, CalendarArrays, wait_for_oldest, wait_nowhere
from nearcast.ranked.kernels.layouts import WindowArrays

_COLUMNS: dict[str, tuple[type[np.generic], int]] = {
    "following": (np.int32, NOBODY),
    "preceding": (np.int32, NOBODY),
    "waits_at": (np.int64, NOBODY),
}


class Calendar:
    """Lists by place of the window, linked by subscription number."""

    def __init__(self, given: Mapping[str, NDArray[Any]] | None = None) -> None:
        self._rows = GrowingColumns(_COLUMNS, given)
        self._first = GrowingArray(np.int32, (given or {}).get("first"))

    def grow(self, n_subscribers: int, n_places: int) -> None:
        self._rows.grow(n_subscribers)
        if n_places > self._first.n:
            self._first.extend(NOBODY, n_places - self._first.n)

    def layout(self) -> CalendarArrays:
        return CalendarArrays(self._first.used, **self._rows.used())

    def wait(self, numbers: NDArray[np.int32], buffers: BufferArrays, window: WindowArrays) -> None:
        """Let subscriptions wait at the oldest message they hold."""
        wait_for_oldest(self.layout(), buffers, window, numbers)

    def forget(self, numbers: NDArray[np.int32], base: int) -> None:
        """Let subscriptions wait no longer."""
        for s in numbers.tolist():
            wait_nowhere(self.layout(), base, s)

    def clear(self, n_places: int) -> None:
        """Places at the beginning of the window are gone; nobody waits there."""
        self._first = GrowingArray(np.int32, self._first.used[n_places:].copy())

    @property
    def n_bytes(self) -> int:
        return self._rows.n_bytes + self._first.memory.nbytes

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**self._rows.used(), "first": self._first.used}
