"""measured.csv: every measured value in one table, small enough for git. Figures are drawn from it."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.metrics import METRICS
from benchmarks.plan import Plan
from benchmarks.results import Results
from nearcast.errors import PlanError

VALUES_FILE = "measured.csv"
HEADER = ("plan", "size", "point", "series", "metric", "value")
# In addition to the metrics of the plan.
_ALWAYS = ("us_per_message", "build_seconds", "copies", "spread_percent")


@dataclass(slots=True)
class MeasuredValues:
    """The values of one plan at one size. Points are known by their labels."""

    plan: str
    size: str
    by_metric: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    """metric → series → label of the point → value, in the order in which they were written."""
    labels: list[str] = field(default_factory=list)

    def curves(self, metric: str, x_values: Mapping[str, int | float | str]) -> dict[str, dict[int | float | str, float]]:
        """The values of a metric over the x axis of the plan; points that the plan no longer has are left out."""
        return {
            series: {x_values[label]: value for label, value in points.items() if label in x_values}
            for series, points in self.by_metric.get(metric, {}).items()
        }


def columns_of(results: Results) -> list[str]:
    """The metrics that a table of results shows: those that have values."""
    return [name for name in dict.fromkeys((*results.plan.metrics, *_ALWAYS)) if results.curves(name)]


def write_values(path: Path, shown: Iterable[Results]) -> None:
    """Write what tables show and what figures need."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for results in shown:
            metrics = _written_metrics(results.plan, columns_of(results))
            for record in results.records:
                label = record.facts["point"]["label"]
                for name in metrics:
                    value = METRICS[name].of(record)
                    if value is not None:
                        writer.writerow((results.plan.name, results.size, label, record.series, name, f"{value:.6g}"))


def _written_metrics(plan: Plan, columns: Sequence[str]) -> list[str]:
    floors = (METRICS[name].floor for name in plan.drawn_metrics if METRICS[name].floor)
    return list(dict.fromkeys((*columns, *plan.drawn_metrics, *floors)))


def read_values(path: Path) -> list[MeasuredValues]:
    """The values of every plan, in the order of the file."""
    if not path.is_file():
        raise PlanError(f"there is no {path}; make it with: python -m benchmarks report --to {path.parent}")
    measured: dict[tuple[str, str], MeasuredValues] = {}
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != HEADER:
            raise PlanError(f"{path} has the columns {reader.fieldnames}; expected {', '.join(HEADER)}")
        for row in reader:
            key = row["plan"], row["size"]
            values = measured.setdefault(key, MeasuredValues(*key))
            if row["point"] not in values.labels:
                values.labels.append(row["point"])
            values.by_metric.setdefault(row["metric"], {}).setdefault(row["series"], {})[row["point"]] = float(row["value"])
    return list(measured.values())
