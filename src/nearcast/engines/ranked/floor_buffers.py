"""The lists above a floor of all subscriptions, and who waits for the end of which message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import GrowingArray
from nearcast.engines.ranked.buffer_kinds import BufferKind
from nearcast.engines.ranked.rooms import starts_of_rooms
from nearcast.indexes.window_base import Best
from nearcast.kernels.floor_calendar import has_chunk, wait_for_oldest
from nearcast.kernels.floor_layouts import (
    CHUNK,
    FLOOR,
    GUARD_NUMBER,
    NEVER,
    NO_CHUNK,
    NO_GUARD,
    NOWHERE,
    ROOMS,
    ROW,
    SIZE,
    START,
    TOLD,
    USED,
    WAITS_AT,
    EndArrays,
    FloorArrays,
    k_of,
    pack_rooms,
    room_of,
)
from nearcast.kernels.floor_lists import empty_rows, fill_many
from nearcast.kernels.ranked_layouts import WindowArrays

_FIRST_CHUNKS = 64


class FloorBuffers:
    """Lists by subscription number, of the room their kind gives them for their k."""

    def __init__(self, kind: BufferKind, given: Mapping[str, NDArray[Any]] | None = None) -> None:
        self.kind = kind
        self._row = GrowingArray(np.int64, None if given is None else given["row"])
        self._score = GrowingArray(np.float64, None if given is None else given["score"])
        self._number = GrowingArray(np.int32, None if given is None else given["number"])
        # Where freed lists start, by their room. Those freed before it was saved are not remembered.
        self._freed: dict[int, list[int]] = {}

    def grow(self, n: int) -> None:
        n_more = n - self._row.n // ROW
        if n_more > 0:
            rows = np.zeros((n_more, ROW), np.int64)
            rows[:, GUARD_NUMBER], rows[:, WAITS_AT], rows[:, TOLD] = NO_GUARD, NOWHERE, NEVER
            self._row.extend(rows.reshape(-1))

    def _column(self, which: int) -> NDArray[np.int64]:
        return self._row.used[which::ROW]

    @property
    def threshold(self) -> NDArray[np.float64]:
        """The score below which a message is of no use, by subscription number."""
        return self._row.used.view(np.float64)[FLOOR::ROW]

    def sizes(self, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
        """How many messages are held."""
        return self._column(SIZE)[numbers]

    @property
    def n_bytes(self) -> int:
        return self._row.room.nbytes + self._score.room.nbytes + self._number.room.nbytes

    def layout(self) -> FloorArrays:
        return FloorArrays(self._row.used, self._row.used.view(np.float64), self._score.used, self._number.used)

    def give_room(self, numbers: NDArray[np.int32], k: NDArray[np.int32]) -> None:
        """Empty lists for new subscriptions."""
        for distinct in np.unique(k).tolist():
            chosen = numbers[k == distinct]
            room = self.kind.room(distinct)
            start, n_new = starts_of_rooms(self._freed.get(room, []), room, len(chosen), self._score.n)
            for pool in (self._score, self._number):
                pool.extend(0, room * n_new)
            empty_rows(self.layout(), chosen, start, np.full(len(chosen), pack_rooms(distinct, room), np.int64))

    def free(self, numbers: NDArray[np.int32]) -> None:
        """Give up the lists of subscriptions that go."""
        rooms = room_of(self._column(ROOMS)[numbers])
        for start, room in zip(self._column(START)[numbers].tolist(), rooms.tolist(), strict=True):
            self._freed.setdefault(room, []).append(start)
        for which, value in ((SIZE, 0), (ROOMS, 0), (WAITS_AT, NOWHERE)):
            self._column(which)[numbers] = value

    def wanted(self, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """How many messages to look for."""
        distinct, which = np.unique(k_of(self._column(ROOMS)[numbers]), return_inverse=True)
        return np.array([self.kind.wanted(one) for one in distinct.tolist()], np.int32)[which]

    def fill(self, numbers: NDArray[np.int32], best: Best, wanted: NDArray[np.int32], window: WindowArrays) -> None:
        """Hold what was found."""
        fill_many(self.layout(), window, numbers, best.start, best.n, best.n < wanted, best.number, best.score)

    def shown(
        self, numbers: NDArray[np.int32], from_rank: NDArray[np.int64] | int, base: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]:
        """The best k of each of these subscriptions from a rank on: subscription, message, score."""
        n_shown = np.minimum(k_of(self._column(ROOMS)[numbers]), self._column(SIZE)[numbers])
        n = np.maximum(n_shown - from_rank, 0)
        first = np.cumsum(n) - n
        at = np.repeat(self._column(START)[numbers] + from_rank - first, n) + np.arange(int(n.sum()))
        ahead = self._number.used[at] - np.int64(base)
        ahead = (ahead + (1 << 31)) % (1 << 32) - (1 << 31)
        return np.repeat(numbers, n).astype(np.int32), base + ahead, self._score.used[at]

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"row": self._row.used, "score": self._score.used, "number": self._number.used}


class Ends:
    """Lists of chunks by place of the window."""

    def __init__(self, given: Mapping[str, NDArray[Any]] | None = None) -> None:
        self._head = np.array([NO_CHUNK, 0], np.int64) if given is None else given["head"]
        self._first = GrowingArray(np.int32, None if given is None else given["first"])
        self._chunk = np.empty(_FIRST_CHUNKS * CHUNK, np.int32) if given is None else given["chunk"]

    def grow(self, n_places: int) -> None:
        if n_places > self._first.n:
            self._first.extend(NO_CHUNK, n_places - self._first.n)

    def give_room(self) -> None:
        """Half as many chunks more, if there is none left."""
        if has_chunk(self._head, self._chunk):
            return
        n_more = max(_FIRST_CHUNKS, len(self._chunk) // CHUNK // 2)
        self._chunk = np.concatenate([self._chunk, np.empty(n_more * CHUNK, np.int32)])

    def layout(self) -> EndArrays:
        return EndArrays(self._head, self._first.used, self._chunk)

    def wait(self, numbers: NDArray[np.int32], buffers: FloorArrays, window: WindowArrays, is_in_order: bool) -> None:
        """Let subscriptions wait at the oldest of their best messages."""
        done = 0
        while True:
            done = wait_for_oldest(self.layout(), buffers, window, numbers, done, is_in_order)
            if done == len(numbers):
                return
            self.give_room()

    def clear(self, n_places: int) -> None:
        """Places at the beginning of the window are gone; nobody waits there."""
        self._first = GrowingArray(np.int32, self._first.used[n_places:].copy())

    @property
    def n_bytes(self) -> int:
        return self._first.room.nbytes + self._chunk.nbytes

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"head": self._head, "first": self._first.used, "chunk": self._chunk[: int(self._head[USED]) * CHUNK]}
