"""The options of an index, and checks of them: the error says what was given and what was expected."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.errors import IndexParameterError


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
