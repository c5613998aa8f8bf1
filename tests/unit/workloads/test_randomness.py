"""Draws depend on their coordinates alone and look random."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.errors import WorkloadError
from nearcast.workloads.randomness import (
    alias_table,
    choose_entry,
    draw,
    draws,
    high_key,
    integers,
    low_key,
    normal_pair,
    normal_pairs,
    stream_key,
    uniforms,
)

KEY = stream_key(7, "test")


def test_the_array_form_and_the_kernel_form_give_the_same_bits() -> None:
    numbers = np.array([0, 1, 2, 12_700_000, 2**31, 2**40 + 5])
    for slot in (0, 1, 49, 5000):
        one_by_one = [draw(low_key(KEY, n), high_key(KEY, n), slot) for n in numbers]
        assert draws(KEY, numbers, slot).tolist() == one_by_one


def test_draws_do_not_depend_on_the_company_they_are_made_in() -> None:
    together = draws(KEY, np.arange(1000))
    assert np.array_equal(draws(KEY, np.array([999, 3, 500])), together[[999, 3, 500]])


def test_draws_are_32_bits_and_even() -> None:
    bits = draws(KEY, np.arange(100_000))
    assert bits.min() >= 0
    assert bits.max() < 2**32
    for shift in (0, 12, 24):
        counts = np.bincount((bits >> shift) & 255, minlength=256)
        chi_square = float(((counts - counts.mean()) ** 2 / counts.mean()).sum())
        assert 160 < chi_square < 370


def test_seeds_purposes_and_slots_are_unrelated() -> None:
    numbers = np.arange(20_000)
    streams = [uniforms(key, numbers, slot) for key in (KEY, stream_key(8, "test"), stream_key(7, "other")) for slot in (0, 1)]
    correlation = np.corrcoef(streams) - np.eye(len(streams))
    assert np.abs(correlation).max() < 0.04


def test_neighbouring_numbers_share_no_draws_at_any_lag() -> None:
    table = np.stack([draws(KEY, np.arange(2000), slot) for slot in range(30)])
    assert np.unique(table).size == table.size


def test_integers_reach_both_ends_and_nothing_else() -> None:
    assert np.unique(integers(KEY, np.arange(500), 1, 5)).tolist() == [1, 2, 3, 4, 5]
    assert integers(KEY, np.arange(50), 3, 3).tolist() == [3] * 50


def test_normal_pairs_have_the_right_moments_and_agree_with_the_kernel() -> None:
    first, second = draws(KEY, np.arange(20_000)), draws(KEY, np.arange(20_000), 1)
    x, y = normal_pairs(first, second)
    assert abs(x.mean()) < 0.03
    assert abs(y.std() - 1) < 0.03
    assert np.allclose([normal_pair(a, b) for a, b in zip(first[:100], second[:100], strict=True)], np.stack([x, y], 1)[:100])


def test_an_alias_table_gives_back_its_distribution() -> None:
    weight = np.array([5.0, 0.0, 1.0, 3.0, 1.0])
    table = alias_table(weight)
    first, second = draws(KEY, np.arange(20_000)), draws(KEY, np.arange(20_000), 1)
    entries = np.array([choose_entry(table, a, b) for a, b in zip(first, second, strict=True)])
    assert np.allclose(np.bincount(entries, minlength=5) / entries.size, weight / weight.sum(), atol=0.015)
    assert not (entries == 1).any()


@pytest.mark.parametrize("weight", [[], [0.0, 0.0], [1.0, -1.0, 3.0]])
def test_weights_that_are_no_distribution_are_refused(weight: list[float]) -> None:
    with pytest.raises(WorkloadError, match="non-negative"):
        alias_table(np.array(weight))
