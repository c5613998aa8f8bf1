"""What a metric is: a number over a raw record. A new one needs no new run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from benchmarks.record import Record


@dataclass(frozen=True, slots=True)
class Metric:
    """`of(record)` is None where the record does not hold what it takes; `floor` names the metric nobody can be below."""

    name: str
    label: str
    description: str
    better: Literal["lower", "higher", "neither"]
    of: Callable[[Record], float | None]
    floor: str = ""


def stat(record: Record, name: str) -> float | None:
    stats = record.facts.get("stats") or {}
    return float(stats[name]) if name in stats else None


def per_message(record: Record, counter: str) -> float | None:
    counted = record.counters.get(counter)
    return None if counted is None else float(counted.sum() / record.n_messages)
