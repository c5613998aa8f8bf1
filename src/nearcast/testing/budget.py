"""How much a test run does: little when kernels are interpreted or bounds-checked, a lot for a soak."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """How many of each thing the tests of one index may do."""

    worlds: int
    histories: int
    history_steps: int
    many: int
    seeds: int
    """How many random worlds a named case goes through."""
    named_variants: int
    """How many variants of an index go through the named cases, from its first on."""
    is_soak: bool = False
    """Whether time is no object: every variant takes the whole budget, and a failing history is shortened (minutes)."""


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
