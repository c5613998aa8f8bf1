"""Plans: an experiment as a TOML file. Reads it, refuses keys that it does not know, and lists the points to measure."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.expectations import Expectation, read_expectation
from benchmarks.experiments import experiment_of, kinds
from benchmarks.metrics import METRICS
from benchmarks.toml_table import TomlTable
from nearcast.errors import PlanError

SIZES = ("tiny", "small", "paper")
DATA_FOLDER = "$NEARCAST_DATA"
PLANS = Path(__file__).parent / "plans"
_COUNTS = ("n_subscriptions", "n_messages", "built_percent", "life", "shards")


@dataclass(frozen=True, slots=True)
class Size:
    """How large an experiment is; `workload` overrides parameters of the plan's workload.

    `n_history` past messages are given to indexes with a cost model. Series that take turns are all built first and then
    timed pass by pass, one after the other: for ratios near 1, where everything fits into memory. `built_percent` of the
    subscriptions are there from the start; the others are inserted in small batches before messages come. Experiments with
    time steps: `n_messages` arrive in each of `repetitions` steps, and live for `life` steps; `warm_steps` more steps are not
    timed. `shards` is for experiments that distribute the work.
    """

    n_subscriptions: int
    n_messages: int
    repetitions: int
    chunk: int
    n_history: int = 0
    takes_turns: bool = False
    built_percent: int = 100
    life: int = 10
    warm_steps: int = 0
    shards: int = 8
    workload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Series:
    """One curve: `subject` is an index or a method of the experiment."""

    label: str
    subject: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Check:
    """Answers to `messages` messages are compared with those of `against`: an index, or "other" for the next series."""

    against: str
    messages: int


@dataclass(frozen=True, slots=True)
class Point:
    """One value of the x axis, with everything that is measured there."""

    label: str
    value: int | float | str
    size: Size
    workload: str
    workload_parameters: Mapping[str, Any]
    series: tuple[Series, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What varies, what is fixed, which series take part, and what is claimed; `why` explains results that differ."""

    name: str
    title: str
    paper: str
    figure: str
    claim: str
    why: str
    kind: str
    seed: int
    workload: str
    workload_parameters: Mapping[str, Any]
    sizes: Mapping[str, Size]
    vary: str
    vary_label: str
    values: Mapping[str, tuple[Any, ...]]
    series: tuple[Series, ...]
    check: Check
    metrics: tuple[str, ...]
    expect: tuple[Expectation, ...]
    source: str

    def points(self, size: str) -> list[Point]:
        """The points to measure at one size."""
        self._check_size(size)
        return [self._point(self.sizes[size], value) for value in self.values[size]]

    def x_values(self, size: str) -> dict[str, int | float | str]:
        """The x axis at one size: label → value."""
        self._check_size(size)
        return {label_of(value): label_of(value) if isinstance(value, Mapping) else value for value in self.values[size]}

    @property
    def drawn_metrics(self) -> list[str]:
        """The metrics to draw: the first two of the plan, and those that an expectation judges."""
        return list(dict.fromkeys((*self.metrics[:2], *(expected.metric for expected in self.expect))))

    def _check_size(self, size: str) -> None:
        if size not in self.sizes:
            raise PlanError(f"plan {self.name!r} has no size {size!r}; it has {', '.join(self.sizes)}")

    def _point(self, size: Size, value: Any) -> Point:
        workload, parameters = self.workload, {**self.workload_parameters, **size.workload}
        label, series = label_of(value), self.series
        scope, _, name = self.vary.partition(".")
        if scope in _COUNTS:
            size = replace(size, **{scope: value})
        elif scope == "workload":
            changed = {name: value} if name else {key: item for key, item in value.items() if key != "label"}
            if "name" in changed:
                workload, parameters = changed.pop("name"), {}
            parameters |= changed
        else:
            series = tuple(Series(one.label, one.subject, {**one.parameters, name: value}) for one in series)
        parameters = {key: _data_folder() if item == DATA_FOLDER else item for key, item in parameters.items()}
        return Point(label, label if isinstance(value, Mapping) else value, size, workload, parameters, series)


def label_of(value: Any) -> str:
    """How a value of the x axis is written."""
    if isinstance(value, Mapping):
        return str(value["label"])
    return f"{value:,}" if isinstance(value, int) else str(value)


def _data_folder() -> str:
    folder = os.environ.get(DATA_FOLDER[1:])
    if not folder:
        raise PlanError(
            f"this size needs data that nearcast does not ship: set {DATA_FOLDER[1:]} to its folder, or take size tiny"
        )
    return folder


