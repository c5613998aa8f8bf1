"""The raw record of one series at one point, as one JSON and one .npz file; and metrics, which are numbers over a record.

A record has what was measured and under which circumstances. Nothing is averaged: every chunk of every pass is kept, so a new
metric needs no new run.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nearcast.errors import PlanError

FORMAT = 1


@dataclass(slots=True)
class Record:
    """One series at one point.

    `facts` is everything that is not an array: plan, size, point, series, seed, check, versions, machine, commit, date,
    build_seconds, bytes, n_subscriptions, stats.
    """

    facts: dict[str, Any]
    chunk_seconds: NDArray[np.float64]  # float64[n_passes, n_chunks]
    chunk_messages: NDArray[np.int64]  # int64[n_chunks]
    counters: dict[str, NDArray[np.int64]] = field(default_factory=dict)  # int64[n_chunks] each
    matches: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))  # int64[n_messages]

    @property
    def n_messages(self) -> int:
        return int(self.chunk_messages.sum())

    @property
    def series(self) -> str:
        return str(self.facts["series"]["label"])

    @property
    def value(self) -> int | float | str:
        """Where the point is on the x axis."""
        value: int | float | str = self.facts["point"]["value"]
        return value

    def steps(self, name: str) -> NDArray[np.float64]:
        """A fact that has a value for each time step; empty if it was not measured."""
        return np.array(self.facts.get(name, []), np.float64)

    def number(self, name: str) -> float | None:
        value = self.facts.get(name)
        return None if value is None else float(value)

    def stat(self, name: str) -> float | None:
        """A number that the engine stated about itself."""
        stats = self.facts.get("stats") or {}
        return float(stats[name]) if name in stats else None

    def per_message(self, counter: str) -> float | None:
        counts = self.counters.get(counter)
        return None if counts is None else float(counts.sum() / self.n_messages)


@dataclass(frozen=True, slots=True)
class Metric:
    """A number over a record: `of(record)` is None where the record does not have what it needs.

    `floor` names a metric that no value can be below; it is drawn as a dashed line.
    """

    name: str
    label: str
    description: str
    better: Literal["lower", "higher", "neither"]
    of: Callable[[Record], float | None]
    floor: str = ""


def write_record(folder: Path, record: Record) -> Path:
    """Write the two files of a record and give the path of the JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    point, series = record.facts["point"], record.facts["series"]
    # Numbered, because labels such as R^t and R^t++ leave the same letters.
    stem = f"{point['number']:02d}-{_slug(point['label'])}--{series['number']:02d}-{_slug(record.series)}"
    arrays: dict[str, Any] = {f"counter_{name}": counts for name, counts in record.counters.items()}
    # The JSON is written last: where it is, the arrays are.
    np.savez_compressed(
        folder / f"{stem}.npz",
        chunk_seconds=record.chunk_seconds,
        chunk_messages=record.chunk_messages,
        matches=record.matches,
        **arrays,
    )
    path = folder / f"{stem}.json"
    path.write_text(json.dumps({"format": FORMAT, **record.facts}, indent=1, default=str) + "\n", encoding="utf-8")
    return path


def read_records(folder: Path) -> list[Record]:
    """The records of one plan at one size, in the order of the x axis, then of the series."""
    records = [_read(path) for path in sorted(folder.glob("*.json"))]
    return sorted(records, key=lambda record: (record.facts["point"]["number"], record.facts["series"]["number"]))


def _read(path: Path) -> Record:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        if facts.get("format") != FORMAT:
            raise PlanError(f"{path} has format {facts.get('format')!r}; expected {FORMAT}: run the plan again")
        with np.load(path.with_suffix(".npz")) as arrays:
            counters = {name.removeprefix("counter_"): arrays[name] for name in arrays.files if name.startswith("counter_")}
            return Record(facts, arrays["chunk_seconds"], arrays["chunk_messages"], counters, arrays["matches"])
    except (OSError, json.JSONDecodeError, KeyError, zipfile.BadZipFile) as error:
        raise PlanError(f"{path} is not a whole record ({error}); run the plan again") from error


def _slug(label: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", label.lower().replace(",", "")).strip("-") or "x"
