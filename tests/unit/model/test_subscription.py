"""Subscriptions: legal and illegal combinations."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

from nearcast.errors import InterestError, KeywordError, NearcastError, RegionError, SubscriptionError
from nearcast.model.analysis import Analysis
from nearcast.model.dnf import Clause
from nearcast.model.interest import parse_interest
from nearcast.model.regions import Box, Circle, Polygon
from nearcast.model.subscription import RankedSubscription, Subscription


def test_keywords_are_stored_sorted_distinct_and_normalised() -> None:
    some = Subscription(1, keywords=["Sale", "iPad", "SALE"], region=Box(0, 0, 1, 1))
    assert some.keywords == ("ipad", "sale")
    assert some.clauses() == (Clause(frozenset({"ipad", "sale"}), frozenset()),)
    assert some == Subscription(1, ["ipad", "sale"], Box(0, 0, 1, 1))
    assert len({some, pickle.loads(pickle.dumps(some))}) == 1


def test_neither_keywords_nor_interest_means_any_words() -> None:
    for some in (Subscription("x"), Subscription("x", keywords=[])):
        assert some.keywords == ()
        assert some.region is None
        assert some.clauses(Analysis()) == (Clause(frozenset(), frozenset()),)


def test_integer_keywords_are_an_id_space_of_their_own() -> None:
    some = Subscription(1, keywords=np.array([7, 3, 7], dtype=np.int32))
    assert some.keywords == (3, 7)
    assert some.clauses(Analysis(stem="english"))[0].required == {3, 7}


@pytest.mark.parametrize("id", ["", True, None, 1.5, 2**63, -(2**63) - 1, b"x", ("a",), "\ud800"])
def test_unusable_ids_are_refused(id: Any) -> None:
    with pytest.raises(SubscriptionError, match="id"):
        Subscription(id)
    with pytest.raises(SubscriptionError, match="id"):
        RankedSubscription(id, ["a"], (0, 0))


def test_ids_at_the_ends_of_int64_and_strings_are_kept() -> None:
    for id in (2**63 - 1, -(2**63), 0, "é", " "):
        assert Subscription(id).id == id
    assert type(Subscription(np.int64(5)).id) is int  # type: ignore[arg-type]


def test_keywords_and_interest_together_are_refused() -> None:
    with pytest.raises(SubscriptionError, match="one of them"):
        Subscription(1, keywords=["a"], interest="b")
    with pytest.raises(SubscriptionError):
        Subscription(1, keywords=[], interest="b")


@pytest.mark.parametrize("keywords", ["pizza", ["a", ""], ["a", 1], [None], 5])
def test_unusable_keywords_are_refused(keywords: Any) -> None:
    with pytest.raises(KeywordError):
        Subscription(1, keywords=keywords)


def test_the_number_of_keywords_is_limited() -> None:
    assert len(Subscription(1, keywords=[f"w{i % 256}" for i in range(1_000)]).keywords) == 256
    with pytest.raises(KeywordError, match="257 distinct"):
        Subscription(1, keywords=[f"w{i}" for i in range(257)])


def test_interests_are_parsed_at_once() -> None:
    some = Subscription(1, interest="(ipad OR iphone) AND NOT broken")
    assert some.interest == parse_interest("(ipad OR iphone) AND NOT broken")
    assert len(some.clauses(Analysis())) == 2
    assert Subscription(1, interest=parse_interest("a")).clauses() == (Clause(frozenset({"a"})),)
    for bad in ("", "(a", "a AND NOT a", " ".join(f"(a{i} OR b{i})" for i in range(20))):
        with pytest.raises(InterestError):
            Subscription(1, interest=bad)
    with pytest.raises(SubscriptionError, match="interest=5"):
        Subscription(1, interest=5)  # type: ignore[arg-type]


def test_regions_may_be_given_in_any_form() -> None:
    triangle = Polygon([[(0, 0), (1, 0), (1, 1)]])
    assert Subscription(1, region=triangle.__geo_interface__).region == triangle
    assert Subscription(1, region="POLYGON ((0 0, 1 0, 1 1, 0 0))").region == triangle
    assert Subscription(1, region=Circle(1000, 1000, 5)).region == Circle(1000, 1000, 5)
    with pytest.raises(RegionError):
        Subscription(1, region="POINT (0 0)")
    with pytest.raises(RegionError):
        Subscription(1, region=(0, 0, 1, 1))


def test_stemming_applies_to_keywords() -> None:
    assert Subscription(1, ["cats", "cat"]).clauses(Analysis(stem="english"))[0].required == {"cat"}


def test_a_ranked_subscription_has_defaults_and_plain_values() -> None:
    some = RankedSubscription(1, ["B", "a"], [1, 2])  # type: ignore[arg-type]
    assert (some.keywords, some.location, some.k, some.spatial_weight) == (("a", "b"), (1.0, 2.0), 20, 0.5)
    assert some.words() == {"a", "b"}
    assert pickle.loads(pickle.dumps(some)) == some


@pytest.mark.parametrize(
    "wrong",
    [
        {"keywords": []},
        {"keywords": "a"},
        {"k": 0},
        {"k": 10_001},
        {"k": 1.5},
        {"k": True},
        {"spatial_weight": -0.1},
        {"spatial_weight": 1.1},
        {"spatial_weight": math.nan},
        {"spatial_weight": "half"},
        {"location": (math.nan, 0)},
        {"location": (1,)},
        {"location": None},
    ],
)
def test_an_unusable_ranked_subscription_is_refused(wrong: dict[str, Any]) -> None:
    right: dict[str, Any] = {"id": 1, "keywords": ["a"], "location": (0, 0)}
    RankedSubscription(**right)
    with pytest.raises(NearcastError):
        RankedSubscription(**right | wrong)
