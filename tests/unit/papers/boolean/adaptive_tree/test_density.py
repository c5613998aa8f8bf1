"""Mass of a box under running sums over a grid."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.kernels.layouts import ClauseArrays
from nearcast.papers.boolean.adaptive_tree.cost_inputs import density_of_clauses
from nearcast.papers.boolean.adaptive_tree.kernels.by_space import count_below


def clauses_at(x: list[float], y: list[float]) -> ClauseArrays:
    sides = [np.array(values, float) for values in (x, y, x, y)]
    return ClauseArrays(
        np.zeros(len(x) + 1, np.int64), np.zeros(0, np.int32), sides[0], sides[1], sides[2], sides[3], np.ones(len(x), np.uint8)
    )


def test_all_mass_lies_below_the_upper_right_corner_and_none_below_the_lower_left() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.random(2000).tolist(), rng.random(2000).tolist()
    density = density_of_clauses(clauses_at(x, y), np.arange(2000, dtype=np.int32), True)
    assert density.frame[6] == 8
    total = count_below(density.count_sum, density.frame, 2.0, 1e300)
    assert total == pytest.approx(2000 * 1.05)
    assert count_below(density.count_sum, density.frame, -1.0, 0.5) == 0.0
    half = count_below(density.count_sum, density.frame, 0.5, 2.0)
    assert half == pytest.approx(total / 2, rel=0.1)


def test_without_guessing_mass_is_area() -> None:
    density = density_of_clauses(clauses_at([0.0, 0.0, 0.0, 10.0], [0.0, 0.0, 0.0, 4.0]), np.arange(4, dtype=np.int32), False)
    whole = count_below(density.count_sum, density.frame, 10.0, 4.0)
    assert count_below(density.count_sum, density.frame, 2.5, 4.0) <= whole / 2


def test_a_region_of_no_width_and_one_of_all_numbers_have_finite_mass() -> None:
    for x in ([3.0, 3.0], [-1.7e308, 1.7e308], [1e-310, 2e-310]):
        density = density_of_clauses(clauses_at(x, [0.0, 1.0]), np.arange(2, dtype=np.int32), True)
        assert np.isfinite(count_below(density.count_sum, density.frame, 1.0, 1.0))
    nowhere = density_of_clauses(clauses_at([], []), np.arange(0, dtype=np.int32), False)
    assert count_below(nowhere.count_sum, nowhere.frame, 1.0, 1.0) >= 0.0
