"""The records of one plan at one size, as curves: metric → series → x value → number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.expectations import Expectation, Judgement, Verdict, overall, span_of
from benchmarks.metrics import METRICS
from benchmarks.plan import Plan, list_plans, parse_plan, read_plan
from benchmarks.record import Record, read_records
from benchmarks.run import PLAN_FILE
from nearcast.errors import PlanError

# The counters that explain a metric, and those that explain all others.
_COUNTERS = {
    "us_per_move": ("candidates_per_move",),
    "bytes_per_subscription": ("copies",),
    "index_bytes_per_subscription": ("copies",),
    "expiry_us": ("refills_per_message", "held_per_subscription"),
}
_COUNTERS_OF_MESSAGES = ("candidates_per_message", "nodes_per_message")


@dataclass(frozen=True, slots=True)
class Results:
    """The records of a finished run, and what follows from them."""

    folder: Path
    plan: Plan
    size: str
    records: list[Record]

    def curves(self, metric: str) -> dict[str, dict[int | float | str, float]]:
        """The values of a metric, series and points in the order of the plan; those without a value are left out."""
        curves: dict[str, dict[int | float | str, float]] = {}
        for record in self.records:
            value = METRICS[metric].of(record)
            if value is not None:
                curves.setdefault(record.series, {})[record.value] = value
        return curves

    def label_of(self, value: int | float | str) -> str:
        """How a value of the x axis is written."""
        return next(str(record.facts["point"]["label"]) for record in self.records if record.value == value)

    def judged(self) -> list[tuple[Expectation, Judgement]]:
        return [(expected, expected.judge(self.curves(expected.metric))) for expected in self.plan.expect]

    def compare_work(self, expected: Expectation) -> str:
        """How much more work the series of an expectation need than the first of them, counter by counter; "" without counters.

        Counters do not depend on the machine, so they explain a verdict on times.
        """
        first, *others = dict.fromkeys(name for name in expected.argument if isinstance(name, str)) or ("",)
        counters = {name: self.curves(name) for name in _COUNTERS.get(expected.metric, _COUNTERS_OF_MESSAGES)}
        sentences = []
        for other in others:
            compared = []
            for name, curves in counters.items():
                at = {x: value for x, value in curves.get(first, {}).items() if value and (not expected.at or x in expected.at)}
                ratios = [value / at[x] for x, value in curves.get(other, {}).items() if x in at]
                if ratios:
                    compared.append(f"{span_of(ratios)} times the {METRICS[name].label}")
            if compared:
                sentences.append(f"{other} has {', '.join(compared)}")
        return "; ".join(sentences)

    @property
    def why(self) -> str:
        """The explanation in the plan as it is now, if it is one of the repository: it is often found after the run."""
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
