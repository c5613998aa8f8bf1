"""Experiments: one module for each kind of plan. The name of the module is the `kind` that a plan states.

To add a kind, add a module here with a subclass of `Experiment` and the line `EXPERIMENT = <the class>`. Nothing else lists it.
"""

from __future__ import annotations

import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, TypeVar

from nearcast.errors import PlanError

if TYPE_CHECKING:
    from benchmarks.plan import Plan, Point, Series
    from benchmarks.record import Record

P = TypeVar("P")
OnProgress = Callable[[str], None]


class Experiment(ABC, Generic[P]):
    """Measures all series of a plan at one point.

    Made for each point, which refuses a plan that cannot be measured; then `prepare`, `measure` for each series, and `check`.
    It is a context manager: what is put into `resources` is closed at the end.
    """

    subject: ClassVar[Literal["index", "method"]]
    """What a series names: an index of the registry, or one of `methods`."""
    methods: ClassVar[Collection[str]] = ()
    metrics: ClassVar[tuple[str, ...]]
    """The metrics that are shown if a plan does not state its own."""

    def __init__(self, plan: Plan, point: Point, on_progress: OnProgress = lambda what: None) -> None:
        self.plan, self.point, self.on_progress = plan, point, on_progress
        self.resources = ExitStack()
        for series in point.series:
            if self.subject == "method" and series.subject not in self.methods:
                raise PlanError(f"method {series.subject!r} of {plan.name!r}: expected one of {', '.join(self.methods)}")
        self.parameters: Mapping[str, P] = {series.label: self.read_parameters(series) for series in point.series}
        """By label of the series."""
        self.check_plan()

    @abstractmethod
    def read_parameters(self, series: Series) -> P:
        """The parameters that the plan gives a series. PlanError, or IndexParameterError, if one is unknown."""

    def check_plan(self) -> None:
        """Refuse a plan that cannot be measured, before anything is generated."""

    @abstractmethod
    def prepare(self) -> None:
        """Generate what all series share."""

    @abstractmethod
    def measure(self, series: Series) -> Record:
        """Measure one series: its times and counters, and the facts that only this experiment has."""

    def measure_group(self, group: Sequence[Series]) -> list[Record]:
        """Measure series that take turns; one after the other, unless the experiment can do better."""
        records = []
        for series in group:
            self.on_progress(series.label)
            records.append(self.measure(series))
        return records

    def check(self, records: Sequence[Record]) -> None:
        """Compare what the series answered, and add the fact `check` to their records. A wrong answer is a NearcastError.

        Experiments that compare each series with something made in `prepare` do it in `measure`.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.resources.close()


def kinds() -> list[str]:
    """The kinds of experiment there are."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg)


def experiment_of(kind: str) -> type[Experiment[Any]]:
    """The experiment that measures plans of a kind."""
    experiment: type[Experiment[Any]] = import_module(f"{__name__}.{kind}").EXPERIMENT
    return experiment


def steps_per_point(plan: Plan) -> int:
    """How often `measure_point` calls `on_progress`."""
    return 2 + len(plan.series)


def measure_point(plan: Plan, point: Point, on_progress: OnProgress) -> list[Record]:
    """One record for each series, checked."""
    with experiment_of(plan.kind)(plan, point, on_progress) as experiment:
        on_progress("generating")
        experiment.prepare()
        # Series that take turns share whatever else the machine does meanwhile, but all must fit into memory.
        groups = [point.series] if point.size.takes_turns else [(series,) for series in point.series]
        records = [record for group in groups for record in experiment.measure_group(group)]
        on_progress("checking")
        experiment.check(records)
    return records


def read_fields(kind: type[P], series: Series) -> P:
    """The parameters of a series as a dataclass whose fields all have defaults."""
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(series.parameters) - set(known))
    if unknown:
        raise PlanError(f"series {series.label!r} has the parameters {unknown}; expected some of {', '.join(known)}")
    for name, value in series.parameters.items():
        expected = type(known[name].default)
        if not isinstance(value, expected):
            raise PlanError(f"series {series.label!r} has {name} = {value!r}; expected a value of type {expected.__name__}")
    return kind(**series.parameters)


def check_reference(plan: Plan, known: Collection[str], scan: str) -> None:
    """Refuse a plan that compares answers with an index that does not exist, or a single series with the others."""
    against = plan.check.against
    if against == "other":
        if len(plan.series) < 2:
            raise PlanError(f"plan {plan.name!r} checks against 'other' but has one series; check against {scan!r}")
    elif against not in known:
        raise PlanError(f"plan {plan.name!r} checks against {against!r}; expected 'other' or one of {', '.join(known)}")
