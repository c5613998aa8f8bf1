"""The messages that are alive, in slots that are used again, with their ids and the clock that ends them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.arrow import word_column
from nearcast.columns.messages import MessageBatch
from nearcast.kernels import live_messages as kernels
from nearcast.kernels.chunks import N_CLASSES, NO_CHUNK
from nearcast.kernels.layouts import MessageArrays
from nearcast.kernels.live_messages import LiveArrays
from nearcast.model.ids import Id

_FIRST_ROOM = 16


class LiveMessages:
    """Every message that is alive, and those that died and may still be named by an index (`release` frees their slots).

    Ids are int64 or strings, one kind at a time; `now` is the largest time seen, minus infinity before the first.
    """

    def __init__(self) -> None:
        self.now = -math.inf
        self.kind: str | None = None
        """Of the ids: "int" or "string"; the first message decides."""
        self.n_alive = 0
        self.n_dead = 0
        self._n_slots = 0
        self._arrays = _empty()
        self._heap: NDArray[np.int32] = np.empty(0, np.int32)
        self._n_heap = 0
        self._free_words = np.full(N_CLASSES, NO_CHUNK, np.int32)
        self._n_words = np.zeros(1, np.int64)
        self._free: list[int] = []
        self._slot_of: dict[Id, int] = {}
        self._id_of: NDArray[np.object_] = np.empty(0, object)

    # --- what is there -----------------------------------------------------------------------------------------------

    @property
    def n_slots(self) -> int:
        """Slots given out, dead ones included."""
        return self._n_slots

    def layout(self) -> LiveArrays:
        """What indexes read; arrays are longer than the slots in use, and what is beyond is not alive."""
        return self._arrays

    def slots(self) -> NDArray[np.int32]:
        """The slots of every living message."""
        return np.flatnonzero(self._arrays.is_alive).astype(np.int32)

    def has(self, id: Id) -> bool:
        """Whether a living message has this id."""
        return id in self._slot_of

    def has_any(self, ids: set[Id]) -> bool:
        """Whether a living message has one of these ids."""
        return not self._slot_of.keys().isdisjoint(ids)

    def ids(self, slots: NDArray[np.int32]) -> pa.Array:
        """The ids at these slots as a column; also of slots that died and were not released."""
        return pa.array(self._id_of[slots], pa.string() if self.kind == "string" else pa.int64())

    def batch(self, slots: NDArray[np.int32], n_keywords: int) -> MessageBatch:
        """The messages at these slots, as they are matched; row i of it is slot i of `slots`."""
        arrays = self._arrays
        lengths = arrays.n_keywords[slots].astype(np.int64)
        start = np.concatenate([[0], np.cumsum(lengths)])
        positions = np.repeat(arrays.keyword_first[slots] - start[:-1], lengths) + np.arange(start[-1])
        sides = (arrays.x0[slots], arrays.y0[slots], arrays.x1[slots], arrays.y1[slots])
        own = MessageArrays(start, arrays.keyword[positions], *sides)
        return MessageBatch(own, np.arange(len(slots), dtype=np.int64), n_keywords)

    # --- changes -----------------------------------------------------------------------------------------------------

    def add(self, ids: Sequence[Id], batch: MessageBatch, expires: NDArray[np.float64]) -> NDArray[np.int32]:
        """Take in messages that are alive now, with ids that are not; returns their slots."""
        slots = self._take_slots(len(batch))
        given, own = batch.arrays, self._arrays
        wanted = int(self._n_words[0]) + int(kernels.words_room(given.keyword_start))
        if wanted > len(own.keyword):
            own = self._arrays = own._replace(keyword=_longer(own.keyword, wanted))
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
        own.is_alive[slots] = 1
        self.n_alive += len(slots)
        for id, slot in zip(ids, slots.tolist(), strict=True):
            self._slot_of[id] = slot
            self._id_of[slot] = id
        mortal = slots[np.isfinite(expires)]
        self._heap = _longer(self._heap, self._n_heap + len(mortal))
        self._n_heap = int(kernels.push_heap(self._heap, self._n_heap, own.expires, mortal))
        return slots

    def due(self, now: float) -> NDArray[np.int32]:
        """Set the clock forward and end what is due; returns the slots that died, in no order."""
        self.now = max(self.now, now)
        out = np.empty(self._n_heap, np.int32)
        self._n_heap, n_out = kernels.pop_due(self._heap, self._n_heap, self._arrays.expires, self.now, out)
        gone = out[:n_out]
        self._arrays.is_alive[gone] = 0
        for id in self._id_of[gone]:
            del self._slot_of[id]
        self.n_alive -= len(gone)
        self.n_dead += len(gone)
        return gone

    def release(self) -> None:
        """Free the slots of the dead: no index names them any more."""
        used = np.zeros(self._n_slots, bool)
        used[self._free] = True
        dead = np.flatnonzero((self._arrays.is_alive[: self._n_slots] == 0) & ~used).astype(np.int32)
        arrays = self._arrays
        kernels.forget_words(arrays.keyword, arrays.keyword_first, arrays.n_keywords, self._free_words, dead)
        self._id_of[dead] = None
        self._free += dead.tolist()
        self.n_dead = 0

    def _take_slots(self, n: int) -> NDArray[np.int32]:
        n_again = min(n, len(self._free))
        again = [self._free.pop() for _ in range(n_again)]
        new = range(self._n_slots, self._n_slots + n - n_again)
        self._n_slots = new.stop
        if self._n_slots > len(self._arrays.is_alive):
            longer = {
                name: _longer(getattr(self._arrays, name), self._n_slots) for name in LiveArrays._fields if name != "keyword"
            }
            self._arrays = self._arrays._replace(**longer)
            self._id_of = _longer(self._id_of, len(self._arrays.is_alive))
        return np.array([*again, *new], np.int32)

    # --- on disk -----------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything but the clock; the slots of the dead are kept as they are."""
        # A slot without an id is free.
        is_used = np.array([id is not None for id in self._id_of[: self._n_slots]], np.uint8)
        used = {name: getattr(self._arrays, name)[: self._n_slots] for name in LiveArrays._fields if name != "keyword"}
        return {
            **used,
            "keyword": self._arrays.keyword[: int(self._n_words[0])],
            "heap": self._heap[: self._n_heap],
            "free_words": self._free_words,
            "n_words": self._n_words,
            "is_used": is_used,
            **_id_arrays(self._id_of[: self._n_slots], self.kind),
        }

    @classmethod
    def from_arrays(cls, now: float, kind: str | None, arrays: Mapping[str, NDArray[Any]]) -> LiveMessages:
        store = cls()
        store.now, store.kind = now, kind
        # Copied: the clock changes many of them before long.
        store._arrays = LiveArrays(**{name: np.array(arrays[name]) for name in LiveArrays._fields})
        store._n_slots = len(store._arrays.is_alive)
        store._heap = np.array(arrays["heap"])
        store._n_heap = len(store._heap)
        store._free_words, store._n_words = np.array(arrays["free_words"]), np.array(arrays["n_words"])
        is_used = arrays["is_used"].astype(bool)
        store._free = np.flatnonzero(~is_used).tolist()
        store._id_of = _read_ids(arrays, is_used)
        alive = np.flatnonzero(store._arrays.is_alive).tolist()
        store._slot_of = {store._id_of[slot]: slot for slot in alive}
        store.n_alive = len(alive)
        store.n_dead = int(is_used.sum()) - len(alive)
        return store

    @property
    def n_bytes(self) -> int:
        """Of the arrays; the ids are Python objects and counted at eight bytes each."""
        return sum(array.nbytes for array in self._arrays) + self._heap.nbytes + self._id_of.nbytes


