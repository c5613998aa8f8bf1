"""What a load run measured, and how it is said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figures:
    """One part of a run. Times in seconds; latencies are those of requests that were kept."""

    name: str
    n: int
    seconds: float
    latencies: Sequence[float]
    n_later: int = 0
    """Requests the server put off (429, 503); they were sent again and are not counted before they were kept."""
    remark: str = ""

    @property
    def per_s(self) -> float:
        return self.n / self.seconds if self.seconds > 0 else 0.0

    def cells(self) -> tuple[str, ...]:
        numbers = (f"{self.n:,}", f"{self.seconds:,.2f}", f"{self.per_s:,.0f}")
        latencies = [f"{1000 * percentile(self.latencies, share):,.1f}" for share in _SHARES] if self.latencies else ["-"] * 4
        return (self.name, *numbers, *latencies, f"{self.n_later:,}", self.remark)


_SHARES = (0.5, 0.95, 0.99, 1.0)
HEADER = ("part", "number", "seconds", "per second", "p50 ms", "p95 ms", "p99 ms", "max ms", "put off", "remark")


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
