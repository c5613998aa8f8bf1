"""The messages that are alive, in slots that are used again, with their ids and the clock that ends them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.arrow import numbers, word_column
from nearcast.columns.growing import GrowingArray, resized
from nearcast.columns.identifiers import id_kind
from nearcast.columns.messages import MessageBatch
from nearcast.kernels.layouts import MessageArrays
from nearcast.kernels.pools import N_CLASSES, NO_CHUNK
from nearcast.moving.kernels import live_messages as kernels
from nearcast.moving.kernels.live_messages import ABSENT, FREE, IdArrays, LiveArrays, forget_words, reserve_words, words_room

_FEWEST = 64
_NO_TEXTS = (np.empty(0, np.int64), np.empty(0, np.uint8))
_FIRST_ROOM = 16
# What has a value for every slot.
_BY_SLOT = tuple(name for name in LiveArrays._fields if name not in ("keyword", "alive_bits"))


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


class LiveMessages:
    """Every message that is alive, and those that died and may still be named by an index (`release` frees their slots).

    `now` is the largest time seen, minus infinity before the first.
    """

    def __init__(self) -> None:
        self.now = -math.inf
        self.n_alive = 0
        self._n_slots = 0
        self._ids = LiveIds()
        self._arrays = _empty()
        # Slots by when they expire: in order, the first `_n_gone` being gone already; and a heap of those out of order.
        self._queue, self._n_gone = GrowingArray(np.int32), 0
        self._heap = GrowingArray(np.int32)
        self._free_words = np.full(N_CLASSES, NO_CHUNK, np.int32)
        self._n_words = np.zeros(1, np.int64)
        self._free = GrowingArray(np.int32)
        # Slots that died, in the order of their death; the first of them were dead when `mark_dead` was called.
        self._dead = GrowingArray(np.int32)
        self._n_marked = 0

    # --- what is there -----------------------------------------------------------------------------------------------

    @property
    def ids(self) -> LiveIds:
        """The ids by slot, also of slots that died and were not released; only living ones are found."""
        return self._ids

    @property
    def n_slots(self) -> int:
        """Slots given out, dead ones included."""
        return self._n_slots

    @property
    def n_dead(self) -> int:
        """Slots that died and were not released."""
        return self._dead.n

    def layout(self) -> LiveArrays:
        """What indexes read; arrays are longer than the slots in use, and what is beyond is not alive."""
        return self._arrays

    def slots(self) -> NDArray[np.int32]:
        """The slots of every living message."""
        return np.flatnonzero(self._arrays.is_alive).astype(np.int32)

    def batch(self, slots: NDArray[np.int32], n_keywords: int) -> MessageBatch:
        """The messages at these slots, as they are matched; row i of it is slot i of `slots`."""
        arrays = self._arrays
        start = np.concatenate([[0], np.cumsum(arrays.n_keywords[slots], dtype=np.int64)])
        member = np.empty(int(start[-1]), np.int32)
        kernels.copy_words(arrays.keyword, arrays.keyword_first, arrays.n_keywords, slots, start, member)
        sides = (arrays.x0[slots], arrays.y0[slots], arrays.x1[slots], arrays.y1[slots])
        return MessageBatch(MessageArrays(start, member, *sides), np.arange(len(slots), dtype=np.int64), n_keywords)

    # --- changes -----------------------------------------------------------------------------------------------------

    def add(self, ids: pa.Array, batch: MessageBatch, expires: NDArray[np.float64]) -> NDArray[np.int32]:
        """Take in messages that are alive now, with distinct ids that no living message has; returns their slots."""
        slots = self._take_slots(len(batch))
        given, own = batch.arrays, self._arrays
        wanted = int(self._n_words[0]) + int(kernels.words_room(given.keyword_start))
        if wanted > len(own.keyword):
            own = self._arrays = own._replace(keyword=_with_spare(own.keyword, wanted))
        kernels.keep_words(
            own.keyword,
            own.keyword_first,
            own.n_keywords,
            self._free_words,
            self._n_words,
            given.keyword_start,
            given.keyword,
            slots,
        )
        own.x0[slots], own.y0[slots], own.x1[slots], own.y1[slots] = given.x0, given.y0, given.x1, given.y1
        own.expires[slots] = expires
        kernels.mark_alive(own.is_alive, own.alive_bits, slots, 1)
        self.n_alive += len(slots)
        self._ids.enter(ids, slots)
        self._note_mortal(slots[np.isfinite(expires)])
        return slots

    def _note_mortal(self, slots: NDArray[np.int32]) -> None:
        if self._n_gone > self._queue.n // 2:
            self._queue = GrowingArray(np.int32, self._queue.used[self._n_gone :].copy())
            self._n_gone = 0
        queue, heap, n_queued = self._queue, self._heap, self._queue.n
        queue.reserve(n_queued + len(slots))
        heap.reserve(heap.n + len(slots))
        # What is gone may have other messages in its slots now.
        n_left, heap.n = kernels.push_expiry(
            queue.memory[self._n_gone :], n_queued - self._n_gone, heap.memory, heap.n, self._arrays.expires, slots
        )
        queue.n = self._n_gone + int(n_left)

    def due(self, now: float) -> NDArray[np.int32]:
        """Set the clock forward and end what is due; returns the slots that died, in no order."""
        self.now = max(self.now, now)
        queue, heap = self._queue, self._heap
        out = np.empty(queue.n - self._n_gone + heap.n, np.int32)
        self._n_gone, heap.n, n_out = kernels.pop_expired(
            queue.memory, self._n_gone, queue.n, heap.memory, heap.n, self._arrays.expires, self.now, out
        )
        gone = out[:n_out]
        if n_out:
            kernels.mark_alive(self._arrays.is_alive, self._arrays.alive_bits, gone, 0)
            self._ids.drop(gone)
            self.n_alive -= len(gone)
            self._dead.extend(gone)
        return gone

    def mark_dead(self) -> None:
        """Remember which are dead now, for `release_marked`."""
        self._n_marked = self._dead.n

    def release_marked(self) -> None:
        """Free the slots of those that were dead at the last `mark_dead`: no index names them any more."""
        self._release(self._n_marked)

    def release(self) -> None:
        """Free the slots of all the dead: no index names them any more."""
        self._release(self._dead.n)

    def _release(self, n: int) -> None:
        slots, kept = self._dead.used[:n].copy(), self._dead.used[n:].copy()
        arrays = self._arrays
        kernels.forget_words(arrays.keyword, arrays.keyword_first, arrays.n_keywords, self._free_words, slots)
        self._ids.forget(slots)
        self._free.extend(slots)
        self._dead = GrowingArray(np.int32, kept)
        self._n_marked = max(0, self._n_marked - n)

    def _take_slots(self, n: int) -> NDArray[np.int32]:
        n_again = min(n, self._free.n)
        again = self._free.used[self._free.n - n_again :]
        self._free.n -= n_again
        new = np.arange(self._n_slots, self._n_slots + n - n_again, dtype=np.int32)
        self._n_slots += len(new)
        if self._n_slots > len(self._arrays.is_alive):
            longer = {name: _with_spare(getattr(self._arrays, name), self._n_slots) for name in _BY_SLOT}
            self._arrays = self._arrays._replace(**longer, alive_bits=_packed(longer["is_alive"]))
            self._ids.widen(len(self._arrays.is_alive))
        return np.concatenate([again, new])

    # --- on disk -----------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything but the clock; the slots of the dead are kept as they are."""
        used = {name: getattr(self._arrays, name)[: self._n_slots] for name in _BY_SLOT}
        return {
            **used,
            "keyword": self._arrays.keyword[: int(self._n_words[0])],
            "queue": self._queue.used[self._n_gone :],
            "heap": self._heap.used,
            "free": self._free.used,
            "dead": self._dead.used,
            "free_words": self._free_words,
            "counts": np.array([self._n_words[0], self._n_marked], np.int64),
            **self._ids.arrays(),
        }

    @classmethod
    def from_arrays(cls, now: float, kind: str | None, arrays: Mapping[str, NDArray[Any]]) -> LiveMessages:
        store = cls()
        store.now = now
        # Copied: the clock changes many of them before long.
        own = {name: np.array(arrays[name]) for name in (*_BY_SLOT, "keyword")}
        store._arrays = LiveArrays(**own, alive_bits=_packed(own["is_alive"]))
        store._n_slots = len(store._arrays.is_alive)
        store._ids = LiveIds.from_arrays(kind, arrays)
        for name in ("queue", "heap", "free", "dead"):
            setattr(store, f"_{name}", GrowingArray(np.int32, np.array(arrays[name])))
        store._free_words, store._n_words = np.array(arrays["free_words"]), arrays["counts"][:1].copy()
        store._n_marked = int(arrays["counts"][1])
        store.n_alive = int(store._arrays.is_alive.sum())
        return store

    @property
    def n_bytes(self) -> int:
        lists = (self._queue, self._heap, self._free, self._dead)
        return sum(array.nbytes for array in self._arrays) + sum(one.memory.nbytes for one in lists) + self._ids.n_bytes


def _empty() -> LiveArrays:
    none, whole = np.zeros(0), np.zeros(0, np.int32)
    flags = np.zeros(0, np.uint8)
    return LiveArrays(np.zeros(0, np.int64), whole, whole, none, none, none, none, none, flags, _packed(flags))


def _packed(is_alive: NDArray[np.uint8]) -> NDArray[np.uint32]:
    packed = np.packbits(is_alive, bitorder="little")
    return np.pad(packed, (0, -len(packed) % 4)).view("<u4")


def _with_spare(array: NDArray[Any], n: int) -> NDArray[Any]:
    """An array of at least `n` elements; a quarter is spare when it must grow."""
    return resized(array, max(n + n // 4, _FIRST_ROOM), needed=n)
