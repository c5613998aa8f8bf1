"""The result list of every subscription: its messages above a threshold, and how many of them a list holds."""

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
from nearcast.ranked.kernels.exact_order import write_best
from nearcast.ranked.kernels.layouts import WindowArrays
from nearcast.ranked.kernels.list_layout import (
    GUARD_NUMBER,
    LAST,
    LIMITS,
    NEVER,
    NO_GUARD,
    NO_LAST,
    NOWHERE,
    RECORDED_AT,
    ROW,
    SCHEDULED_AT,
    SIZE,
    START,
    THRESHOLD,
    ResultListArrays,
    ScorerArrays,
    capacity_of,
    k_of,
    n_kept_when_full,
    pack_limits,
    size_of_list,
)
from nearcast.ranked.kernels.lists import empty_rows, fill_many
from nearcast.ranked.kernels.rank_changes import find_low_reserve
from nearcast.ranked.window_index import BestMessages


class ResultLists:
    """One list per subscription number. The buffer kind sets the capacity by k."""

    def __init__(self, kind: BufferKind, saved: Mapping[str, NDArray[Any]] | None = None) -> None:
        self.kind = kind
        self._row = GrowingArray(np.int64, None if saved is None else saved["row"])
        self._pool = GrowingArray(np.int32, None if saved is None else saved["pool"])
        self._free = FreeList(None if saved is None else saved["freed"])
        self.max_capacity = int(capacity_of(self._column(LIMITS)).max(initial=0))

    def grow(self, n: int) -> None:
        n_more = n - self._row.n // ROW
        if n_more > 0:
            rows = np.zeros((n_more, ROW), np.int64)
            rows[:, GUARD_NUMBER], rows[:, SCHEDULED_AT], rows[:, RECORDED_AT], rows[:, LAST] = (
                NO_GUARD,
                NOWHERE,
                NEVER,
                NO_LAST,
            )
            self._row.extend(rows.reshape(-1))

    def _column(self, which: int) -> NDArray[np.int64]:
        return self._row.used[which::ROW]

    @property
    def threshold(self) -> NDArray[np.float64]:
        """The score below which a message is of no use, by subscription number."""
        return self._row.used.view(np.float64)[THRESHOLD::ROW]

    def sizes(self, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
        """The number of messages in each list."""
        return np.minimum(self._column(SIZE)[numbers], capacity_of(self._column(LIMITS)[numbers]))

    def scheduled_at(self, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
        """The message at whose expiry each list is looked at next; NOWHERE, which is before all messages, if there is none."""
        return self._column(SCHEDULED_AT)[numbers]

    def with_low_reserve(self, numbers: NDArray[np.int32], oldest: int) -> NDArray[np.int32]:
        """Those of them that hold only their best k messages, although the window has more."""
        has_low_reserve = np.empty(len(numbers), np.bool_)
        find_low_reserve(self.layout(), numbers, oldest, has_low_reserve)
        return numbers[has_low_reserve]

    @property
    def n_bytes(self) -> int:
        return self._row.n_bytes + self._pool.n_bytes

    def layout(self) -> ResultListArrays:
        pool = self._pool.used
        return ResultListArrays(self._row.used, self._row.used.view(np.float64), pool, pool.view(np.uint16))

    def reserve(self, numbers: NDArray[np.int32], k: NDArray[np.int32]) -> None:
        """Give empty lists to new subscriptions."""
        for distinct in np.unique(k).tolist():
            numbers_of_k = numbers[k == distinct]
            capacity = self.kind.capacity(distinct)
            self.max_capacity = max(self.max_capacity, capacity)
            start, n_new = self._free.take(capacity, size_of_list(capacity), len(numbers_of_k), self._pool.n)
            self._pool.extend(0, size_of_list(capacity) * n_new)
            empty_rows(
                self.layout(), numbers_of_k, start, np.full(len(numbers_of_k), pack_limits(distinct, capacity, 0), np.int64)
            )

    def free(self, numbers: NDArray[np.int32]) -> None:
        """Free the lists of removed subscriptions."""
        self._free.give_back(self._column(START)[numbers], capacity_of(self._column(LIMITS)[numbers]))
        for which, value in ((SIZE, 0), (LIMITS, 0), (SCHEDULED_AT, NOWHERE)):
            self._column(which)[numbers] = value

    def n_to_fetch(self, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """The number of messages to fetch from the window for each."""
        distinct, which = np.unique(k_of(self._column(LIMITS)[numbers]), return_inverse=True)
        return np.array([self.kind.n_to_fetch(one) for one in distinct.tolist()], np.int32)[which]

    def fill(self, numbers: NDArray[np.int32], best: BestMessages, n_to_fetch: NDArray[np.int32]) -> None:
        """Replace the lists by what a search of the window found."""
        fill_many(self.layout(), numbers, best.start, best.n, best.n < n_to_fetch, best.number, best.score)

    def best(
        self,
        numbers: NDArray[np.int32],
        from_rank: NDArray[np.int64] | int,
        window: WindowArrays,
        scorer: ScorerArrays,
        living: tuple[int, bool],
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]:
        """The best k of each of these subscriptions, from a rank on: subscription, message, score."""
        n_most = int(np.minimum(k_of(self._column(LIMITS)[numbers]), self._column(SIZE)[numbers]).sum())
        start, number, score = np.zeros(len(numbers) + 1, np.int64), np.empty(n_most, np.int64), np.empty(n_most)
        ranks = np.broadcast_to(np.asarray(from_rank, np.int64), len(numbers)).copy()
        write_best(self.layout(), window, scorer, numbers, ranks, *living, start, number, score)
        return np.repeat(numbers, np.diff(start)).astype(np.int32), number[: start[-1]], score[: start[-1]]

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"row": self._row.used, "pool": self._pool.used, "freed": self._free.array()}


# --- how many messages a list holds -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BufferKind(ABC):
    """How many messages a list fetches from the window when it is filled, and how many it keeps when it is full."""

    name: ClassVar[str]
    summary: ClassVar[str]
    is_banded: ClassVar[bool] = True
    """Whether messages that can never be among the best k are dropped."""

    @abstractmethod
    def n_to_fetch(self, k: int) -> int:
        """The number of messages to fetch when the list is filled."""

    @abstractmethod
    def capacity(self, k: int) -> int:
        """The number of messages a list may hold; more than `n_kept`."""

    @abstractmethod
    def n_kept(self, k: int) -> int:
        """The number of messages that a full list keeps; at least k."""

    @property
    def least_share(self) -> float:
        """Messages beyond the k-th are kept only if they have this share of its score."""
        return 0.0

    def facts(self) -> dict[str, Any]:
        return {"name": self.name, "parameters": asdict(self)}


@dataclass(frozen=True, slots=True)
class AboveThreshold(BufferKind):
    """All messages above a threshold, which is set by rank and rises when the list is full. Expired messages stay for a while.

    `spare`: capacity beyond k, in square roots of k.
    """

    name = "floor"
    summary = "all messages above a threshold, whether or not they can still be among the best; the fastest, for impact_grid"
    is_banded = False
    spare: float = 9.4

    def __post_init__(self) -> None:
        if not 0 <= self.spare <= 1000:
            raise IndexParameterError(f"spare={self.spare!r} is not possible; expected a number from 0 to 1000")

    def n_to_fetch(self, k: int) -> int:
        return int(n_kept_when_full(k, self.capacity(k)))

    def capacity(self, k: int) -> int:
        return k + 2 + int(self.spare * math.sqrt(k))

    def n_kept(self, k: int) -> int:
        return self.n_to_fetch(k)
