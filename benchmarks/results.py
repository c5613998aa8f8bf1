"""The records of one plan at one size, seen as curves: metric → series → x value → number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.expectations import Expectation, Judgement, Verdict, overall
from benchmarks.metrics import METRICS
from benchmarks.plan import Plan, list_plans, parse_plan, read_plan
from benchmarks.record import Record, read_records
from benchmarks.run import PLAN_FILE
from nearcast.errors import PlanError


@dataclass(frozen=True, slots=True)
class Results:
    """What a finished run holds."""

    folder: Path
    plan: Plan
    size: str
    records: list[Record]

    def curves(self, metric: str) -> dict[str, dict[int | float | str, float]]:
        """The values of a metric, series and points in the order of the plan; without what has no value."""
        found: dict[str, dict[int | float | str, float]] = {}
        for record in self.records:
            value = METRICS[metric].of(record)
            if value is not None:
                found.setdefault(record.series, {})[record.value] = value
        return found

    def labels(self) -> dict[int | float | str, str]:
        """How each x value is written."""
        return {record.value: str(record.facts["point"]["label"]) for record in self.records}

    def judged(self) -> list[tuple[Expectation, Judgement]]:
        return [(expected, expected.judge(self.curves(expected.metric))) for expected in self.plan.expect]

    @property
    def why(self) -> str:
        """The explanation, which is often found after the run: that of the plan as it is now, if it is one of ours."""
        return read_plan(self.plan.name).why if self.plan.name in list_plans() else self.plan.why

    @property
    def left_out(self) -> list[str]:
        """Series that could not be measured, and why."""
        reasons = {record.series: str(record.facts["left_out"]) for record in self.records if "left_out" in record.facts}
        return [f"{series} was left out: {reason}" for series, reason in reasons.items()]

    @property
    def verdict(self) -> Verdict:
        return overall([judgement for _, judgement in self.judged()])


def read_results(folder: Path) -> Results:
    """The results in one folder of `run_plan`."""
    records = read_records(folder)
    if not records or not (folder / PLAN_FILE).is_file():
        raise PlanError(f"{folder} holds no results; run a plan first: python -m benchmarks run PLAN")
    facts = records[0].facts
    source = (folder / PLAN_FILE).read_text(encoding="utf-8")
    plan = parse_plan(str(facts["plan"]), source, str(folder / PLAN_FILE))
    return Results(folder, plan, str(facts["size"]), records)


def find_results(folder: Path) -> Iterator[Results]:
    """All results under a folder, by plan and size; unfinished runs are left out."""
    for path in sorted(folder.rglob(PLAN_FILE)):
        if not path.parent.name.startswith("."):
            yield read_results(path.parent)