def _empty() -> LiveArrays:
    none, whole = np.zeros(0), np.zeros(0, np.int32)
    return LiveArrays(np.zeros(0, np.int64), whole, whole, none, none, none, none, none, np.zeros(0, np.uint8))


def _longer(array: NDArray[Any], n: int) -> NDArray[Any]:
    """The array itself if it has `n` elements, else one of twice the length, with zeros behind."""
    if n <= len(array):
        return array
    grown = np.zeros(max(n, 2 * len(array), _FIRST_ROOM), array.dtype) if array.dtype != object else np.empty(n, object)
    grown[: len(array)] = array
    return grown


def _id_arrays(ids: NDArray[np.object_], kind: str | None) -> dict[str, NDArray[Any]]:
    """Numbers as they are, or the bytes of strings; free slots have 0 or ''."""
    if kind == "string":
        column = word_column(pa.array([id or "" for id in ids], pa.large_string()))
        return {"id_start": column.start, "id_bytes": column.data[: int(column.start[-1])]}
    return {"id": np.array([id or 0 for id in ids], np.int64)}


def _read_ids(arrays: Mapping[str, NDArray[Any]], is_used: NDArray[np.bool_]) -> NDArray[np.object_]:
    ids = np.empty(len(is_used), object)
    if "id" in arrays:
        values: list[Id] = arrays["id"].tolist()
    else:
        start, data = arrays["id_start"], arrays["id_bytes"].tobytes()
        values = [data[first:last].decode() for first, last in pairwise(start.tolist())]
    for slot in np.flatnonzero(is_used).tolist():
        ids[slot] = values[slot]
    return ids
