"""Growing tables from words, or numbers, to dense ids: whole columns at a time, one hash look-up per element."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.arrow import word_column
from nearcast.kernels import hashing, word_table
from nearcast.kernels.hashing import NumberTableArrays
from nearcast.kernels.word_table import SLOT_WIDTH, WordTableArrays

_FIRST_SLOTS = 64
# One in this many ids is spare.
_SPARE = 8
# A table of numbers grows at most to this many times its size.
_MOST_GROWTH = 8
_ANY_LENGTH = 1 << 40


class WordTable:
    """Words to ids 0, 1, 2, … in order of arrival. With `fold`, ASCII capitals are the same as small letters."""

    def __init__(self, fold: bool) -> None:
        self._fold = fold
        self.n = 0
        self._arrays = WordTableArrays(
            np.full(_FIRST_SLOTS * SLOT_WIDTH, word_table.EMPTY_SLOT, np.int64),
            np.zeros(_FIRST_SLOTS + 1, np.int64),
            np.zeros(16 * _FIRST_SLOTS, np.uint8),
        )

    def find(self, words: pa.Array) -> NDArray[np.int32]:
        """The id of each word; ABSENT or ABSENT_NOT_ASCII where it is unknown."""
        return self.find_checked(words, _ANY_LENGTH)[0]

    def find_checked(self, words: pa.Array, longest: int) -> tuple[NDArray[np.int32], int]:
        """As `find`, and how many words are null, empty or longer than `longest` bytes."""
        ids = np.empty(len(words), np.int32)
        return ids, int(word_table.find_words(self._arrays, word_column(words), self._fold, longest, ids))

    def add(self, words: pa.Array) -> NDArray[np.int32]:
        """The id of each word, new ones included."""
        ids = np.empty(len(words), np.int32)
        column = word_column(words)
        position = 0
        while True:
            self.n, position = word_table.add_words(self._arrays, self.n, column, self._fold, position, ids)
            if position == len(ids):
                return ids
            self._grow(int(column.start[position + 1] - column.start[position]))

    def _grow(self, n_more_bytes: int) -> None:
        old = self._arrays
        n_bytes = int(old.word_start[self.n])
        starts, data, slots = old.word_start, old.word_bytes, old.slot
        if n_bytes + n_more_bytes > len(data):
            data = np.zeros(2 * len(data) + n_more_bytes, np.uint8)
            data[:n_bytes] = old.word_bytes[:n_bytes]
        if self.n + 1 >= len(starts):
            starts = np.zeros(2 * len(starts), np.int64)
            starts[: self.n + 1] = old.word_start[: self.n + 1]
        if 4 * (self.n + 1) > 3 * (len(slots) // SLOT_WIDTH):
            slots = np.full(2 * len(slots), word_table.EMPTY_SLOT, np.int64)
            self._arrays = WordTableArrays(slots, starts, data)
            word_table.fill_slots(self._arrays, self.n)
        self._arrays = WordTableArrays(slots, starts, data)

    def values(self) -> pa.Array:
        """Every known word in the order of ids, without a copy: known words are never written again."""
        starts = self._arrays.word_start[: self.n + 1]
        data = self._arrays.word_bytes[: int(starts[-1])]
        return pa.LargeStringArray.from_buffers(self.n, pa.py_buffer(starts), pa.py_buffer(data))

    def value(self, number: int) -> str:
        start, stop = self._arrays.word_start[number], self._arrays.word_start[number + 1]
        return self._arrays.word_bytes[start:stop].tobytes().decode("utf-8")

    def arrays(self) -> dict[str, NDArray[Any]]:
        starts = self._arrays.word_start[: self.n + 1]
        return {"slot": self._arrays.slot, "word_start": starts, "word_bytes": self._arrays.word_bytes[: int(starts[-1])]}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], fold: bool) -> WordTable:
        table = cls(fold)
        table.n = len(arrays["word_start"]) - 1
        table._arrays = WordTableArrays(arrays["slot"], arrays["word_start"], arrays["word_bytes"])
        return table

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for array in self._arrays)


class NumberTable:
    """Numbers to ids 0, 1, 2, … in order of arrival."""

    def __init__(self) -> None:
        self.n = 0
        self.is_counting = True
        """Whether every number is the first one plus its id: then ids need no look-up to become numbers."""
        self._arrays = NumberTableArrays(np.full(_FIRST_SLOTS, hashing.EMPTY_SLOT, np.int32), np.zeros(_FIRST_SLOTS, np.int64))

    def find(self, numbers: NDArray[np.int64]) -> NDArray[np.int32]:
        """The id of each number, or ABSENT."""
        ids = np.empty(len(numbers), np.int32)
        hashing.find_numbers(self._arrays, numbers, ids)
        return ids

    def add(self, numbers: NDArray[np.int64]) -> NDArray[np.int32]:
        """The id of each number, new ones included."""
        ids = np.empty(len(numbers), np.int32)
        n_before, position = self.n, 0
        while True:
            self.n, position = hashing.add_numbers(self._arrays, self.n, numbers, position, ids)
            if position == len(ids):
                break
            self._grow(len(ids) - position)
        self.is_counting = self.is_counting and bool(hashing.counts_up(self._arrays.number, n_before, self.n))
        return ids

    def _grow(self, n_more: int) -> None:
        slots, known = self._arrays
        # Most of a long column of ids is new, but little of one of keywords: grow for the rest of the column, within limits.
        n_more = min(n_more, _MOST_GROWTH * self.n + _FIRST_SLOTS)
        n_known = self.n + n_more
        if self.n >= len(known):
            known = np.empty(n_known + n_known // _SPARE + _FIRST_SLOTS, np.int64)
            known[: self.n] = self._arrays.number[: self.n]
        if 4 * (self.n + 1) > 3 * len(slots):
            n_slots = 2 * len(slots)
            while 3 * n_slots < 4 * (self.n + n_more):
                n_slots *= 2
            slots = np.full(n_slots, hashing.EMPTY_SLOT, np.int32)
            hashing.fill_slots(NumberTableArrays(slots, known), self.n)
        self._arrays = NumberTableArrays(slots, known)

    def layout(self) -> NumberTableArrays:
        """The table, for kernels that look up numbers themselves."""
        return self._arrays

    def values(self) -> NDArray[np.int64]:
        """Every known number in the order of ids."""
        return self._arrays.number[: self.n]

    def value(self, number: int) -> int:
        return int(self._arrays.number[number])

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"slot": self._arrays.slot, "number": self.values(), "is_counting": np.array([self.is_counting], np.uint8)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> NumberTable:
        table = cls()
        table.n = len(arrays["number"])
        table._arrays = NumberTableArrays(arrays["slot"], arrays["number"])
        table.is_counting = bool(arrays["is_counting"][0])
        return table

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for array in self._arrays)
