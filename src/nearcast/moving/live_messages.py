"""The live messages and their ids, in slots that are reused, with the clock that ends them."""

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
from nearcast.moving.kernels.live_messages import (
    ABSENT,
    FREE,
    IdArrays,
    LiveArrays,
    free_keywords,
    keywords_capacity,
    reserve_keywords,
)

_FEWEST = 64
_NO_TEXTS = (np.empty(0, np.int64), np.empty(0, np.uint8))
_FIRST_CAPACITY = 16
# The arrays with one value for each slot.
_BY_SLOT = tuple(name for name in LiveArrays._fields if name not in ("keyword", "alive_bits"))


class LiveIds:
    """Ids by slot, numbers or strings: the first id decides which. `find` knows an id from `insert` to `remove`."""

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
        slots = np.full(len(ids), ABSENT, np.int32)
        if self._n:
            key, texts = _keys(ids)
            kernels.find_ids(self._table, self._arrays, key, *texts, slots)
        return slots

    def find_in_slots(self, ids: pa.Array, slots: NDArray[np.int32]) -> NDArray[np.int32]:
        """The slot of each id if it is one of `slots`, else ABSENT. Their ids may have been removed already."""
        slot_of_id = np.full(len(ids), ABSENT, np.int32)
        if len(slots) == 0 or len(ids) == 0:
            return slot_of_id
        key, texts = _keys(ids)
        key_at_slots = self._arrays.key[slots]
        if key_at_slots.max() < key.min() or key.max() < key_at_slots.min():
            return slot_of_id
        table = _free(2 * len(slots))
        kernels.insert_slots(table, self._arrays.key, slots)
        kernels.find_ids(table, self._arrays, key, *texts, slot_of_id)
        return slot_of_id

    def is_repeated(self, ids: pa.Array) -> NDArray[np.bool_]:
        """Which ids stand earlier in the same column too."""
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
        """The ids by slot, if ids are numbers."""
        return self._arrays.key

    # --- changes -----------------------------------------------------------------------------------------------------

    def reserve_slots(self, n_slots: int) -> None:
        """Make the arrays at least `n_slots` long."""
        if n_slots > len(self._arrays.key):
            key, first, length, text = self._arrays
            more = (0, n_slots - len(key))
            self._arrays = IdArrays(np.pad(key, more), np.pad(first, more), np.pad(length, more), text)

    def insert(self, ids: pa.Array, slots: NDArray[np.int32]) -> None:
        """Give these slots new ids, which `find` does not know yet."""
        if len(slots) == 0:
            return
        self.kind = id_kind(ids.type)
        key, (start, data) = _keys(ids)
        self._arrays.key[slots] = key
        if self.kind == "string":
            self._store_texts(start, data, slots)
        self._n += len(slots)
        if 2 * self._n > len(self._table):
            old = self._table[self._table != FREE]
            self._table = _free(4 * self._n)
            kernels.insert_slots(self._table, self._arrays.key, old)
        kernels.insert_slots(self._table, self._arrays.key, slots)

    def _store_texts(self, start: NDArray[np.int64], data: NDArray[np.uint8], slots: NDArray[np.int32]) -> None:
        key, first, length, text = self._arrays
        sizes = np.concatenate([[0], np.cumsum((np.diff(start) + 3) // 4)])
        n_needed = int(self._n_texts[0]) + int(keywords_capacity(sizes))
        if n_needed > len(text):
            text = np.pad(text, (0, n_needed + n_needed // 2 - len(text)))
            self._arrays = IdArrays(key, first, length, text)
        chunk_first = np.empty(len(slots), np.int64)
        reserve_keywords(text, self._free_texts, self._n_texts, sizes, chunk_first)
        kernels.store_texts(text, first, length, start, data, chunk_first, slots)

    def remove(self, slots: NDArray[np.int32]) -> None:
        """Make `find` forget the ids of these slots. `take` still returns them, until `free`."""
        kernels.remove_slots(self._table, self._arrays.key, slots)
        self._n -= len(slots)

    def free(self, slots: NDArray[np.int32]) -> None:
        """Free the memory of removed ids."""
        if self.kind == "string":
            _, first, length, text = self._arrays
            sizes = np.zeros(len(length), np.int32)
            sizes[slots] = ((length[slots].astype(np.int64) + 3) // 4).astype(np.int32)
            free_keywords(text, first, sizes, self._free_texts, slots)
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
        # Copies, because most of this changes soon.
        copies = {name: np.array(array) for name, array in arrays.items() if name.startswith("id_")}
        ids = cls()
        ids.kind = kind
        ids._arrays = IdArrays(*(copies[f"id_{name}"] for name in IdArrays._fields))
        ids._free_texts, ids._n_texts, ids._table = copies["id_free_texts"], copies["id_n_texts"], copies["id_table"]
        ids._n = int((ids._table != FREE).sum())
        return ids

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for array in self._arrays) + self._table.nbytes


def _free(n: int) -> NDArray[np.int32]:
    """An empty hash table of at least `n` slots, a power of two."""
    return np.full(1 << max(6, (n - 1).bit_length()), FREE, np.int32)


def _keys(ids: pa.Array) -> tuple[NDArray[np.int64], tuple[NDArray[np.int64], NDArray[np.uint8]]]:
    """The key of each id, and the column of texts: start and bytes, empty if ids are numbers."""
    if id_kind(ids.type) == "int":
        return numbers(ids, np.int64), _NO_TEXTS
    column = word_column(ids)
    key = np.empty(len(ids), np.int64)
    kernels.text_keys(column.start, column.data, key)
    return key, (column.start, column.data)


class LiveMessages:
    """The live messages, and the dead ones that an index may still refer to. `release` frees the slots of the dead.

    `now` is the largest time seen, minus infinity before the first.
    """

    def __init__(self) -> None:
        self.now = -math.inf
        self.n_alive = 0
        self._n_slots = 0
        self._ids = LiveIds()
        self._arrays = _empty()
        # A queue of slots in the order of their expiry, of which the first `_n_expired` have expired. A message that expires
        # before the last one of the queue goes to the heap instead.
        self._queue, self._n_expired = GrowingArray(np.int32), 0
        self._heap = GrowingArray(np.int32)
        self._free_keywords = np.full(N_CLASSES, NO_CHUNK, np.int32)
        self._n_used_keywords = np.zeros(1, np.int64)
        self._free = GrowingArray(np.int32)
        # Slots of dead messages in the order of their death. The first `_n_marked` were dead at the last `mark_dead`.
        self._dead = GrowingArray(np.int32)
        self._n_marked = 0

    # --- reading -----------------------------------------------------------------------------------------------------

    @property
    def ids(self) -> LiveIds:
        """The ids by slot, also of dead messages that were not released. `find` knows live messages only."""
        return self._ids

    @property
    def n_slots(self) -> int:
        """The number of slots in use, those of dead messages included."""
        return self._n_slots

    @property
    def n_dead(self) -> int:
        """The number of dead messages whose slots were not released."""
        return self._dead.n

    def layout(self) -> LiveArrays:
        """The arrays that indexes read. They are longer than the slots in use; slots beyond are not alive."""
        return self._arrays

    def slots(self) -> NDArray[np.int32]:
        """The slots of all live messages."""
        return np.flatnonzero(self._arrays.is_alive).astype(np.int32)

    def batch(self, slots: NDArray[np.int32], n_keywords: int) -> MessageBatch:
        """The messages at these slots as a batch for `match`; row i is the message at `slots[i]`."""
        arrays = self._arrays
        start = np.concatenate([[0], np.cumsum(arrays.n_keywords[slots], dtype=np.int64)])
        member = np.empty(int(start[-1]), np.int32)
        kernels.copy_keywords(arrays.keyword, arrays.keyword_first, arrays.n_keywords, slots, start, member)
        bounds = (arrays.x0[slots], arrays.y0[slots], arrays.x1[slots], arrays.y1[slots])
        return MessageBatch(MessageArrays(start, member, *bounds), np.arange(len(slots), dtype=np.int64), n_keywords)

    # --- changes -----------------------------------------------------------------------------------------------------

    def add(self, ids: pa.Array, batch: MessageBatch, expires: NDArray[np.float64]) -> NDArray[np.int32]:
        """Add messages that are alive now; returns their slots. No live message has one of the ids, which are distinct."""
        slots = self._take_slots(len(batch))
        new, live = batch.arrays, self._arrays
        n_needed = int(self._n_used_keywords[0]) + int(kernels.keywords_capacity(new.keyword_start))
        if n_needed > len(live.keyword):
            live = self._arrays = live._replace(keyword=_with_spare(live.keyword, n_needed))
        kernels.store_keywords(
            live.keyword,
            live.keyword_first,
            live.n_keywords,
            self._free_keywords,
            self._n_used_keywords,
            new.keyword_start,
            new.keyword,
            slots,
        )
        live.x0[slots], live.y0[slots], live.x1[slots], live.y1[slots] = new.x0, new.y0, new.x1, new.y1
        live.expires[slots] = expires
        kernels.mark_alive(live.is_alive, live.alive_bits, slots, 1)
        self.n_alive += len(slots)
        self._ids.insert(ids, slots)
        self._push_expiring(slots[np.isfinite(expires)])
        return slots

    def _push_expiring(self, slots: NDArray[np.int32]) -> None:
        if self._n_expired > self._queue.n // 2:
            self._queue = GrowingArray(np.int32, self._queue.used[self._n_expired :].copy())
            self._n_expired = 0
        queue, heap, n_queued = self._queue, self._heap, self._queue.n
        queue.reserve(n_queued + len(slots))
        heap.reserve(heap.n + len(slots))
        # Only the rest of the queue: other messages may use the slots of expired ones by now.
        n_left, heap.n = kernels.push_expiry(
            queue.memory[self._n_expired :], n_queued - self._n_expired, heap.memory, heap.n, self._arrays.expires, slots
        )
        queue.n = self._n_expired + int(n_left)

    def expire(self, now: float) -> NDArray[np.int32]:
        """Set the clock forward; returns the slots of the messages that expire, in no order."""
        self.now = max(self.now, now)
        queue, heap = self._queue, self._heap
        out = np.empty(queue.n - self._n_expired + heap.n, np.int32)
        self._n_expired, heap.n, n_out = kernels.pop_expired(
            queue.memory, self._n_expired, queue.n, heap.memory, heap.n, self._arrays.expires, self.now, out
        )
        expired = out[:n_out]
        if n_out:
            kernels.mark_alive(self._arrays.is_alive, self._arrays.alive_bits, expired, 0)
            self._ids.remove(expired)
            self.n_alive -= len(expired)
            self._dead.extend(expired)
        return expired

    def mark_dead(self) -> None:
        """Remember which messages are dead now, for `release_marked`."""
        self._n_marked = self._dead.n

    def release_marked(self) -> None:
        """Free the slots of the messages that were dead at the last `mark_dead`. No index may refer to them."""
        self._release(self._n_marked)

    def release(self) -> None:
        """Free the slots of all dead messages. No index may refer to them."""
        self._release(self._dead.n)

    def _release(self, n: int) -> None:
        slots, remaining = self._dead.used[:n].copy(), self._dead.used[n:].copy()
        arrays = self._arrays
        kernels.free_keywords(arrays.keyword, arrays.keyword_first, arrays.n_keywords, self._free_keywords, slots)
        self._ids.free(slots)
        self._free.extend(slots)
        self._dead = GrowingArray(np.int32, remaining)
        self._n_marked = max(0, self._n_marked - n)

    def _take_slots(self, n: int) -> NDArray[np.int32]:
        n_reused = min(n, self._free.n)
        reused = self._free.used[self._free.n - n_reused :]
        self._free.n -= n_reused
        new = np.arange(self._n_slots, self._n_slots + n - n_reused, dtype=np.int32)
        self._n_slots += len(new)
        if self._n_slots > len(self._arrays.is_alive):
            longer = {name: _with_spare(getattr(self._arrays, name), self._n_slots) for name in _BY_SLOT}
            self._arrays = self._arrays._replace(**longer, alive_bits=_packed(longer["is_alive"]))
            self._ids.reserve_slots(len(self._arrays.is_alive))
        return np.concatenate([reused, new])

    # --- on disk -----------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything but the clock, dead messages included."""
        used = {name: getattr(self._arrays, name)[: self._n_slots] for name in _BY_SLOT}
        return {
            **used,
            "keyword": self._arrays.keyword[: int(self._n_used_keywords[0])],
            "queue": self._queue.used[self._n_expired :],
            "heap": self._heap.used,
            "free": self._free.used,
            "dead": self._dead.used,
            "free_words": self._free_keywords,
            "counts": np.array([self._n_used_keywords[0], self._n_marked], np.int64),
            **self._ids.arrays(),
        }

    @classmethod
    def from_arrays(cls, now: float, kind: str | None, arrays: Mapping[str, NDArray[Any]]) -> LiveMessages:
        store = cls()
        store.now = now
        # Copies, because most of this changes soon.
        copies = {name: np.array(arrays[name]) for name in (*_BY_SLOT, "keyword")}
        store._arrays = LiveArrays(**copies, alive_bits=_packed(copies["is_alive"]))
        store._n_slots = len(store._arrays.is_alive)
        store._ids = LiveIds.from_arrays(kind, arrays)
        for name in ("queue", "heap", "free", "dead"):
            setattr(store, f"_{name}", GrowingArray(np.int32, np.array(arrays[name])))
        store._free_keywords, store._n_used_keywords = np.array(arrays["free_words"]), arrays["counts"][:1].copy()
        store._n_marked = int(arrays["counts"][1])
        store.n_alive = int(store._arrays.is_alive.sum())
        return store

    @property
    def n_bytes(self) -> int:
        lists = (self._queue, self._heap, self._free, self._dead)
        return sum(array.nbytes for array in self._arrays) + sum(slots.memory.nbytes for slots in lists) + self._ids.n_bytes


def _empty() -> LiveArrays:
    none, none32 = np.zeros(0), np.zeros(0, np.int32)
    flags = np.zeros(0, np.uint8)
    return LiveArrays(np.zeros(0, np.int64), none32, none32, none, none, none, none, none, flags, _packed(flags))


def _packed(is_alive: NDArray[np.uint8]) -> NDArray[np.uint32]:
    packed = np.packbits(is_alive, bitorder="little")
    return np.pad(packed, (0, -len(packed) % 4)).view("<u4")


def _with_spare(array: NDArray[Any], n: int) -> NDArray[Any]:
    """The array with at least `n` elements. If it must grow, a quarter is spare."""
    return resized(array, max(n + n // 4, _FIRST_CAPACITY), needed=n)
