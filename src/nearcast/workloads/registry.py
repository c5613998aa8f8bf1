"""Workloads by name, with their parameters."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import Any

from nearcast.errors import WorkloadError
from nearcast.workloads.base import Workload
from nearcast.workloads.corpus import Gazetteer, Incidents
from nearcast.workloads.long_messages import Cars, Reviews, Ships
from nearcast.workloads.moving import Moving
from nearcast.workloads.short_messages import PointsOfInterest, Tweets
from nearcast.workloads.variants import BooleanExpressions, Bursts, PaperGroups

_CLASSES: tuple[type[Any], ...] = (
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
    """A description of a workload, and its parameters with their defaults (`...` = required)."""

    description: str
    parameters: dict[str, Any]


def workload_names() -> dict[str, WorkloadInfo]:
    """Every workload that `open_workload` knows."""
    return {name: WorkloadInfo(kind.description, _parameters(kind)) for name, kind in _BY_NAME.items()}


def open_workload(name: str, **parameters: Any) -> Workload:
    """The workload called `name`. Parameters left out keep their defaults."""
    kind = _BY_NAME.get(name)
    if kind is None:
        raise WorkloadError(f"there is no workload {name!r}; there are {', '.join(_BY_NAME)}")
    defaults = _parameters(kind)
    unknown = sorted(set(parameters) - set(defaults))
    if unknown:
        raise WorkloadError(f"{name} does not take {', '.join(unknown)}; it takes {', '.join(defaults)}")
    missing = [field for field, default in defaults.items() if default is ... and field not in parameters]
    if missing:
        raise WorkloadError(f"{name} needs {', '.join(missing)}; give it as a parameter")
    workload: Workload = kind(**parameters)
    return workload


def _parameters(kind: Any) -> dict[str, Any]:
    return {field.name: ... if field.default is MISSING else field.default for field in fields(kind)}
