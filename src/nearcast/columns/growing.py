"""Arrays that grow at their end with some room to spare, so that appending is cheap."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.aligned import aligned_copy, aligned_empty

# One part in so many is spare: a large array is copied so many times while it grows to twice its size.
_SPARE = 8
# Memory that is more than so many times as large as what is in it is given back.
_MOST_SPARE = 4


class GrowingArray:
    """A one-dimensional array with spare room; `room` is the whole allocation, `used` the part in use.

    Room that was never in use takes no memory: the system gives pages when they are written to.
    """

    __slots__ = ("_most", "n", "room")

    def __init__(self, dtype: Any, used: NDArray[Any] | None = None) -> None:
        self.room: NDArray[Any] = np.empty(0, dtype) if used is None else np.ascontiguousarray(used, dtype)
        self.n = self._most = len(self.room)

    @property
    def n_bytes(self) -> int:
        """Memory that is, or was, in use."""
        return self._most * self.room.itemsize

    @property
    def used(self) -> NDArray[Any]:
        return self.room[: self.n]

    def reserve(self, n: int) -> None:
        """Make room for `n` elements in all."""
        if n > len(self.room):
            # New memory rather than resize(): a reader beside us keeps its view of the old one. What is spare is not touched.
            grown = aligned_empty(n + n // _SPARE + 16, self.room.dtype)
            grown[: self.n] = self.used
            self.room, self._most = grown, self.n

    def drop(self, n: int) -> None:
        """Forget the first `n` elements; what is in use moves to the front, in memory of its own size if most is spare then."""
        n_left = self.n - n
        if _MOST_SPARE * n_left < len(self.room):
            self.room, self._most = aligned_copy(self.room[n : self.n]), n_left
        else:
            # In steps that do not overlap, or NumPy would copy everything aside first.
            for at in range(0, n_left if n else 0, max(1, n)):
                end = min(at + n, n_left)
                self.room[at:end] = self.room[at + n : end + n]
        self.n = n_left

    def extend(self, values: NDArray[Any] | int | float, n: int = 1) -> None:
        """Append an array, or one value `n` times."""
        count = len(values) if isinstance(values, np.ndarray) else n
        self.reserve(self.n + count)
        self.room[self.n : self.n + count] = values
        self.n += count
        self._most = max(self._most, self.n)
