"""Arrays that grow, and arrays that begin at a cache line.

`GrowingArray` is for data that is appended all the time. `resized` and `resized_fields` make larger copies of arrays whose
holder decides when they grow. Arrays that are read in whole cache lines begin at one (`aligned_*`); NumPy's own begin
16 bytes after one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

LINE_BYTES = 64

# One in this many elements is spare: a large array is copied this many times while it doubles.
_SPARE = 8
# Memory of more than this many times the elements in use is given back.
_MOST_SPARE = 4

Arrays = TypeVar("Arrays", bound=tuple[Any, ...])


def aligned_empty(n: int, dtype: Any) -> NDArray[Any]:
    """An array of `n` elements; its pages are not touched."""
    size = np.dtype(dtype).itemsize
    return _from_line(np.empty(n + LINE_BYTES // size, dtype))[:n]


def aligned_zeros(n: int, dtype: Any) -> NDArray[Any]:
    size = np.dtype(dtype).itemsize
    return _from_line(np.zeros(n + LINE_BYTES // size, dtype))[:n]


def aligned_copy(array: NDArray[Any]) -> NDArray[Any]:
    copied = aligned_empty(array.size, array.dtype).reshape(array.shape)
    copied[...] = array
    return copied


def _from_line(whole: NDArray[Any]) -> NDArray[Any]:
    return whole[-whole.ctypes.data % LINE_BYTES // whole.itemsize :]


def resized(
    array: NDArray[Any],
    n: int,
    fill: float | None = 0,
    used: int | None = None,
    needed: int | None = None,
    is_aligned: bool = False,
) -> NDArray[Any]:
    """An array with at least `needed` elements in its last dimension, which are `n` by default.

    It is the array itself if that is large enough, else a new one of `n` elements: the first `used` ones (by default all) are
    copied, the rest is `fill`, or not written if `fill` is None.
    """
    length = array.shape[-1]
    if (n if needed is None else needed) <= length:
        return array
    n_copied = length if used is None else used
    larger = aligned_empty(n, array.dtype) if is_aligned else np.empty((*array.shape[:-1], n), array.dtype)
    larger[..., :n_copied] = array[..., :n_copied]
    if fill is not None:
        larger[..., n_copied:] = fill
    return larger


def resized_fields(arrays: Arrays, n: Mapping[str, int], fill: float | None = 0, needed: int | None = None) -> Arrays:
    """The same NamedTuple with these fields `resized`."""
    fields = {name: resized(getattr(arrays, name), size, fill, needed=needed) for name, size in n.items()}
    replaced: Arrays = arrays._replace(**fields)  # type: ignore[attr-defined]
    return replaced


def doubled(array: NDArray[Any], used: int) -> NDArray[Any]:
    """An array of twice the length that begins with the first `used` elements; the rest is not written."""
    return resized(array, 2 * len(array), None, used)


class GrowingArray:
    """A one-dimensional array with spare capacity; `memory` is the whole allocation, `used` the part in use.

    Capacity that was never in use takes no memory: the system gives pages when they are written to.
    """

    __slots__ = ("_most", "memory", "n")

    def __init__(self, dtype: Any, used: NDArray[Any] | None = None) -> None:
        self.memory: NDArray[Any] = np.empty(0, dtype) if used is None else np.ascontiguousarray(used, dtype)
        self.n = self._most = len(self.memory)

    @property
    def n_bytes(self) -> int:
        """Memory that is, or was, in use."""
        return self._most * self.memory.itemsize

    @property
    def used(self) -> NDArray[Any]:
        return self.memory[: self.n]

    def reserve(self, n: int) -> None:
        """Have a capacity of at least `n` elements."""
        if n > len(self.memory):
            # New memory rather than resize(): a concurrent reader keeps its view of the old one. Spare capacity is not touched.
            self.memory, self._most = resized(self.memory, n + n // _SPARE + 16, None, self.n, is_aligned=True), self.n

    def drop(self, n: int) -> None:
        """Drop the first `n` elements. The rest moves to the front, into memory of its own size if most would be spare."""
        n_left = self.n - n
        if _MOST_SPARE * n_left < len(self.memory):
            self.memory, self._most = aligned_copy(self.memory[n : self.n]), n_left
        else:
            # In steps that do not overlap, or NumPy would copy everything aside first.
            for at in range(0, n_left if n else 0, max(1, n)):
                end = min(at + n, n_left)
                self.memory[at:end] = self.memory[at + n : end + n]
        self.n = n_left

    def extend(self, values: NDArray[Any] | int | float, n: int = 1) -> None:
        """Append an array, or one value `n` times."""
        count = len(values) if isinstance(values, np.ndarray) else n
        self.reserve(self.n + count)
        self.memory[self.n : self.n + count] = values
        self.n += count
        self._most = max(self._most, self.n)


class GrowingColumns:
    """Named columns of one length; a new row has the default of each column."""

    def __init__(
        self, columns: Mapping[str, tuple[type[np.generic], int]], saved: Mapping[str, NDArray[Any]] | None = None
    ) -> None:
        self._default = {name: value for name, (_, value) in columns.items()}
        self._columns = {name: GrowingArray(dtype, (saved or {}).get(name)) for name, (dtype, _) in columns.items()}

    def grow(self, n: int) -> None:
        """Have at least `n` rows."""
        for name, column in self._columns.items():
            if n > column.n:
                column.extend(self._default[name], n - column.n)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name].used

    def used(self) -> dict[str, NDArray[Any]]:
        return {name: column.used for name, column in self._columns.items()}

    @property
    def n_bytes(self) -> int:
        return sum(column.memory.nbytes for column in self._columns.values())
