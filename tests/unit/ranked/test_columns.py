"""Subscriptions and the window as columns: rows are added, replaced, weighted, dropped."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from nearcast.columns.messages import counted_sets_of
from nearcast.ranked.kernels.layouts import LENGTH, N_WORDS, WEIGHT, WORDS, X, Y
from nearcast.ranked.kernels.scoring import steady_sum
from nearcast.ranked.subscriptions import RankedSubscriptionBatch, RankedSubscriptions
from nearcast.ranked.window import ArrivingMessages, MessageWindow

WEIGHTS = np.array([1.0, 2.0, 3.0])


def batch(numbers: list[int], words: list[list[int]]) -> RankedSubscriptionBatch:
    n = len(numbers)
    start = np.concatenate([[0], np.cumsum([len(own) for own in words])]).astype(np.int64)
    keyword = np.array([word for own in words for word in own], np.int32)
    return RankedSubscriptionBatch(
        np.array(numbers, np.int32), np.zeros(n), np.zeros(n), np.full(n, 0.5), np.full(n, 2, np.int32), start, keyword
    )


def arriving(first_id: int, words: list[list[int]]) -> ArrivingMessages:
    n = len(words)
    start = np.concatenate([[0], np.cumsum([len(own) for own in words])]).astype(np.int64)
    keyword = np.array([word for own in words for word in own], np.int32)
    ids = pa.array(np.arange(first_id, first_id + n))
    return ArrivingMessages(ids, np.zeros(n), np.zeros(n), np.zeros(n), start, keyword, np.ones(len(keyword), np.int32))


def test_subscriptions_are_put_replaced_and_removed() -> None:
    rows = RankedSubscriptions()
    rows.put(batch([0, 2], [[0, 1], [2]]), WEIGHTS)
    assert rows.alive().tolist() == [0, 2]
    assert rows.layout().length[0] == math.sqrt(5)
    assert rows.is_alive(np.array([-1, 0, 1, 2, 9], np.int32)).tolist() == [False, True, False, True, False]
    rows.put(batch([2], [[0]]), WEIGHTS)
    assert rows.n_alive == 2
    assert rows.remove(np.array([1, 2], np.int32)).tolist() == [2]
    rows.apply_word_weights(np.array([2.0, 0.0, 0.0]))
    assert rows.layout().length[0] == 2.0
    assert RankedSubscriptions(rows.arrays()).alive().tolist() == [0]
    rows.put(batch([], []), WEIGHTS)


def test_all_that_a_score_needs_of_a_subscription_is_in_one_line() -> None:
    rows = RankedSubscriptions()
    rows.put(batch([0], [[0, 1, 2]]), WEIGHTS)
    layout = rows.layout()
    assert layout.record[[X, Y, WEIGHT, LENGTH]].tolist() == [0.0, 0.0, 0.5, math.sqrt(14)]
    assert layout.record_words[[N_WORDS, WORDS, WORDS + 1, WORDS + 2]].tolist() == [3, 0, 1, 2]
    # A strided column, as of many records: kernels are compiled once.
    assert not layout.x.flags.c_contiguous


def test_the_words_of_replaced_subscriptions_are_cleared_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.ranked.subscriptions._LEAST_WASTE", 0)
    rows = RankedSubscriptions()
    for word in (0, 1, 2):
        rows.put(batch([0, 1], [[word], [2]]), WEIGHTS)
    layout = rows.layout()
    assert layout.keyword.size < 6
    assert [layout.keyword[layout.first[s]] for s in (0, 1)] == [2, 2]


def test_a_window_knows_its_messages_by_id_while_they_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.ranked.window._MIN_EXPIRED", 0)
    window = MessageWindow()
    window.append(arriving(100, [[0], [0, 1], [1]]), WEIGHTS)
    assert window.n_alive == 0
    window.layout().is_alive[:] = [0, 0, 1]
    assert window.numbers_of(pa.array([100, 102, 103])).tolist() == [-1, 2, -1]
    assert window.drop_expired() == 2
    assert (window.base, window.n, window.next_number) == (2, 1, 3)
    assert window.ids_of(np.array([2])).to_pylist() == [102]
    assert window.numbers_of(pa.array([101, 102])).tolist() == [-1, 2]
    assert window.drop_expired() == 0
    window.layout().is_alive[:] = 0
    assert window.drop_expired() == 1
    assert (window.n, window.next_number) == (0, 3)
    window.append(arriving(102, []), WEIGHTS)


def test_a_window_that_counts_is_not_moved_while_it_fills() -> None:
    window, free = MessageWindow(n_alive_at_most=500), MessageWindow()
    for each in (window, free):
        each.append(arriving(0, [[0], [1]] * 10), WEIGHTS)
    assert window.n_bytes == free.n_bytes
    before = [array.ctypes.data for array in window.layout()]
    for first in range(20, 1000, 20):
        for each in (window, free):
            each.append(arriving(first, [[0], [1]] * 10), WEIGHTS)
    # Its head is a new array each time.
    assert [array.ctypes.data for array in window.layout()][1:] == before[1:]
    assert window.n_bytes == free.n_bytes
    for one, other in zip(window.layout(), free.layout(), strict=True):
        assert np.array_equal(one, other)
    # The expected number reserves no memory for all of them at once.
    assert MessageWindow(10**15).expected(12, 4) == 12 * 64


@pytest.mark.parametrize("seed", range(3))
def test_ids_of_messages_that_are_gone_are_forgotten_by_and_by(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.ranked.window._MIN_EXPIRED", 0)
    rng, window, oldest = np.random.default_rng(seed), MessageWindow(), 0
    ids: list[int] = []
    for round in range(80):
        # An id is used again now and then, when its message has expired.
        first = 7 * round if round % 5 else 7 * max(0, round - 30)
        window.append(arriving(first, [[0]] * 7), WEIGHTS)
        ids += range(first, first + 7)
        oldest = min(oldest + int(rng.integers(0, 15)), len(ids) - 3) if round > 5 else 0
        window.layout().is_alive[:] = np.arange(window.base, window.next_number) >= oldest
        window.drop_expired()
        if round == 20:
            window = MessageWindow.from_arrays(0, window.ids.kind, window.arrays())
        living = np.arange(oldest, len(ids))
        assert window.ids_of(living).to_pylist() == ids[oldest:]
        latest = {id: number for number, id in enumerate(ids) if number >= oldest}
        numbers = sorted(set(ids))
        assert window.numbers_of(pa.array(numbers)).tolist() == [latest.get(id, -1) for id in numbers]
    assert window.ids.n < len(set(ids)) // 4


def test_words_are_counted() -> None:
    start, ids = np.array([5, 9, 9, 11], np.int64), np.array([3, 1, -1, 3, 2, 2], np.int32)
    set_start, members, count = counted_sets_of(start, ids)
    assert (set_start.tolist(), members.tolist(), count.tolist()) == ([0, 2, 2, 3], [1, 3, 2], [1, 2, 2])


@pytest.mark.parametrize("n", [0, 3, 60])
def test_a_steady_sum_is_that_of_the_definition(n: int) -> None:
    from nearcast.model import relevance

    values = np.random.default_rng(n).uniform(0, 1, n)
    expected = relevance.steady_sum(values.tolist())
    assert steady_sum(values[::-1].copy(), n) == expected
