"""The options of a moving grid."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.engine.registry import Parameters
from nearcast.errors import IndexParameterError
from nearcast.moving.moving_grid.layout import MOST_LEVELS


@dataclass(frozen=True, slots=True)
class MovingGridParameters(Parameters):
    """From how many clauses, and messages, on a keyword has a grid; its first level (2^level columns and rows), and how many
    times as many messages make it finer; of clauses sixteen times as many."""

    smallest_clause_grid: int = 64
    smallest_message_grid: int = 128
    first_level: int = 4
    growth: int = 64

    def __post_init__(self) -> None:
        for name, least, most in (
            ("smallest_clause_grid", 1, 1 << 20),
            ("smallest_message_grid", 1, 1 << 20),
            ("first_level", 1, MOST_LEVELS),
            ("growth", 2, 1 << 20),
        ):
            if not least <= getattr(self, name) <= most:
                raise IndexParameterError(f"{name}={getattr(self, name)!r} is not possible; expected {least} to {most}")