def list_plans() -> list[str]:
    """The names of the plans in the repository: <paper>/<figure>."""
    return sorted(path.relative_to(PLANS).with_suffix("").as_posix() for path in PLANS.glob("*/*.toml"))


def read_plan(name: str) -> Plan:
    """A plan by name, or from a file of your own (a path that ends in .toml)."""
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise PlanError(f"there is no plan file {name!r}; give an existing file or one of {', '.join(list_plans())}")
        return parse_plan(path.stem, path.read_text(encoding="utf-8"), str(path))
    if name not in list_plans():
        raise PlanError(f"there is no plan {name!r}; there are {', '.join(list_plans())}")
    return parse_plan(name, (PLANS / f"{name}.toml").read_text(encoding="utf-8"), f"plans/{name}.toml")


def parse_plan(name: str, source: str, file: str) -> Plan:
    """The plan written in `source`; `file` is how errors name it."""
    try:
        root = TomlTable(tomllib.loads(source), file)
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"{file} is not TOML: {error}") from None
    kind = root.one_of("kind", kinds())
    experiment = experiment_of(kind)
    workload = root.table("workload")
    sizes = {size: _read_size(table) for size, table in root.tables("sizes").items()}
    for size in sizes:
        if size not in SIZES:
            raise root.problem(f"has an unknown size 'sizes.{size}'; expected {', '.join(SIZES)}")
    vary, vary_label, values = _read_vary(root.table("vary"), tuple(sizes))
    series = tuple(_read_series(table, experiment.subject) for table in root.list_of_tables("series"))
    labels = [one.label for one in series]
    if not series or len(set(labels)) < len(labels):
        raise root.problem(f"has series labelled {labels}; expected at least one, and no label twice")
    check = root.table("check")
    plan = Plan(
        name=name,
        title=root.text("title"),
        paper=root.text("paper"),
        figure=root.text("figure"),
        claim=root.text("claim"),
        why=root.text("why", ""),
        kind=kind,
        seed=root.count("seed", 1),
        workload=workload.text("name"),
        workload_parameters=workload.rest(),
        sizes=sizes,
        vary=vary,
        vary_label=vary_label,
        values=values,
        series=series,
        check=Check(check.text("against"), check.count("messages")),
        metrics=tuple(root.texts("metrics", experiment.metrics)),
        expect=tuple(read_expectation(table, labels) for table in root.list_of_tables("expect", [])),
        source=source,
    )
    for table in (check, root):
        table.nothing_left()
    unknown = [metric for metric in plan.metrics if metric not in METRICS]
    if unknown:
        raise root.problem(f"has unknown metrics {unknown}; expected some of {', '.join(METRICS)}")
    return plan


def _read_size(table: TomlTable) -> Size:
    size = Size(
        n_subscriptions=table.count("n_subscriptions", 0),
        n_messages=table.count("n_messages"),
        repetitions=table.count("repetitions"),
        chunk=table.count("chunk", 250),
        n_history=table.count("n_history", 0),
        takes_turns=table.flag("takes_turns", False),
        built_percent=table.count("built_percent", 100),
        life=table.count("life", 10),
        warm_steps=table.count("warm_steps", 0),
        shards=table.count("shards", 8),
        workload=table.table("workload", {}).rest(),
    )
    table.nothing_left()
    if min(size.n_messages, size.repetitions, size.chunk, size.life, size.shards) < 1:
        raise table.problem("needs n_messages, repetitions, chunk, life and shards of at least 1")
    if size.built_percent > 100:
        raise table.problem(f"has built_percent = {size.built_percent}; expected 0 to 100")
    return size


def _read_vary(table: TomlTable, sizes: tuple[str, ...]) -> tuple[str, str, dict[str, tuple[Any, ...]]]:
    parameter = table.text("parameter")
    scope, _, name = parameter.partition(".")
    if not (parameter in (*_COUNTS, "workload") or (scope in ("workload", "series") and name)):
        raise table.problem(
            f"has parameter = {parameter!r}; expected {', '.join(_COUNTS)}, 'workload', 'workload.<name>' or 'series.<name>'"
        )
    label = table.text("label", parameter)
    common = table.values("values") if table.has("values") else None
    values = {size: tuple(table.values(size) if table.has(size) or common is None else common) for size in sizes}
    table.nothing_left()
    for value in (value for of_size in values.values() for value in of_size):
        if (parameter == "workload") != (isinstance(value, dict) and "label" in value):
            raise table.problem(f"has the value {value!r}; expected tables with a label for 'workload', else plain values")
    return parameter, label, values


def _read_series(table: TomlTable, subject: str) -> Series:
    name = table.text(subject)
    series = Series(table.text("label", name), name, table.table("parameters", {}).rest())
    table.nothing_left()
    return series
