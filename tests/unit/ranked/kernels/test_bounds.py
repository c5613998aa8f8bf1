"""Bounds of proximity and of similarity are never below the exact values."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.columns.messages import counted_sets_of
from nearcast.ranked.kernels.bounds import (
    N_FIGURES,
    coordinates,
    frame_of,
    gather_repeated,
    message_weight_at,
    nearest_possible,
)
from nearcast.ranked.kernels.layouts import WindowArrays
from nearcast.ranked.kernels.scoring import proximity
from nearcast.ranked.window import ArrivingMessages, MessageWindow


@pytest.mark.parametrize(("is_lonlat", "reach"), [(True, 2e7), (True, 1e4), (True, 1e-300), (False, 1.0), (False, 1e-5)])
def test_no_point_is_nearer_than_its_bound(is_lonlat: bool, reach: float) -> None:
    rng = np.random.default_rng(3)
    n = 300
    x, y = rng.uniform(-1, 1, (2, n)) * ([[180.0], [90.0]] if is_lonlat else [[3.0], [2.0]])
    # The poles, the antimeridian, or points far beyond everything; and near neighbours.
    x[:4], y[:4] = (-180.0, 180.0, 0.0, 90.0) if is_lonlat else (1e300, -1e300, 5.0, 0.0), (0.0, 0.0, 90.0, -90.0)
    other_x, other_y = x[rng.permutation(n)], y[rng.permutation(n)]
    other_x[100:] = (
        np.clip(x[100:] + rng.normal(0, 1e-4, n - 100), -180, 180) if is_lonlat else x[100:] + rng.normal(0, 1e-5, n - 100)
    )
    other_y[100:] = y[100:]
    frame = frame_of(is_lonlat, reach, 0.5, 0.5)
    for i in range(n):
        here = np.array(coordinates(frame, x[i], y[i]))
        there = np.array(coordinates(frame, other_x[i], other_y[i])).astype(np.float32).astype(float)
        bound = nearest_possible(frame, float(((here - there) ** 2).sum()))
        near = proximity(is_lonlat, reach, x[i], y[i], other_x[i], other_y[i])
        assert near <= bound <= 1.0


def test_a_bound_tells_near_from_far() -> None:
    for is_lonlat, far in ((True, (90.0, 0.0)), (False, (0.9, 0.0))):
        frame = frame_of(is_lonlat, 1.5e7 if is_lonlat else 1.0, 0.0, 0.0)
        squared = sum((a - b) ** 2 for a, b in zip(coordinates(frame, 0.0, 0.0), coordinates(frame, *far), strict=True))
        assert nearest_possible(frame, squared) < 0.45
        assert nearest_possible(frame, 0.0) == 1.0


def _window(messages: list[list[int]], weights: np.ndarray) -> WindowArrays:
    """Messages of keywords by number, with repeats."""
    start = np.concatenate([[0], np.cumsum([len(words) for words in messages])]).astype(np.int64)
    ids = np.array([word for words in messages for word in words], np.int32)
    (set_start, members, n_times), n = counted_sets_of(start, ids), len(messages)
    window, nothing = MessageWindow(), np.zeros(n)
    window.append(ArrivingMessages(pa.array(range(n)), nothing, nothing, nothing, set_start, members, n_times), weights)
    return window.layout()


def _message_weight(window: WindowArrays, place: int, at: int, frequency: np.ndarray) -> float:
    repeated = np.empty(6 * N_FIGURES)
    return float(message_weight_at(frequency, window, place, at, repeated, gather_repeated(frequency, window, place, repeated)))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=14),
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 7.0]), min_size=6, max_size=6),
    st.lists(st.integers(0, 3), min_size=3, max_size=6),
)
def test_words_in_common_are_worth_no_more_than_the_heft_for_the_rarest_says(
    message: list[int], weights: list[float], frequencies: list[int]
) -> None:
    weight, frequency = np.array(weights), np.array(frequencies)
    window = _window([message], weight)
    length, n = float(window.length[0]), int(window.keyword_start[1])
    if length == 0.0:
        return
    rarity = [(int(frequency[word]) if word < len(frequency) else 0, word) for word in window.keyword[:n].tolist()]
    averages = []
    for at in range(n):
        message_weight = _message_weight(window, 0, at, frequency)
        others = [other for other in range(n) if rarity[other] > rarity[at]]
        for selected in (set_ for size in range(len(others) + 1) for set_ in combinations(others, size)):
            common = window.keyword[[at, *selected]]
            product = sum(int(window.n_times[own]) * weight[window.keyword[own]] ** 2 for own in (at, *selected))
            assert product / length <= message_weight * float((weight[common] ** 2).sum()) * (1 + 1e-12)
            if weight[window.keyword[at]] > 0:
                averages.append((at, product / float((weight[common] ** 2).sum()) / length))
    # And some sets of words reach the bound.
    for at in {own for own, _ in averages}:
        assert max(average for own, average in averages if own == at) == pytest.approx(
            _message_weight(window, 0, at, frequency), rel=1e-8
        )


def test_a_word_that_is_repeated_says_little_of_rarer_ones() -> None:
    window = _window([[0, 1, 1, 1, 1, 1]], np.array([4.0, 1.0]))
    frequency = np.array([1, 9])
    assert _message_weight(window, 0, 0, frequency) == pytest.approx((16 + 5) / 17 / window.length[0])
    # The rarer word cannot be shared where the other one is the rarest shared one.
    assert _message_weight(window, 0, 1, frequency) == pytest.approx(5 / window.length[0])
