"""Result buffers: one per subscription, in one pool; how many messages each holds; which message each waits for.

Paper: Wang et al., Skype (VLDB 2016), §6 (cSkyband), and its baselines Skyband (Mouratidis) and kmax (Yi).
"""

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
    schedule_at_oldest,
    unschedule,
)
from nearcast.ranked.kernels.layouts import WindowArrays
from nearcast.ranked.result_lists import BufferKind
from nearcast.ranked.window_index import BestMessages

_COLUMNS: dict[str, tuple[type[np.generic], int]] = {
    "start": (np.int64, 0),
    "capacity": (np.int32, 0),
    "size": (np.int32, 0),
    "is_complete": (np.uint8, 1),
    "threshold": (np.float64, 0),
    "guard_time": (np.float64, 0),
    "guard_number": (np.int64, 0),
}
_ENTRIES = {"score": np.float64, "number": np.int64, "dominators": np.int32}


class ResultBuffers:
    """Buffers by subscription number. The buffer kind sets the capacity by k."""

    def __init__(self, kind: BufferKind, saved: Mapping[str, NDArray[Any]] | None = None) -> None:
        self.kind = kind
        self._rows = GrowingColumns(_COLUMNS, saved)
        self.kept_when_full = GrowingColumns({"n_kept": (np.int32, 1)}, saved)
        self._entries = {name: GrowingArray(dtype, (saved or {}).get(name)) for name, dtype in _ENTRIES.items()}
        # Memory that was free at the last save is not used again.
        self._free = FreeList()

    def grow(self, n: int) -> None:
        self._rows.grow(n)
        self.kept_when_full.grow(n)

    @property
    def threshold(self) -> NDArray[np.float64]:
        """The score below which a message is of no use, by subscription number."""
        return self._rows["threshold"]

    def sizes(self, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """The number of messages in each buffer."""
        held: NDArray[np.int32] = self._rows["size"][numbers]
        return held

    @property
    def n_bytes(self) -> int:
        return self._rows.n_bytes + self.kept_when_full.n_bytes + sum(column.memory.nbytes for column in self._entries.values())

    def layout(self) -> BufferArrays:
        return BufferArrays(**self._rows.used(), **{name: column.used for name, column in self._entries.items()})

    def reserve(self, numbers: NDArray[np.int32], k: NDArray[np.int32]) -> None:
        """Give empty buffers to new subscriptions."""
        for distinct in np.unique(k).tolist():
            numbers_of_k = numbers[k == distinct]
            capacity = self.kind.capacity(distinct)
            start, n_new = self._free.take(capacity, capacity, len(numbers_of_k), self._entries["score"].n)
            for column in self._entries.values():
                column.extend(0, capacity * n_new)
            self._rows["start"][numbers_of_k] = start
            self._rows["capacity"][numbers_of_k] = capacity
            self._rows["size"][numbers_of_k] = 0
            self.kept_when_full["n_kept"][numbers_of_k] = self.kind.n_kept(distinct)

    def free(self, numbers: NDArray[np.int32]) -> None:
        """Free the buffers of removed subscriptions."""
        self._free.give_back(self._rows["start"][numbers], self._rows["capacity"][numbers])
        self._rows["size"][numbers] = 0
        self._rows["capacity"][numbers] = 0

    def n_to_fetch(self, k: NDArray[np.int32]) -> NDArray[np.int32]:
        """The number of messages to fetch from the window, by the k of each subscription."""
        distinct, which = np.unique(k, return_inverse=True)
        return np.array([self.kind.n_to_fetch(one) for one in distinct.tolist()], np.int32)[which]

    def fill(self, numbers: NDArray[np.int32], k: NDArray[np.int32], best: BestMessages, window: WindowArrays) -> None:
        """Fill buffers with the messages found; `k` is that of every subscription, by number."""
        n_to_fetch = self.n_to_fetch(k[numbers])
        n_filled = count_near(best.start, best.n, best.score, k[numbers], self.kind.least_share)
        is_complete = (n_filled == best.n) & (best.n < n_to_fetch)
        fill_many(
            self.layout(), window, k, numbers, best.start, n_filled, is_complete, best.number, best.score, self.kind.is_banded
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            **self._rows.used(),
            **self.kept_when_full.used(),
            **{name: column.used for name, column in self._entries.items()},
        }


# --- how many messages a buffer holds beyond the best k, so that it is seldom refilled ----------------------------


@dataclass(frozen=True, slots=True)
class CostSkyband(BufferKind):
    """The number of messages at which holding more costs as much as it saves in refills.

    `refill_cost`: the cost of a refill, in visits of an entry of a buffer.
    """

    name = "cost_skyband"
    summary = "as many messages as cost least, and of these only those that can still be among the best"
    refill_cost: float = 1e5

    def __post_init__(self) -> None:
        _check_positive("refill_cost", self.refill_cost)

    def n_to_fetch(self, k: int) -> int:
        return best_rank(k, self.refill_cost)

    def capacity(self, k: int) -> int:
        return self.n_to_fetch(k) + self.n_to_fetch(k) // 2 + 4

    def n_kept(self, k: int) -> int:
        return self.n_to_fetch(k)


@dataclass(frozen=True, slots=True)
class Skyband(BufferKind):
    """Messages of at least `ratio` times the score of the k-th."""

    name = "skyband"
    summary = "messages whose score is near that of the k-th, and of these only those that can still be among the best"
    ratio: float = 0.95

    def __post_init__(self) -> None:
        if not 0 < self.ratio <= 1:
            raise IndexParameterError(f"ratio={self.ratio!r} is not possible; expected a number above 0, at most 1")

    def n_to_fetch(self, k: int) -> int:
        return 6 * k

    def capacity(self, k: int) -> int:
        return 8 * k

    def n_kept(self, k: int) -> int:
        return 6 * k

    @property
    def least_share(self) -> float:
        return self.ratio


@dataclass(frozen=True, slots=True)
class KMax(BufferKind):
    """Up to `factor` times k messages, whether or not they can still be among the best."""

    name = "kmax"
    summary = "a fixed number of the best messages, in order"
    is_banded = False
    factor: float = 3.0

    def __post_init__(self) -> None:
        if not 1 <= self.factor <= 1000:
            raise IndexParameterError(f"factor={self.factor!r} is not possible; expected a number from 1 to 1000")

    def n_to_fetch(self, k: int) -> int:
        return max(k, int(self.factor * k))

    def capacity(self, k: int) -> int:
        return self.n_to_fetch(k) + 1

    def n_kept(self, k: int) -> int:
        return self.n_to_fetch(k)


@cache
def best_rank(k: int, refill_cost: float) -> int:
    """The number of messages to hold, at least k, at which upkeep and refills together cost least.

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


# --- the calendar of expiries ------------------------------------------------------------------------------------

_CALENDAR_COLUMNS: dict[str, tuple[type[np.generic], int]] = {
    "following": (np.int32, NOBODY),
    "preceding": (np.int32, NOBODY),
    "scheduled_at": (np.int64, NOBODY),
}


class Calendar:
    """Which subscriptions to look after when a message expires: linked lists by position of the window."""

    def __init__(self, saved: Mapping[str, NDArray[Any]] | None = None) -> None:
        self._rows = GrowingColumns(_CALENDAR_COLUMNS, saved)
        self._first = GrowingArray(np.int32, (saved or {}).get("first"))

    def grow(self, n_subscriptions: int, n_positions: int) -> None:
        self._rows.grow(n_subscriptions)
        if n_positions > self._first.n:
            self._first.extend(NOBODY, n_positions - self._first.n)

    def layout(self) -> CalendarArrays:
        return CalendarArrays(self._first.used, **self._rows.used())

    def schedule(self, numbers: NDArray[np.int32], buffers: BufferArrays, window: WindowArrays) -> None:
        """Schedule subscriptions at the oldest message they hold."""
        schedule_at_oldest(self.layout(), buffers, window, numbers)

    def forget(self, numbers: NDArray[np.int32], base: int) -> None:
        """Remove subscriptions from the calendar."""
        for s in numbers.tolist():
            unschedule(self.layout(), base, s)

    def clear(self, n_positions: int) -> None:
        """Drop positions at the beginning of the window; no subscription is scheduled there any more."""
        self._first = GrowingArray(np.int32, self._first.used[n_positions:].copy())

    @property
    def n_bytes(self) -> int:
        return self._rows.n_bytes + self._first.memory.nbytes

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**self._rows.used(), "first": self._first.used}
