"""Scores of all pairs of some subscriptions and some messages, compared with the definition."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nearcast.model.relevance import distance, spatial_proximity, text_similarity
from nearcast.model.spaces import Space
from nearcast.ranked.kernels.scoring import score_pairs
from nearcast.ranked.subscriptions import RankedSubscriptionBatch, RankedSubscriptions
from nearcast.ranked.window import ArrivingMessages, MessageWindow


def test_every_pair_with_a_common_word_and_at_least_the_floor_is_found() -> None:
    draw = np.random.default_rng(5)
    words = [np.unique(draw.integers(0, 6, draw.integers(1, 4))).astype(np.int32) for _ in range(12)]
    start = np.concatenate([[0], np.cumsum([len(one) for one in words])]).astype(np.int64)
    x, y = np.round(draw.uniform(0, 4, (2, 12)))
    subscriptions, window = RankedSubscriptions(), MessageWindow()
    weights, half, k = np.ones(6), np.full(5, 0.5), np.ones(5, np.int32)
    own, rest = slice(0, 5), slice(5, 12)
    subscriptions.put(
        RankedSubscriptionBatch(np.arange(5, dtype=np.int32), x[own], y[own], half, k, start[:6], np.concatenate(words[own])),
        weights,
    )
    counted = np.ones(int(start[12] - start[5]), np.int32)
    arriving = (pa.array(range(7)), np.zeros(7), x[rest], y[rest], start[5:] - start[5], np.concatenate(words[rest]), counted)
    window.append(ArrivingMessages(*arriving), weights)
    threshold, numbers = np.array([0.0, 0.9, 0.5, 0.7, 0.0]), np.array([4, 1, 2], np.int32)
    first, last = 2, 6
    begins, found, score = np.zeros(last - first + 1, np.int64), np.zeros(12, np.int32), np.zeros(12)
    layouts = (subscriptions.layout(), window.layout())
    n = int(score_pairs((False, 5.0), *layouts, threshold, numbers, first, last, np.empty(3), begins, found, score))
    expected = []
    for place in range(first, last):
        for s in numbers.tolist():
            m = 5 + place
            similar = text_similarity(dict.fromkeys(words[m].tolist(), 1), words[s].tolist())
            near = spatial_proximity(distance(Space.PLANE, x[s], y[s], x[m], y[m]), 5.0)
            value = 0.5 * near + 0.5 * similar
            if set(words[m].tolist()) & set(words[s].tolist()) and value >= threshold[s]:
                expected.append((place, s, value))
    places = np.repeat(np.arange(first, last), np.diff(begins))
    assert list(zip(places.tolist(), found[:n].tolist(), score[:n].tolist(), strict=True)) == expected
    assert 0 < n < 12
