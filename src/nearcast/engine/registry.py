"""Every index by name: its class, the paper it comes from, its parameters.

What the names of a kind of subscription are is said where its interface is; a class may live anywhere and is named as
"module:Class". It is loaded when it is asked for: a process that matches with one index does not wait for the kernels of all
the others, and nothing but a name leads to indexes that only papers need.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from importlib import import_module
from typing import Any, Generic, TypeVar

from nearcast.errors import IndexParameterError

# Where the names of each kind are: by name too, because they know this module and not the other way round.
_NAMES_OF_KIND = {
    "boolean": "nearcast.boolean.indexes:BOOLEAN_INDEXES",
    "moving": "nearcast.moving.indexes:MOVING_INDEXES",
    "ranked": "nearcast.ranked.indexes:RANKED_INDEXES",
}
KINDS = tuple(_NAMES_OF_KIND)
Index = TypeVar("Index")


@dataclass(frozen=True, slots=True)
class IndexNames(Generic[Index]):
    """The indexes with one interface: what one is called in errors, which is the best, where the class of each name is."""

    what: str
    auto: str
    classes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """What there is to know before choosing an index: where it comes from and its parameters with their defaults."""

    name: str
    paper: str
    summary: str
    parameters: Mapping[str, Any]
    aliases: tuple[str, ...] = ()


def indexes(kind: str = "boolean") -> dict[str, IndexInfo]:
    """The registered indexes of one kind of subscription."""
    found = [_load(reference) for reference in names_of(kind).classes.values()]
    return {cls.name: IndexInfo(cls.name, cls.paper, cls.summary, _defaults(cls), cls.aliases) for cls in found}


def names_of(kind: str) -> IndexNames[Any]:
    """The names of one kind, for who must not import its interface."""
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
    wanted = names.auto if name == "auto" else name
    chosen: type[Index]
    if wanted in names.classes:
        chosen = _load(names.classes[wanted])
        return chosen
    for chosen in map(_load, names.classes.values()):
        if wanted in chosen.aliases:  # type: ignore[attr-defined]
            return chosen
    raise IndexParameterError(f"there is no {names.what} {name!r}; expected 'auto' or one of {', '.join(names.classes)}")


def _load(reference: str) -> Any:
    module, name = reference.split(":")
    return getattr(import_module(module), name)


def _read_parameters(cls: Any, given: Mapping[str, Any]) -> Any:
    known = _defaults(cls)
    for name, value in given.items():
        if name not in known:
            takes = ", ".join(known) or "no parameters"
            raise IndexParameterError(f"index {cls.name!r} has no parameter {name!r}; it takes {takes}")
        expected = type(known[name])
        if not isinstance(value, expected) and not (expected is float and isinstance(value, int)):
            raise IndexParameterError(f"{name}={value!r} is of type {type(value).__name__}; expected {expected.__name__}")
    return cls.parameters_class(**given)


def _defaults(cls: Any) -> dict[str, Any]:
    return {f.name: f.default for f in fields(cls.parameters_class) if f.default is not MISSING}


# -- The options of an index, and checks of them: the error says what was given and what was expected.


@dataclass(frozen=True, slots=True)
class Parameters:
    """The options of an index: frozen dataclass fields with defaults. Base of each index's own."""


def check_choice(name: str, given: str, expected: tuple[str, ...]) -> None:
    """IndexParameterError unless the value is one of those."""
    if given not in expected:
        raise IndexParameterError(f"{name}={given!r} is unknown; expected one of {', '.join(map(repr, expected))}")


def check_range(name: str, given: int, low: int, high: int) -> None:
    """IndexParameterError unless the value lies between the two."""
    if not low <= given <= high:
        raise IndexParameterError(f"{name}={given!r} is not possible; expected {low} to {high}")
