"""A figure as a file: reads a plan, refuses what it does not know, and spells out the points to measure."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from benchmarks.expectations import Expectation, read_expectation
from benchmarks.metrics import METRICS
from benchmarks.plan_kinds import DEFAULT_METRICS, SUBJECTS
from benchmarks.toml_table import TomlTable
from nearcast.errors import PlanError

SIZES = ("tiny", "small", "paper")
DATA_FOLDER = "$NEARCAST_DATA"
_COUNTS = ("n_subscriptions", "n_messages", "built_percent", "life", "shards")


@dataclass(frozen=True, slots=True)
class Size:
    """How large an experiment is; `workload` overrides parameters of the plan's workload.

    `n_history` past messages are given to indexes with a cost model. Series that take turns are all built first and then
    timed pass by pass, one after the other: for ratios near 1, where everything fits into memory. Of the subscriptions
    `built_percent` are there from the start, the rest is inserted in small batches before messages come. Kind
    "moving" and "ranked": `n_messages` arrive in each of `repetitions` time steps, and live for `life` steps; `warm_steps`
    more pass before the clock runs. `shards` is for kinds that share the work out.
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
    """One curve: an index (or method) with its parameters."""

    label: str
    subject: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Check:
    """Answers are compared with those of `against` (an index, or "other": the next series) on `messages` messages."""

    against: str
    messages: int


@dataclass(frozen=True, slots=True)
class Point:
    """One place on the x axis, with everything that holds there."""

    label: str
    value: int | float | str
    size: Size
    workload: str
    workload_parameters: Mapping[str, Any]
    series: tuple[Series, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """An experiment: what varies, what is fixed, who takes part, what is claimed; `why` explains where we depart from it."""

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
        """The x axis at one size."""
        if size not in self.sizes:
            raise PlanError(f"plan {self.name!r} has no size {size!r}; it has {', '.join(self.sizes)}")
        return [self._point(self.sizes[size], value) for value in self.values[size]]

    def _point(self, size: Size, value: Any) -> Point:
        workload, parameters = self.workload, {**self.workload_parameters, **size.workload}
        label, series = f"{value:,}" if isinstance(value, int) else str(value), self.series
        scope, _, name = self.vary.partition(".")
        if scope in _COUNTS:
            size = replace(size, **{scope: value})
        elif scope == "workload":
            given = {key: item for key, item in value.items() if key != "label"} if not name else {name: value}
            if "name" in given:
                workload, parameters = given.pop("name"), {}
            parameters |= given
            label = str(value["label"]) if not name else label
        else:
            series = tuple(Series(one.label, one.subject, {**one.parameters, name: value}) for one in series)
        parameters = {key: _data_folder() if item == DATA_FOLDER else item for key, item in parameters.items()}
        return Point(label, label if isinstance(value, Mapping) else value, size, workload, parameters, series)


def _data_folder() -> str:
    folder = os.environ.get(DATA_FOLDER[1:])
    if not folder:
        raise PlanError(
            f"this size needs data that nearcast does not ship: set {DATA_FOLDER[1:]} to its folder, or take size tiny"
        )
    return folder


def list_plans() -> list[str]:
    """The names of the plans that ship with nearcast: <paper>/<figure>."""
    papers = [folder for folder in _plans_folder().iterdir() if folder.is_dir()]
    return sorted(
        f"{paper.name}/{file.name.removesuffix('.toml')}"
        for paper in papers
        for file in paper.iterdir()
        if file.name.endswith(".toml")
    )


def read_plan(name: str) -> Plan:
    """A plan by name, or from a file of one's own (a path that ends in .toml)."""
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise PlanError(f"there is no plan file {name!r}; give an existing file or one of {', '.join(list_plans())}")
        return parse_plan(path.stem, path.read_text(encoding="utf-8"), str(path))
    if name not in list_plans():
        raise PlanError(f"there is no plan {name!r}; there are {', '.join(list_plans())}")
    file = _plans_folder().joinpath(f"{name}.toml")
    return parse_plan(name, file.read_text(encoding="utf-8"), f"plans/{name}.toml")


def parse_plan(name: str, source: str, file: str) -> Plan:
    """The plan written in `source`; `file` is how errors name it."""
    try:
        root = TomlTable(tomllib.loads(source), file)
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"{file} is not TOML: {error}") from None
    kind = root.one_of("kind", tuple(SUBJECTS))
    workload = root.table("workload")
    sizes = {size: _read_size(table) for size, table in root.tables("sizes").items()}
    for size in sizes:
        if size not in SIZES:
            raise root.problem(f"has an unknown size 'sizes.{size}'; expected {', '.join(SIZES)}")
    vary, vary_label, values = _read_vary(root.table("vary"), tuple(sizes))
    series = tuple(_read_series(table, SUBJECTS[kind]) for table in root.list_of_tables("series"))
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
        metrics=tuple(root.texts("metrics", DEFAULT_METRICS[kind])),
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
    for value in (value for listed in values.values() for value in listed):
        if (parameter == "workload") != (isinstance(value, dict) and "label" in value):
            raise table.problem(f"has the value {value!r}; expected tables with a label for 'workload', else plain values")
    return parameter, label, values


def _read_series(table: TomlTable, subject: str) -> Series:
    named = table.text(subject)
    series = Series(table.text("label", named), named, table.table("parameters", {}).rest())
    table.nothing_left()
    return series


def _plans_folder() -> Any:
    return resources.files("benchmarks").joinpath("plans")
