"""The messages that are alive, in slots that are used again, with their ids and the clock that ends them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.growing import GrowingArray, resized
from nearcast.columns.messages import MessageBatch
from nearcast.kernels.layouts import MessageArrays
from nearcast.kernels.pools import N_CLASSES, NO_CHUNK
from nearcast.moving.kernels import live_messages as kernels
from nearcast.moving.kernels.live_messages import LiveArrays
from nearcast.moving.live_ids import LiveIds

_FIRST_ROOM = 16
# What has a value for every slot.
_BY_SLOT = tuple(name for name in LiveArrays._fields if name not in ("keyword", "alive_bits"))


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
