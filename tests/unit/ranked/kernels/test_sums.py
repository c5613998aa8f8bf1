"""Sums of values from the smallest up, whatever their order."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from nearcast.kernels.compile import kernel
from nearcast.ranked.kernels.scoring import steady_sum, sum_in_order, sum_of_five


@kernel
def summed(values):  # type: ignore[no-untyped-def]
    return sum_of_five(values[0], values[1], values[2], values[3], values[4])


def test_five_values_in_any_order_have_one_sum_to_the_last_bit() -> None:
    given = [0.1, 1e-17, 3.3, 0.7, 1e9 / 3.0]
    expected = steady_sum(np.array(given), 5)
    assert {float(summed(np.array(order))) for order in permutations(given)} == {expected}
    # The order matters, or this would prove nothing.
    assert len({float(np.cumsum(order)[-1]) for order in permutations(given)}) > 1


def test_values_that_are_not_there_are_zero() -> None:
    draw = np.random.default_rng(3)
    for n in range(1, 6):
        for _ in range(50):
            there = draw.random(n) * 10.0 ** draw.integers(-9, 9, n)
            padded = draw.permutation(np.concatenate([there, np.zeros(5 - n)]))
            assert summed(padded) == steady_sum(there.copy(), n)


def test_many_values_are_summed_in_their_order() -> None:
    draw = np.random.default_rng(4)
    for n in (0, 1, 2, 15, 16, 17, 40, 128, 129, 300):
        # Some of them equal, some 0.
        values = np.round(draw.random(n), 2) * 10.0 ** draw.integers(-9, 9, n)
        assert sum_in_order(values, n, np.empty(n)) == steady_sum(values.copy(), n)
