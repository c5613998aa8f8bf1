"""Verdicts follow from a handful of numbers."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.expectations import Expectation, Judgement, Verdict, overall


def judged(rule: str, argument: tuple[Any, ...], curves: Any, at: tuple[Any, ...] = ()) -> Judgement:
    return Expectation("as told", rule, argument, "us_per_message", at).judge(curves)


@pytest.mark.parametrize(
    ("a", "verdict"),
    [([1, 2, 3], "reproduced"), ([1, 2, 9], "same trend"), ([9, 9, 3], "not reproduced")],
)
def test_series_faster_counts_the_points_where_it_holds(a: list[float], verdict: Verdict) -> None:
    curves = {"a": dict(enumerate(a)), "b": {0: 4.0, 1: 4.0, 2: 4.0}}
    assert judged("series_faster", ("a", "b"), curves).verdict == verdict


def test_series_faster_can_be_limited_to_some_points() -> None:
    curves = {"a": {"points": 1.0, "ranges": 9.0}, "b": {"points": 2.0, "ranges": 2.0}}
    assert judged("series_faster", ("a", "b"), curves, at=("points",)).verdict == "reproduced"
    assert judged("series_faster", ("a", "b"), curves, at=("ranges",)).verdict == "not reproduced"
    assert judged("series_faster", ("a", "b"), curves, at=("lines",)).verdict == "not judged"
    assert judged("series_faster", ("a", "b"), {"a": {1: 1.0}, "b": {2: 1.0}}).verdict == "not judged"


@pytest.mark.parametrize(("last", "verdict"), [(15.0, "reproduced"), (22.0, "same trend"), (40.0, "not reproduced")])
def test_grows_slower_compares_factors(last: float, verdict: Verdict) -> None:
    curves = {"a": {1: 10.0, 10: last}, "b": {1: 1.0, 10: 2.0}}
    judgement = judged("grows_slower", ("a", "b"), curves)
    assert judgement.verdict == verdict
    assert "b 2x" in judgement.reason


@pytest.mark.parametrize(
    ("power", "verdict"), [(0.5, "reproduced"), (1.0, "reproduced"), (1.15, "same trend"), (2.0, "not reproduced")]
)
def test_linear_growth_is_a_slope(power: float, verdict: Verdict) -> None:
    curves = {"a": {n: float(n) ** power for n in (10, 100, 1000)}}
    assert judged("grows_at_most_linearly", ("a",), curves).verdict == verdict


def test_a_slope_needs_two_points() -> None:
    assert judged("grows_at_most_linearly", ("a",), {"a": {1: 1.0}}).verdict == "not judged"


@pytest.mark.parametrize(("value", "verdict"), [(2.2, "reproduced"), (2.5, "same trend"), (3.0, "not reproduced")])
def test_stays_within_compares_with_the_better_one(value: float, verdict: Verdict) -> None:
    curves = {"a": {1: 1.0, 2: value}, "b": {1: 1.0, 2: 2.0}, "c": {1: 5.0, 2: 9.0}}
    judgement = judged("stays_within", ("a", 1.1, "b", "c"), curves)
    assert judgement.verdict == verdict
    assert judgement.reason.startswith(f"a is 1.00 to {value / 2:.2f} times")


@pytest.mark.parametrize(("value", "verdict"), [(1.25, "reproduced"), (1.5, "same trend"), (2.0, "not reproduced")])
def test_stays_flat_compares_the_highest_with_the_lowest(value: float, verdict: Verdict) -> None:
    assert judged("stays_flat", ("a", 1.3), {"a": {1: 1.1, 2: 1.0, 3: value}}).verdict == verdict


@pytest.mark.parametrize(("value", "verdict"), [(1.1, "reproduced"), (1.4, "same trend"), (2.0, "not reproduced")])
def test_near_best_looks_at_one_point(value: float, verdict: Verdict) -> None:
    curves = {"a": {100: 1.0, 200: value, 400: 9.0}}
    assert judged("near_best", ("a", 200, 1.2), curves).verdict == verdict
    assert judged("near_best", ("a", 300, 1.2), curves).verdict == "not judged"


@pytest.mark.parametrize(("value", "verdict"), [(0.5, "reproduced"), (0.9, "same trend"), (1.1, "not reproduced")])
def test_at_most_is_a_bound_on_the_worst_point(value: float, verdict: Verdict) -> None:
    assert judged("at_most", ("a", 0.5), {"a": {1: 0.1, 2: value}}).verdict == verdict


@pytest.mark.parametrize(("value", "verdict"), [(1.5, "reproduced"), (5.0, "same trend"), (0.5, "not reproduced")])
def test_about_works_in_both_directions(value: float, verdict: Verdict) -> None:
    assert judged("about", ("a", 2.0), {"a": {1: value}}).verdict == verdict


def test_what_was_not_measured_is_not_judged() -> None:
    assert judged("at_most", ("a", 1.0), {}).verdict == "not judged"
    assert judged("", (), {}).verdict == "not judged"


def test_a_plan_is_as_good_as_its_worst_expectation() -> None:
    def verdict_of(*verdicts: Verdict) -> Verdict:
        return overall([Judgement(verdict, "") for verdict in verdicts])

    assert verdict_of("reproduced", "reproduced") == "reproduced"
    assert verdict_of("reproduced", "same trend") == "same trend"
    assert verdict_of("reproduced", "not judged") == "not judged"
    assert verdict_of("not judged", "not reproduced") == "not reproduced"
    assert verdict_of() == "not judged"
