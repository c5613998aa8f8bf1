"""The words that a message and a subscription share, looked up without branches and word by word."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.compile import kernel
from nearcast.ranked.impact_grid.kernels.score_candidates import (
    bits_of,
    empty_table,
    few_in_common,
    home_of,
    many_in_common,
    slot_for,
)
from nearcast.ranked.kernels.layouts import RECORD
from nearcast.ranked.kernels.scoring import NOTHING_IN_COMMON
from nearcast.ranked.subscriptions import RankedSubscriptionBatch, RankedSubscriptions

MOST = 100_000


@kernel
def both_products(of_word, value_of, subscriptions, common, few, many):  # type: ignore[no-untyped-def]
    mask = of_word.size - 1
    for s in range(few.size):
        few[s] = few_in_common(of_word, value_of, mask, subscriptions.record_words, 2 * RECORD * s)
        many[s] = many_in_common(of_word, value_of, mask, subscriptions, s, common)


@kernel
def place_words(of_word, value_of, keyword, value):  # type: ignore[no-untyped-def]
    """Whether all of them are in their home slots."""
    mask, is_at_home = of_word.size - 1, True
    for i in range(keyword.size):
        to = slot_for(of_word, mask, keyword[i])
        of_word[to], value_of[to] = keyword[i], value[i]
        is_at_home = is_at_home and to == home_of(mask, keyword[i])
    return is_at_home


@kernel
def bits_of_each(start, keyword, bits):  # type: ignore[no-untyped-def]
    for i in range(bits.size):
        bits[i] = bits_of(keyword, start[i], start[i + 1])


def some_subscriptions(draw: np.random.Generator, n: int, keywords: np.ndarray) -> tuple[RankedSubscriptions, list[set[int]]]:
    words = [np.sort(draw.choice(keywords, draw.integers(1, 6), replace=False)) for _ in range(n)]
    start = np.concatenate([[0], np.cumsum([len(one) for one in words])]).astype(np.int64)
    number, half, k = np.arange(n, dtype=np.int32), np.full(n, 0.5), np.ones(n, np.int32)
    subscriptions = RankedSubscriptions()
    subscriptions.put(RankedSubscriptionBatch(number, half, half, half, k, start, np.concatenate(words)), np.ones(MOST))
    return subscriptions, [set(one.tolist()) for one in words]


def test_both_ways_give_the_same_product() -> None:
    draw = np.random.default_rng(8)
    n, keywords = 400, draw.choice(MOST, 60, replace=False).astype(np.int32)
    subscriptions, words = some_subscriptions(draw, n, keywords)
    gone = np.array([3, 4], np.int32)
    subscriptions.clear_keywords(gone)
    few, many, common = np.empty(n), np.empty(n), np.empty(5)
    n_at_home = n_none = 0
    for _ in range(60):
        keyword = np.sort(draw.choice(keywords, 12, replace=False))
        value = draw.random(12)
        of_word, value_of = empty_table(12)
        # Values of earlier messages are still there.
        value_of[:] = 7.0
        is_at_home = place_words(of_word, value_of, keyword, value)
        both_products(of_word, value_of, subscriptions.layout(), common, few, many)
        of = dict(zip(keyword.tolist(), value.tolist(), strict=True))
        for s in range(n):
            found = sorted(of[word] for word in words[s] & set(of)) if s not in gone else []
            assert many[s] == (sum(found) if found else NOTHING_IN_COMMON)
            n_none += not found
        if is_at_home:
            n_at_home += 1
            assert few.tolist() == many.tolist()
    assert 0 < n_at_home < 60
    assert n_none > len(gone) * 60


def test_a_word_in_common_shows_in_the_bits() -> None:
    draw = np.random.default_rng(2)
    sets = [np.sort(draw.choice(300, draw.integers(0, 9), replace=False)).astype(np.int32) for _ in range(80)]
    start, bits = np.concatenate([[0], np.cumsum([len(one) for one in sets])]), np.zeros(80, np.int64)
    bits_of_each(start, np.concatenate(sets), bits)
    n_told_apart = 0
    for i in range(80):
        for j in range(80):
            if set(sets[i].tolist()) & set(sets[j].tolist()):
                assert bits[i] & bits[j]
            n_told_apart += not bits[i] & bits[j]
    assert n_told_apart > 1000
