"""Every index by name: its class, the paper it comes from, its parameters.

Each kind of subscription lists the names of its indexes in its `indexes.py`. A class is named as "module:Class" and loaded when
it is asked for, so a process that matches with one index does not load the kernels of all others. Nothing but such a string
names `nearcast.papers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from importlib import import_module
from typing import Any, Generic, TypeVar

from nearcast.errors import IndexParameterError

# By name too: these modules import this one.
_NAMES_OF_KIND = {
    "boolean": "nearcast.boolean.indexes:BOOLEAN_INDEXES",
    "moving": "nearcast.moving.indexes:MOVING_INDEXES",
    "ranked": "nearcast.ranked.indexes:RANKED_INDEXES",
}
KINDS = tuple(_NAMES_OF_KIND)
Index = TypeVar("Index")


@dataclass(frozen=True, slots=True)
class IndexNames(Generic[Index]):
    """The indexes with one interface: what errors call one (`what`), the name of the best (`auto`), the class of each name."""

    what: str
    auto: str
    classes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """What to know before choosing an index: where it comes from, and its parameters with their defaults."""

    name: str
    paper: str
    summary: str
    parameters: Mapping[str, Any]
    aliases: tuple[str, ...] = ()


def indexes(kind: str = "boolean") -> dict[str, IndexInfo]:
    """The registered indexes of one kind of subscription."""
    classes = [_load(reference) for reference in names_of(kind).classes.values()]
    return {cls.name: IndexInfo(cls.name, cls.paper, cls.summary, _defaults(cls), cls.aliases) for cls in classes}


def names_of(kind: str) -> IndexNames[Any]:
    """The names of one kind, for modules that must not import its interface."""
    if kind not in KINDS:
        raise IndexParameterError(f"there is no kind of index {kind!r}; expected one of {', '.join(KINDS)}")
    names: IndexNames[Any] = _load(_NAMES_OF_KIND[kind])
    return names


def create(names: IndexNames[Index], name: str, parameters: Mapping[str, Any]) -> Index:
    """An empty index; "auto" is the best one registered."""
    cls: Any = index_class(names, name)
    index: Index = cls(_read_parameters(cls, parameters))
    return index


def index_class(names: IndexNames[Index], name: str) -> type[Index]:
    """The class of a name or of an alias; "auto" is the best one registered."""
    key = names.auto if name == "auto" else name
    cls: type[Index]
    if key in names.classes:
        cls = _load(names.classes[key])
        return cls
    for cls in map(_load, names.classes.values()):
        if key in cls.aliases:  # type: ignore[attr-defined]
            return cls
    raise IndexParameterError(f"there is no {names.what} {name!r}; expected 'auto' or one of {', '.join(names.classes)}")


def _load(reference: str) -> Any:
    module, name = reference.split(":")
    return getattr(import_module(module), name)


def _read_parameters(cls: Any, parameters: Mapping[str, Any]) -> Any:
    known = _defaults(cls)
    for name, value in parameters.items():
        if name not in known:
            takes = ", ".join(known) or "no parameters"
            raise IndexParameterError(f"index {cls.name!r} has no parameter {name!r}; it takes {takes}")
        expected = type(known[name])
        if not isinstance(value, expected) and not (expected is float and isinstance(value, int)):
            raise IndexParameterError(f"{name}={value!r} is of type {type(value).__name__}; expected {expected.__name__}")
    return cls.parameters_class(**parameters)


def _defaults(cls: Any) -> dict[str, Any]:
    return {f.name: f.default for f in fields(cls.parameters_class) if f.default is not MISSING}


@dataclass(frozen=True, slots=True)
class Parameters:
    """The options of an index, as fields of a frozen dataclass with defaults. Each index with options has a subclass."""


def check_choice(name: str, value: str, expected: tuple[str, ...]) -> None:
    """IndexParameterError unless the value is one of those."""
    if value not in expected:
        raise IndexParameterError(f"{name}={value!r} is unknown; expected one of {', '.join(map(repr, expected))}")


def check_range(name: str, value: int, low: int, high: int) -> None:
    """IndexParameterError unless the value lies between the two."""
    if not low <= value <= high:
        raise IndexParameterError(f"{name}={value!r} is not possible; expected {low} to {high}")
