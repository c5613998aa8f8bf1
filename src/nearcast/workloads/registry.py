"""Workloads by name, with their parameters."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import Any

from nearcast.errors import WorkloadError
from nearcast.workloads.base import Workload
from nearcast.workloads.boolean_expressions import BooleanExpressions
from nearcast.workloads.bursts import Bursts
from nearcast.workloads.gazetteer import Gazetteer
from nearcast.workloads.incidents import Incidents
from nearcast.workloads.long_messages import Cars, Reviews, Ships
from nearcast.workloads.moving import Moving
from nearcast.workloads.paper_groups import PaperGroups
from nearcast.workloads.poi import PointsOfInterest
from nearcast.workloads.tweets import Tweets

_CLASSES: tuple[Any, ...] = (
    Tweets,
    Gazetteer,
    Incidents,
    Cars,
    Ships,
    Reviews,
    PointsOfInterest,
    PaperGroups,
    BooleanExpressions,
    Bursts,
    Moving,
)
_BY_NAME = {kind.name: kind for kind in _CLASSES}


@dataclass(frozen=True, slots=True)
class WorkloadInfo:
    """One line about a workload, and its parameters with their defaults (`...` = must be given)."""

    description: str
    parameters: dict[str, Any]


def workload_names() -> dict[str, WorkloadInfo]:
    """Every workload that `open_workload` knows."""
    return {name: WorkloadInfo(kind.description, _parameters(kind)) for name, kind in _BY_NAME.items()}


def open_workload(name: str, **parameters: Any) -> Workload:
    """The workload called `name`; whatever is not given keeps its default."""
    kind = _BY_NAME.get(name)
    if kind is None:
        raise WorkloadError(f"there is no workload {name!r}; there are {', '.join(_BY_NAME)}")
    known = _parameters(kind)
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        raise WorkloadError(f"{name} does not take {', '.join(unknown)}; it takes {', '.join(known)}")
    missing = [field for field, default in known.items() if default is ... and field not in parameters]
    if missing:
        raise WorkloadError(f"{name} needs {', '.join(missing)}; give it as a parameter")
    workload: Workload = kind(**parameters)
    return workload


def _parameters(kind: Any) -> dict[str, Any]:
    return {field.name: ... if field.default is MISSING else field.default for field in fields(kind)}
