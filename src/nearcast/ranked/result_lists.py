"""The lists above a floor of all subscriptions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import GrowingArray
from nearcast.errors import IndexParameterError
from nearcast.kernels.pools import FreeList
from nearcast.ranked.kernels.exact_order import write_shown
from nearcast.ranked.kernels.layouts import WindowArrays
from nearcast.ranked.kernels.list_layout import (
    FLOOR,
    GUARD_NUMBER,
    LAST,
    NEVER,
    NO_GUARD,
    NO_LAST,
    NOWHERE,
    ROOMS,
    ROW,
    SIZE,
    START,
    TOLD,
    WAITS_AT,
    FloorArrays,
    ScorerArrays,
    k_of,
    kept_of,
    pack_rooms,
    room_of,
    size_of_list,
)
from nearcast.ranked.kernels.lists import empty_rows, fill_many
from nearcast.ranked.kernels.rank_changes import find_scarce
from nearcast.ranked.window_index import Best


class ResultLists:
    """Lists by subscription number, of the room their kind gives them for their k."""

    def __init__(self, kind: BufferKind, given: Mapping[str, NDArray[Any]] | None = None) -> None:
        self.kind = kind
        self._row = GrowingArray(np.int64, None if given is None else given["row"])
        self._pool = GrowingArray(np.int32, None if given is None else given["pool"])
        self._free = FreeList(None if given is None else given["freed"])
        self.most_room = int(room_of(self._column(ROOMS)).max(initial=0))

    def grow(self, n: int) -> None:
        n_more = n - self._row.n // ROW
        if n_more > 0:
            rows = np.zeros((n_more, ROW), np.int64)
            rows[:, GUARD_NUMBER], rows[:, WAITS_AT], rows[:, TOLD], rows[:, LAST] = NO_GUARD, NOWHERE, NEVER, NO_LAST
            self._row.extend(rows.reshape(-1))

    def _column(self, which: int) -> NDArray[np.int64]:
        return self._row.used[which::ROW]

    @property
    def threshold(self) -> NDArray[np.float64]:
        """The score below which a message is of no use, by subscription number."""
        return self._row.used.view(np.float64)[FLOOR::ROW]

    def sizes(self, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
        """How many messages are held."""
        return np.minimum(self._column(SIZE)[numbers], room_of(self._column(ROOMS)[numbers]))

    def waits_at(self, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
        """The message at whose end each of them is looked at next; NOWHERE, which is before all messages, if there is none."""
        return self._column(WAITS_AT)[numbers]

    def without_more(self, numbers: NDArray[np.int32], oldest: int) -> NDArray[np.int32]:
        """Those of them that hold their best k messages and no more, although the window has more for them."""
        is_scarce = np.empty(len(numbers), np.bool_)
        find_scarce(self.layout(), numbers, oldest, is_scarce)
        return numbers[is_scarce]

    @property
    def n_bytes(self) -> int:
        return self._row.n_bytes + self._pool.n_bytes

    def layout(self) -> FloorArrays:
        pool = self._pool.used
        return FloorArrays(self._row.used, self._row.used.view(np.float64), pool, pool.view(np.uint16))

    def give_room(self, numbers: NDArray[np.int32], k: NDArray[np.int32]) -> None:
        """Empty lists for new subscriptions."""
        for distinct in np.unique(k).tolist():
            chosen = numbers[k == distinct]
            room = self.kind.room(distinct)
            self.most_room = max(self.most_room, room)
            start, n_new = self._free.take(room, size_of_list(room), len(chosen), self._pool.n)
            self._pool.extend(0, size_of_list(room) * n_new)
            empty_rows(self.layout(), chosen, start, np.full(len(chosen), pack_rooms(distinct, room, 0), np.int64))

    def free(self, numbers: NDArray[np.int32]) -> None:
        """Give up the lists of subscriptions that go."""
        self._free.give_back(self._column(START)[numbers], room_of(self._column(ROOMS)[numbers]))
        for which, value in ((SIZE, 0), (ROOMS, 0), (WAITS_AT, NOWHERE)):
            self._column(which)[numbers] = value

    def wanted(self, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """How many messages to look for."""
        distinct, which = np.unique(k_of(self._column(ROOMS)[numbers]), return_inverse=True)
        return np.array([self.kind.wanted(one) for one in distinct.tolist()], np.int32)[which]

    def fill(self, numbers: NDArray[np.int32], best: Best, wanted: NDArray[np.int32]) -> None:
        """Hold what was found."""
        fill_many(self.layout(), numbers, best.start, best.n, best.n < wanted, best.number, best.score)

    def shown(
        self,
        numbers: NDArray[np.int32],
        from_rank: NDArray[np.int64] | int,
        window: WindowArrays,
        judge: ScorerArrays,
        living: tuple[int, bool],
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]:
        """The best k of each of these subscriptions from a rank on: subscription, message, score."""
        n_most = int(np.minimum(k_of(self._column(ROOMS)[numbers]), self._column(SIZE)[numbers]).sum())
        start, number, score = np.zeros(len(numbers) + 1, np.int64), np.empty(n_most, np.int64), np.empty(n_most)
        ranks = np.broadcast_to(np.asarray(from_rank, np.int64), len(numbers)).copy()
        write_shown(self.layout(), window, judge, numbers, ranks, *living, start, number, score)
        return np.repeat(numbers, np.diff(start)).astype(np.int32), number[: start[-1]], score[: start[-1]]

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"row": self._row.used, "pool": self._pool.used, "freed": self._free.array()}


# -- How many messages a result buffer holds beyond the best k: what every kind of buffer says, and the kind above a floor.


@dataclass(frozen=True, slots=True)
class BufferKind(ABC):
    """What a subscription asks of the window when its buffer is filled, and what it keeps when the buffer is full."""

    name: ClassVar[str]
    summary: ClassVar[str]
    is_banded: ClassVar[bool] = True
    """Whether messages that can never be among the best k are left out."""

    @abstractmethod
    def wanted(self, k: int) -> int:
        """How many of the best messages a filling asks for."""

    @abstractmethod
    def room(self, k: int) -> int:
        """How many messages a buffer may hold; more than `kept`."""

    @abstractmethod
    def kept(self, k: int) -> int:
        """How many a full buffer keeps, at least k."""

    @property
    def least_share(self) -> float:
        """Of the messages found, those beyond the k-th go into the buffer that have this share of its score."""
        return 0.0

    def facts(self) -> dict[str, Any]:
        return {"name": self.name, "parameters": asdict(self)}


@dataclass(frozen=True, slots=True)
class Floor(BufferKind):
    """All messages above a floor, which is set by rank and rises when there are too many; those that are over stay a while.

    `spare`: room beyond k, in square roots of k.
    """

    name = "floor"
    summary = (
        "all messages above a floor, whether or not they can still be among the best; the fastest, for indexes that find ahead"
    )
    is_banded = False
    spare: float = 9.4

    def __post_init__(self) -> None:
        if not 0 <= self.spare <= 1000:
            raise IndexParameterError(f"spare={self.spare!r} is not possible; expected a number from 0 to 1000")

    def wanted(self, k: int) -> int:
        return int(kept_of(k, self.room(k)))

    def room(self, k: int) -> int:
        return k + 2 + int(self.spare * math.sqrt(k))

    def kept(self, k: int) -> int:
        return self.wanted(k)
