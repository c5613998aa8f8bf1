"""Sixteen entries at once give what the plain twin gives, and never miss a subscription that is reached."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.kernels.compile import kernel
from nearcast.ranked.impact_grid.kernels import simd_near, simd_near_plain
from nearcast.ranked.impact_grid.kernels.simd_near_plain import (
    LOSS,
    MAX_RELATIVE_WEIGHT,
    MOST,
    MOST_OWN,
    MOST_WEIGHT,
    N_SLOTS,
    OWN,
)


@kernel
def _near_in_plane(entry, at, n, figures, relative_weight, word):  # type: ignore[no-untyped-def]
    return simd_near.near_in_plane(entry, at, n, figures, relative_weight, word)


@kernel
def _near_on_sphere(entry, at, n, figures, relative_weight, word):  # type: ignore[no-untyped-def]
    return simd_near.near_on_sphere(entry, at, n, figures, relative_weight, word)


OPERATIONS = ((_near_in_plane, simd_near_plain.near_in_plane), (_near_on_sphere, simd_near_plain.near_on_sphere))


@pytest.mark.parametrize("n", [1, 7, 16])
def test_lanes_are_those_of_the_twin(n: int) -> None:
    check_near(n)


def check_near(n: int) -> None:
    """Compare the operations of this level with their twins on `n` entries."""
    rng = np.random.default_rng(n)
    n_reached = [0] * len(OPERATIONS)
    for _ in range(60):
        entry = rng.integers(-(1 << 31), 1 << 31, 8 * n + 32).astype(np.int32)
        figures, word = np.zeros(OWN + 2, np.float32), 1
        figures[:3] = rng.uniform(0, 65535, 3)
        figures[OWN + word] = rng.random() / MOST_OWN
        figures[LOSS], figures[MOST] = (rng.random() * 2e-5 / MOST_WEIGHT) ** 2, (1 / MOST_WEIGHT) ** 2
        relative_weight = rng.integers(0, MAX_RELATIVE_WEIGHT + 1, 2 * N_SLOTS).astype(np.int16)
        for at, (fast, plain) in enumerate(OPERATIONS):
            lanes = fast(entry, 3, n, figures, relative_weight, word)
            assert lanes == plain(entry, 3, n, figures, relative_weight, word)
            n_reached[at] += bin(lanes).count("1")
    assert all(0 < reached < 60 * n for reached in n_reached)
