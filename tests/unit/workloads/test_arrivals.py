"""Times follow from numbers, grow with them, and have a daily rhythm."""

from __future__ import annotations

import numpy as np

from nearcast.workloads.pool import DAY_S, MAY_2012, MONTHS_S, Arrivals

ARRIVALS = Arrivals(n=100_000, seed=3)


def test_times_grow_with_the_number_and_stay_within_the_months() -> None:
    times = ARRIVALS.times(np.arange(100_000))
    assert (np.diff(times) > 0).all()
    assert times[0] >= MAY_2012
    assert times[-1] <= MAY_2012 + MONTHS_S * 1.003


def test_any_subset_in_any_order_has_the_same_times() -> None:
    numbers = np.array([99_999, 5, 70_000, 70_001, 5])
    assert np.array_equal(ARRIVALS.times(numbers), ARRIVALS.times(np.arange(100_000))[numbers])


def test_gaps_are_those_of_a_poisson_stream() -> None:
    even = Arrivals(n=100_000, seed=3, rhythm=0.0)
    gaps = np.diff(even.times(np.arange(50_000)))
    assert 0.97 < gaps.std() / gaps.mean() < 1.03


def test_evenings_are_busier_than_mornings() -> None:
    hour = (ARRIVALS.times(np.arange(100_000)) - MAY_2012) % DAY_S / 3600
    per_hour = np.bincount(hour.astype(int), minlength=24)
    assert per_hour.argmax() in (19, 20)
    assert per_hour.argmin() in (7, 8)
    assert 4 < per_hour.max() / per_hour.min() < 7


def test_no_numbers_give_no_times() -> None:
    assert ARRIVALS.times(np.empty(0, np.int64)).size == 0
