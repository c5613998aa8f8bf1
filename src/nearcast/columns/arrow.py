"""Arrow buffers of string, list and number columns as NumPy arrays, and back, without copies of the data."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.kernels.word_table import WordColumn


class _Borrowed:
    """The memory of a buffer for NumPy: writable, and alive as long as any view of it."""

    __slots__ = ("__array_interface__", "_buffer")

    def __init__(self, buffer: pa.Buffer) -> None:
        self._buffer = buffer
        self.__array_interface__ = {"version": 3, "shape": (buffer.size,), "typestr": "|u1", "data": (buffer.address, False)}


def array_of_buffer(buffer: pa.Buffer | None, dtype: Any) -> NDArray[Any]:
    """A buffer as a plain writable array. Nobody may write to it.

    A read-only array has another type for the compiler: every kernel would be compiled a second time.
    """
    if buffer is None or buffer.size == 0:
        return np.empty(0, dtype)
    whole: NDArray[np.uint8] = np.asarray(_Borrowed(buffer))
    size = np.dtype(dtype).itemsize
    return whole[: len(whole) // size * size].view(dtype)


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """A column of a table as one contiguous array."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def word_column(strings: pa.Array) -> WordColumn:
    """The buffers of a string array (its nulls are empty words)."""
    if not (pa.types.is_string(strings.type) or pa.types.is_large_string(strings.type)):
        strings = strings.cast(pa.large_string())
    if strings.null_count:
        strings = strings.fill_null("")
    offset_type = np.int64 if pa.types.is_large_string(strings.type) else np.int32
    _, offsets, data = strings.buffers()
    starts = array_of_buffer(offsets, offset_type)[strings.offset : strings.offset + len(strings) + 1].astype(np.int64)
    if len(starts) == 0:
        starts = np.zeros(1, np.int64)
    return WordColumn(starts, array_of_buffer(data, np.uint8))


def list_offsets(lists: pa.Array) -> NDArray[np.int64]:
    """Where each list begins in `lists.values`, and the end of the last one."""
    offset_type = np.int64 if pa.types.is_large_list(lists.type) else np.int32
    offsets = array_of_buffer(lists.buffers()[1], offset_type)[lists.offset : lists.offset + len(lists) + 1]
    return offsets.astype(np.int64) if len(offsets) else np.zeros(1, np.int64)


def numbers(column: pa.Array, dtype: Any) -> NDArray[Any]:
    """A numeric column as a contiguous, writable array of a type; nulls become 0."""
    if column.null_count:
        column = column.fill_null(0)
    values = array_of_buffer(column.buffers()[1], column.type.to_pandas_dtype())[column.offset : column.offset + len(column)]
    return np.ascontiguousarray(values, dtype)


def number_column(values: NDArray[Any]) -> pa.Array:
    """A contiguous array of integers as a column that shares its memory. `pa.array` would import pandas if it is installed."""
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def string_column(texts: Sequence[str]) -> pa.Array:
    """Texts as a column, without pandas, as above."""
    encoded = [text.encode() for text in texts]
    offsets = np.zeros(len(texts) + 1, np.int32)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded)))


# Memory of columns up to this length is reused. For each size, this many blocks are kept.
_LONGEST_KEPT = 1 << 20
_MOST_WAITING = 4
_SHORTEST_KEPT = 1 << 10
_waiting: dict[tuple[str, int], list[NDArray[Any]]] = {}


def number_buffer(n: int) -> tuple[NDArray[np.int64], pa.Array]:
    """An int64 array to fill, and the column that shares its memory."""
    values = used_again(n, np.int64)
    return values, number_column(values)


def used_again(n: int, dtype: Any) -> NDArray[Any]:
    """An array to fill, in reused memory unless it is large. The memory is free again when the array and all its views are
    gone.

    New pages cost more than writing to them.
    """
    if n > _LONGEST_KEPT:
        return np.empty(n, dtype)
    size = 1 << (max(n, _SHORTEST_KEPT) - 1).bit_length()
    waiting = _waiting.setdefault((np.dtype(dtype).str, size), [])
    try:
        block = waiting.pop()
    except IndexError:
        block = np.empty(size, dtype)
    # Views of the result keep `whole` alive; views of `block` would not.
    whole: NDArray[Any] = np.frombuffer(block.data, dtype)
    weakref.finalize(whole, _give_back, waiting, block).atexit = False
    return whole[:n]


def copy_used_again(values: NDArray[Any]) -> NDArray[Any]:
    copied = used_again(len(values), values.dtype)
    copied[:] = values
    return copied


def _give_back(waiting: list[NDArray[Any]], block: NDArray[Any]) -> None:
    if len(waiting) < _MOST_WAITING:
        waiting.append(block)
