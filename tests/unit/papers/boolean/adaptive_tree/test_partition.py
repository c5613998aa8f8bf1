"""Groups of neighbours: the cheapest against brute force, the quick ones against the cheapest."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from nearcast.papers.boolean.adaptive_tree.kernels.partition import best_bounds, even_bounds, group_cost, improve_bounds

Values = NDArray[np.float64]


def running(values: Values) -> Values:
    return np.concatenate([[0.0], np.cumsum(values)])


def cost_of(weight: Values, chance: Values, bound: list[int]) -> float:
    return sum(float(group_cost(weight, weight, chance, i, j)) for i, j in pairwise(bound))


def cheapest(weight: Values, chance: Values, n_groups: int) -> float:
    n = len(weight) - 1
    return min(cost_of(weight, chance, [0, *inner, n]) for inner in combinations(range(1, n), n_groups - 1))


def best(weight: Values, chance: Values, n_groups: int) -> list[int]:
    n = len(weight) - 1
    bound, row = np.zeros(n_groups + 1, np.int64), np.zeros((2, n + 1))
    choice, stack = np.zeros((n_groups + 1) * (n + 1), np.int32), np.zeros(256, np.int64)
    best_bounds(weight, chance, n, n_groups, bound, row[0], row[1], choice, stack)
    return [int(b) for b in bound]


def quick(weight: Values, chance: Values, n_groups: int) -> list[int]:
    bound = np.zeros(n_groups + 1, np.int64)
    even_bounds(weight, weight, len(weight) - 1, n_groups, bound)
    improve_bounds(weight, weight, chance, n_groups, bound)
    return [int(b) for b in bound]


def test_a_group_costs_what_equation_3_says() -> None:
    weight, chance = running(np.array([4.0, 1.0, 3.0])), running(np.array([0.5, 0.25, 0.125]))
    assert group_cost(weight, weight, chance, 0, 2) == 5.0 * 0.75
    assert group_cost(weight, weight, chance, 2, 3) == 3.0 * 0.125
    assert cost_of(weight, chance, best(weight, chance, 2)) == 4.0 * 0.5 + 4.0 * 0.375


@pytest.mark.parametrize("seed", range(12))
def test_the_best_groups_are_as_cheap_as_trying_them_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 10))
    weight, chance = running(rng.integers(1, 50, n).astype(float)), running(rng.random(n))
    for n_groups in range(1, n + 1):
        bound = best(weight, chance, n_groups)
        assert all(a < b for a, b in pairwise(bound))
        assert cost_of(weight, chance, bound) == pytest.approx(cheapest(weight, chance, n_groups))


def test_the_quick_groups_are_never_cheaper_and_seldom_much_dearer() -> None:
    rng = np.random.default_rng(5)
    ratios = []
    for _ in range(30):
        n = int(rng.integers(20, 200))
        weight, chance = running(rng.pareto(1.0, n) + 1.0), running(rng.random(n))
        bound = quick(weight, chance, 10)
        assert all(a < b for a, b in pairwise(bound))
        ratios.append(cost_of(weight, chance, bound) / cost_of(weight, chance, best(weight, chance, 10)))
    assert min(ratios) >= 1.0 - 1e-12
    assert float(np.mean(ratios)) < 1.25


def test_one_heavy_member_leaves_room_for_the_groups_around_it() -> None:
    weight = running(np.array([1.0, 1.0, 100.0, 1.0]))
    bound = np.zeros(5, np.int64)
    even_bounds(weight, weight, 4, 4, bound)
    assert bound.tolist() == [0, 1, 2, 3, 4]
