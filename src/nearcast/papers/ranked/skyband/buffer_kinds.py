"""How many messages a result buffer holds beyond the best k, so that it is seldom refilled from the window.

Paper: Wang et al., Skype (VLDB 2016), §6 (cSkyband), and its baselines Skyband (Mouratidis) and kmax (Yi).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from nearcast.errors import IndexParameterError
from nearcast.ranked.buffer_kind import BufferKind


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
