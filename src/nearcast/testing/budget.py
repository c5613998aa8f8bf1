"""How much a test run does, and how much it did: little when kernels are interpreted or bounds-checked, a lot in a soak."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Budget:
    """How many of each thing the tests of one index may do."""

    worlds: int
    histories: int
    history_steps: int
    many: int
    seeds: int
    """Random worlds that one named case goes through."""
    named_variants: int
    """Variants of an index that go through the named cases, from its first on."""
    is_soak: bool = False
    """Whether time does not matter: every variant takes the whole budget, and a failing history is shrunk (minutes)."""


COMPILED = Budget(worlds=100, histories=8, history_steps=20, many=3000, seeds=3, named_variants=1)
INTERPRETED = Budget(worlds=20, histories=4, history_steps=15, many=1000, seeds=1, named_variants=1)
SOAK = Budget(worlds=10_000, histories=100, history_steps=50, many=20_000, seeds=10, named_variants=100, is_soak=True)


def current_budget() -> Budget:
    """What the environment asks for: NEARCAST_SOAK=1, NUMBA_DISABLE_JIT=1, NUMBA_BOUNDSCHECK=1, or none of them."""
    if _is_set("NEARCAST_SOAK"):
        return SOAK
    return INTERPRETED if _is_set("NUMBA_DISABLE_JIT") or _is_set("NUMBA_BOUNDSCHECK") else COMPILED


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "0") not in ("", "0")


@dataclass(slots=True)
class Tally:
    """What was compared with the oracle: counts by kind of engine, and which configurations took part.

    Counts are of worlds, histories, actions, messages (each a tick of a ranked engine) and changes (or deliveries).
    """

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    configurations: dict[str, set[str]] = field(default_factory=dict)

    def add(self, kind: str, **counts: int) -> None:
        self.counts.setdefault(kind, Counter()).update(counts)

    def add_configuration(self, kind: str, name: str) -> None:
        self.configurations.setdefault(kind, set()).add(name)

    def merge(self, other: Tally) -> None:
        for kind, counts in other.counts.items():
            self.add(kind, **counts)
        for kind, names in other.configurations.items():
            self.configurations.setdefault(kind, set()).update(names)

    def lines(self) -> list[str]:
        """One line for each kind."""
        lines = []
        for kind, counts in sorted(self.counts.items()):
            numbers = {"configurations": len(self.configurations.get(kind, ())), **dict(sorted(counts.items()))}
            lines.append(f"{kind}: " + ", ".join(f"{number:,} {name}" for name, number in numbers.items() if number))
        return lines

    def clear(self) -> None:
        self.counts.clear()
        self.configurations.clear()


TALLY = Tally()
"""What this process has compared since it was cleared. Tests clear it, and report it (`tests/conftest.py`)."""
