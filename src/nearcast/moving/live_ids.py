"""Ids of the messages that live, int64 or string, by slot and back: they come and go, and one kind is kept to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.arrow import numbers, word_column
from nearcast.columns.identifiers import id_kind
from nearcast.kernels.pools import N_CLASSES, NO_CHUNK
from nearcast.moving.kernels import live_ids as kernels
from nearcast.moving.kernels.live_ids import ABSENT, FREE, IdArrays
from nearcast.moving.kernels.live_messages import forget_words, reserve_words, words_room

_FEWEST = 64
_NO_TEXTS = (np.empty(0, np.int64), np.empty(0, np.uint8))


class LiveIds:
    """Ids by slot; only those that were entered and not dropped are found. The first id decides the kind."""

    def __init__(self) -> None:
        self.kind: str | None = None
        self._n = 0
        self._table = _free(_FEWEST)
        none = np.zeros(0, np.int64)
        self._arrays = IdArrays(none, none, np.zeros(0, np.int32), np.zeros(0, np.int32))
        self._free_texts = np.full(N_CLASSES, NO_CHUNK, np.int32)
        self._n_texts = np.zeros(1, np.int64)

    # --- columns of ids ----------------------------------------------------------------------------------------------

    def find(self, ids: pa.Array) -> NDArray[np.int32]:
        """The slot of each id, or ABSENT."""
        found = np.full(len(ids), ABSENT, np.int32)
        if self._n:
            key, texts = _keys(ids)
            kernels.find_ids(self._table, self._arrays, key, *texts, found)
        return found

    def find_among(self, ids: pa.Array, slots: NDArray[np.int32]) -> NDArray[np.int32]:
        """The slot of each id among these slots, which need not be entered; ABSENT where it is not."""
        found = np.full(len(ids), ABSENT, np.int32)
        if len(slots) == 0 or len(ids) == 0:
            return found
        key, texts = _keys(ids)
        own = self._arrays.key[slots]
        if own.max() < key.min() or key.max() < own.min():
            return found
        table = _free(2 * len(slots))
        kernels.enter_slots(table, self._arrays.key, slots)
        kernels.find_ids(table, self._arrays, key, *texts, found)
        return found

    def is_repeated(self, ids: pa.Array) -> NDArray[np.bool_]:
        """Which ids came before in the same column."""
        key, texts = _keys(ids)
        is_repeated = np.zeros(len(key), np.bool_)
        if len(key) > 1 and not (key[1:] > key[:-1]).all():
            kernels.mark_repeated(_free(2 * len(key)), key, *texts, is_repeated)
        return is_repeated

    def take(self, slots: NDArray[np.int32]) -> pa.Array:
        """The ids at these slots as a column."""
        if self.kind != "string":
            return pa.array(self._arrays.key[slots])
        start = np.concatenate([[0], np.cumsum(self._arrays.text_length[slots], dtype=np.int64)])
        data = np.empty(int(start[-1]), np.uint8)
        _, first, length, text = self._arrays
        kernels.copy_texts(text, first, length, slots, start, data)
        buffers = (pa.py_buffer(start), pa.py_buffer(data))
        return pa.LargeStringArray.from_buffers(len(slots), *buffers).cast(pa.string())

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The numbers by slot, where ids are numbers."""
        return self._arrays.key

    # --- changes -----------------------------------------------------------------------------------------------------

    def widen(self, n_slots: int) -> None:
        """Make room for ids at so many slots."""
        if n_slots > len(self._arrays.key):
            key, first, length, text = self._arrays
            more = (0, n_slots - len(key))
            self._arrays = IdArrays(np.pad(key, more), np.pad(first, more), np.pad(length, more), text)

    def enter(self, ids: pa.Array, slots: NDArray[np.int32]) -> None:
        """Give slots ids that are not known."""
        if len(slots) == 0:
            return
        self.kind = id_kind(ids.type)
        key, (start, data) = _keys(ids)
        self._arrays.key[slots] = key
        if self.kind == "string":
            self._keep_texts(start, data, slots)
        self._n += len(slots)
        if 2 * self._n > len(self._table):
            old = self._table[self._table != FREE]
            self._table = _free(4 * self._n)
            kernels.enter_slots(self._table, self._arrays.key, old)
        kernels.enter_slots(self._table, self._arrays.key, slots)

    def _keep_texts(self, start: NDArray[np.int64], data: NDArray[np.uint8], slots: NDArray[np.int32]) -> None:
        key, first, length, text = self._arrays
        sizes = np.concatenate([[0], np.cumsum((np.diff(start) + 3) // 4)])
        wanted = int(self._n_texts[0]) + int(words_room(sizes))
        if wanted > len(text):
            text = np.pad(text, (0, wanted + wanted // 2 - len(text)))
            self._arrays = IdArrays(key, first, length, text)
        places = np.empty(len(slots), np.int64)
        reserve_words(text, self._free_texts, self._n_texts, sizes, places)
        kernels.keep_texts(text, first, length, start, data, places, slots)

    def drop(self, slots: NDArray[np.int32]) -> None:
        """Find the ids of these slots no more; they are still told by `take`."""
        kernels.drop_slots(self._table, self._arrays.key, slots)
        self._n -= len(slots)

    def forget(self, slots: NDArray[np.int32]) -> None:
        """Free what dropped ids at these slots take."""
        if self.kind == "string":
            _, first, length, text = self._arrays
            n_words = ((length[slots].astype(np.int64) + 3) // 4).astype(np.int32)
            sizes = np.zeros(len(length), np.int32)
            sizes[slots] = n_words
            forget_words(text, first, sizes, self._free_texts, slots)
            length[slots] = 0

    # --- on disk -----------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        key, first, length, text = self._arrays
        return {
            "id_key": key,
            "id_text_first": first,
            "id_text_length": length,
            "id_text": text,
            "id_free_texts": self._free_texts,
            "id_n_texts": self._n_texts,
            "id_table": self._table,
        }

    @classmethod
    def from_arrays(cls, kind: str | None, arrays: Mapping[str, NDArray[Any]]) -> LiveIds:
        # Copied: the clock changes much of it before long.
        given = {name: np.array(array) for name, array in arrays.items() if name.startswith("id_")}
        ids = cls()
        ids.kind = kind
        ids._arrays = IdArrays(*(given[f"id_{name}"] for name in IdArrays._fields))
        ids._free_texts, ids._n_texts, ids._table = given["id_free_texts"], given["id_n_texts"], given["id_table"]
        ids._n = int((ids._table != FREE).sum())
        return ids

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for array in self._arrays) + self._table.nbytes


def _free(n: int) -> NDArray[np.int32]:
    """An empty table of a power of two of slots, at least `n`."""
    return np.full(1 << max(6, (n - 1).bit_length()), FREE, np.int32)


def _keys(ids: pa.Array) -> tuple[NDArray[np.int64], tuple[NDArray[np.int64], NDArray[np.uint8]]]:
    """The key of each id, and the texts behind them."""
    if id_kind(ids.type) == "int":
        return numbers(ids, np.int64), _NO_TEXTS
    column = word_column(ids)
    key = np.empty(len(ids), np.int64)
    kernels.text_keys(column.start, column.data, key)
    return key, (column.start, column.data)
