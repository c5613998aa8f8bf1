"""The result buffers of all subscriptions: their room in one pool, filled from what a search of the window found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import GrowingArray, GrowingColumns
from nearcast.errors import IndexParameterError
from nearcast.kernels.pools import FreeList
from nearcast.papers.ranked.skyband.kernels.buffers import (
    NOBODY,
    BufferArrays,
    CalendarArrays,
    count_near,
    fill_many,
    wait_for_oldest,
    wait_nowhere,
)
from nearcast.ranked.kernels.layouts import WindowArrays
from nearcast.ranked.result_lists import BufferKind
from nearcast.ranked.window_index import Best

_COLUMNS: dict[str, tuple[type[np.generic], int]] = {
    "start": (np.int64, 0),
    "room": (np.int32, 0),
    "size": (np.int32, 0),
    "is_complete": (np.uint8, 1),
    "threshold": (np.float64, 0),
    "guard_time": (np.float64, 0),
    "guard_number": (np.int64, 0),
}
_ENTRIES = {"score": np.float64, "number": np.int64, "dominators": np.int32}


class ResultBuffers:
    """Buffers by subscription number, of the room their kind gives them for their k."""

    def __init__(self, kind: BufferKind, given: Mapping[str, NDArray[Any]] | None = None) -> None:
        self.kind = kind
        self._rows = GrowingColumns(_COLUMNS, given)
        self.kept_by_cut = GrowingColumns({"kept": (np.int32, 1)}, given)
        self._entries = {name: GrowingArray(dtype, (given or {}).get(name)) for name, dtype in _ENTRIES.items()}
        # Buffers freed before the last save are not remembered.
        self._free = FreeList()

    def grow(self, n: int) -> None:
        self._rows.grow(n)
        self.kept_by_cut.grow(n)

    @property
    def threshold(self) -> NDArray[np.float64]:
        """The score below which a message is of no use, by subscription number."""
        return self._rows["threshold"]

    def sizes(self, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """How many messages are held."""
        held: NDArray[np.int32] = self._rows["size"][numbers]
        return held

    @property
    def n_bytes(self) -> int:
        return self._rows.n_bytes + self.kept_by_cut.n_bytes + sum(column.memory.nbytes for column in self._entries.values())

    def layout(self) -> BufferArrays:
        return BufferArrays(**self._rows.used(), **{name: column.used for name, column in self._entries.items()})

    def give_room(self, numbers: NDArray[np.int32], k: NDArray[np.int32]) -> None:
        """Empty buffers for new subscriptions."""
        for distinct in np.unique(k).tolist():
            chosen = numbers[k == distinct]
            room = self.kind.room(distinct)
            start, n_new = self._free.take(room, room, len(chosen), self._entries["score"].n)
            for column in self._entries.values():
                column.extend(0, room * n_new)
            self._rows["start"][chosen] = start
            self._rows["room"][chosen] = room
            self._rows["size"][chosen] = 0
            self.kept_by_cut["kept"][chosen] = self.kind.kept(distinct)

    def free(self, numbers: NDArray[np.int32]) -> None:
        """Give up the buffers of subscriptions that go."""
        self._free.give_back(self._rows["start"][numbers], self._rows["room"][numbers])
        self._rows["size"][numbers] = 0
        self._rows["room"][numbers] = 0

    def wanted(self, k: NDArray[np.int32]) -> NDArray[np.int32]:
        """How many messages to look for, by the k of each subscription."""
        distinct, which = np.unique(k, return_inverse=True)
        return np.array([self.kind.wanted(one) for one in distinct.tolist()], np.int32)[which]

    def fill(self, numbers: NDArray[np.int32], k: NDArray[np.int32], best: Best, window: WindowArrays) -> None:
        """Hold what was found; `k` is that of every subscription, by number."""
        wanted = self.wanted(k[numbers])
        n_filled = count_near(best.start, best.n, best.score, k[numbers], self.kind.least_share)
        is_complete = (n_filled == best.n) & (best.n < wanted)
        fill_many(
            self.layout(), window, k, numbers, best.start, n_filled, is_complete, best.number, best.score, self.kind.is_banded
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**self._rows.used(), **self.kept_by_cut.used(), **{name: column.used for name, column in self._entries.items()}}


# -- How many messages a result buffer holds beyond the best k, so that it is seldom refilled from the window.
#
# Paper: Wang et al., Skype (VLDB 2016), §6 (cSkyband), and its baselines Skyband (Mouratidis) and kmax (Yi).


@dataclass(frozen=True, slots=True)
class CostSkyband(BufferKind):
    """The number of messages at which holding more costs as much as it saves in refilling.

    `refill_cost`: what a refill costs, in visits of an entry of a buffer.
    """

    name = "cost_skyband"
    summary = "as many messages as cost least, and of these only those that can still be among the best"
    refill_cost: float = 1e5

    def __post_init__(self) -> None:
        _check_positive("refill_cost", self.refill_cost)

    def wanted(self, k: int) -> int:
        return best_rank(k, self.refill_cost)

    def room(self, k: int) -> int:
        return self.wanted(k) + self.wanted(k) // 2 + 4

    def kept(self, k: int) -> int:
        return self.wanted(k)


@dataclass(frozen=True, slots=True)
class Skyband(BufferKind):
    """Messages of at least `ratio` times the score of the k-th."""

    name = "skyband"
    summary = "messages whose score is near that of the k-th, and of these only those that can still be among the best"
    ratio: float = 0.95

    def __post_init__(self) -> None:
        if not 0 < self.ratio <= 1:
            raise IndexParameterError(f"ratio={self.ratio!r} is not possible; expected a number above 0, at most 1")

    def wanted(self, k: int) -> int:
        return 6 * k

    def room(self, k: int) -> int:
        return 8 * k

    def kept(self, k: int) -> int:
        return 6 * k

    @property
    def least_share(self) -> float:
        return self.ratio


@dataclass(frozen=True, slots=True)
class KMax(BufferKind):
    """Up to `factor` times k messages, whether or not they can still be among the best."""

    name = "kmax"
    summary = "so many of the best messages, in order"
    is_banded = False
    factor: float = 3.0

    def __post_init__(self) -> None:
        if not 1 <= self.factor <= 1000:
            raise IndexParameterError(f"factor={self.factor!r} is not possible; expected a number from 1 to 1000")

    def wanted(self, k: int) -> int:
        return max(k, int(self.factor * k))

    def room(self, k: int) -> int:
        return self.wanted(k) + 1

    def kept(self, k: int) -> int:
        return self.wanted(k)


@cache
def best_rank(k: int, refill_cost: float) -> int:
    """The number of messages to hold, from k up, at which upkeep and refills together cost least.

    Paper: equations 9 to 12, corrected: the k-skyband of n messages has k (1 + H_n - H_k) of them, an expiring message is held
    with probability k/n, and the number of messages above the guard is a birth-death process around n, not a free walk.
    """
    best, least, worse = k, math.inf, 0
    rank = k
    while worse < 8:
        upkeep = rank * 0.5 * (1 + min(1.0, k / rank)) * _band_size(rank, k)
        cost = upkeep + refill_cost / (2 * _turnovers(rank, k))
        best, least, worse = (rank, cost, 0) if cost < least else (best, least, worse + 1)
        rank += max(1, k // 20)
    return best


def _band_size(n: int, k: int) -> float:
    return n if n <= k else k * (1 + math.log(n / k))


def _turnovers(n: int, k: int) -> float:
    """How often the window is renewed until fewer than k of about n messages are left."""
    most = int(n + 12 * math.sqrt(n) + 20)
    step, total = 1.0 / most, 0.0
    for size in range(most - 1, k - 1, -1):
        step = (1 + n * step) / size
        if size <= n:
            total += step
    return total


def _check_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise IndexParameterError(f"{name}={value!r} is not possible; expected a number above 0")


# -- Which subscriptions wait for the end of which message.

_CALENDAR_COLUMNS: dict[str, tuple[type[np.generic], int]] = {
    "following": (np.int32, NOBODY),
    "preceding": (np.int32, NOBODY),
    "waits_at": (np.int64, NOBODY),
}


class Calendar:
    """Lists by place of the window, linked by subscription number."""

    def __init__(self, given: Mapping[str, NDArray[Any]] | None = None) -> None:
        self._rows = GrowingColumns(_CALENDAR_COLUMNS, given)
        self._first = GrowingArray(np.int32, (given or {}).get("first"))

    def grow(self, n_subscribers: int, n_places: int) -> None:
        self._rows.grow(n_subscribers)
        if n_places > self._first.n:
            self._first.extend(NOBODY, n_places - self._first.n)

    def layout(self) -> CalendarArrays:
        return CalendarArrays(self._first.used, **self._rows.used())

    def wait(self, numbers: NDArray[np.int32], buffers: BufferArrays, window: WindowArrays) -> None:
        """Let subscriptions wait at the oldest message they hold."""
        wait_for_oldest(self.layout(), buffers, window, numbers)

    def forget(self, numbers: NDArray[np.int32], base: int) -> None:
        """Let subscriptions wait no longer."""
        for s in numbers.tolist():
            wait_nowhere(self.layout(), base, s)

    def clear(self, n_places: int) -> None:
        """Places at the beginning of the window are gone; nobody waits there."""
        self._first = GrowingArray(np.int32, self._first.used[n_places:].copy())

    @property
    def n_bytes(self) -> int:
        return self._rows.n_bytes + self._first.memory.nbytes

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**self._rows.used(), "first": self._first.used}
