"""Relevance, against its formula."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import NearcastError
from nearcast.model.relevance import (
    LONLAT_MAX_DISTANCE_M,
    distance,
    idf_weight,
    relevance,
    spatial_proximity,
    steady_sum,
    text_similarity,
)
from nearcast.model.spaces import Space, haversine_m

counts = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 5))


def test_proximity_falls_linearly_to_zero() -> None:
    assert [spatial_proximity(d, 10) for d in (0, 5, 10, 20)] == [1, 0.5, 0, 0]
    assert LONLAT_MAX_DISTANCE_M == 20_015_115
    with pytest.raises(NearcastError):
        spatial_proximity(1, 0)


def test_rare_words_weigh_more() -> None:
    assert idf_weight(9, 9) == 1
    assert idf_weight(0, 9) == pytest.approx(math.log(10) + 1)
    with pytest.raises(NearcastError):
        idf_weight(-1, 9)


def test_similarity_follows_the_formula() -> None:
    assert text_similarity({"a": 1}, ["a"]) == 1
    assert text_similarity({"a": 2, "b": 1}, ["a", "c"]) == pytest.approx(2 / (math.sqrt(5) * math.sqrt(2)))
    weights = {"a": 3.0, "b": 1.0, "c": 2.0}
    expected = 2 * 9 / (math.sqrt(36 + 1) * math.sqrt(9 + 4))
    assert text_similarity({"a": 2, "b": 1}, ["a", "c"], weights.__getitem__) == pytest.approx(expected)
    assert text_similarity({1: 2}, [1, 1]) == 1


def test_without_a_common_word_there_is_no_similarity() -> None:
    assert text_similarity({"a": 1}, ["b"]) == 0
    assert text_similarity({}, ["b"]) == 0
    assert text_similarity({"a": 1}, ["a"], lambda word: 0.0) == 0


@given(counts, st.sets(st.sampled_from("abcdef")))
def test_similarity_lies_between_zero_and_one_and_ignores_order(message: dict[str, int], words: set[str]) -> None:
    similarity = text_similarity(message, words)
    assert 0 <= similarity <= 1
    assert (similarity > 0) == bool(words & set(message))
    assert similarity == text_similarity(dict(reversed(message.items())), sorted(words, reverse=True))


def test_relevance_is_the_weighted_mean() -> None:
    assert relevance(0.25, 1.0, 0.5) == 0.625
    assert relevance(1.0, 0.3, 0.9) == 0.3
    assert relevance(0.0, 0.3, 0.9) == 0.9


def test_distance_is_euclidean_in_the_plane_and_along_the_sphere_in_lonlat() -> None:
    assert distance(Space.PLANE, 1, 1, 4, 5) == 5
    assert distance(Space.PLANE, -1e300, 0, 1e300, 0) == math.inf
    assert distance(Space.LONLAT, 1, 2, 3, 4) == haversine_m(1, 2, 3, 4)


@given(st.permutations([0.1, 0.2, 0.3, 1e16, 1.0, 0.7]))
def test_a_sum_does_not_depend_on_the_order(values: list[float]) -> None:
    assert steady_sum(values) == steady_sum(sorted(values))
    assert steady_sum([]) == 0
