"""Runs of matches as subscription numbers and ids."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.deliveries import fill_ids, fill_message_ids, fill_subscriptions

BEGIN, END = np.array([0, 3]), np.array([3, 100])
CLAUSE = np.arange(100, dtype=np.int32)[::-1].copy()
SUBSCRIPTION = (np.arange(100, dtype=np.int32) * 7) % 50


def test_owners_of_long_runs() -> None:
    out = np.empty(100, np.int32)
    fill_subscriptions(CLAUSE, BEGIN, END, SUBSCRIPTION, out)
    assert out.tolist() == SUBSCRIPTION[CLAUSE].tolist()
    fill_subscriptions(CLAUSE, BEGIN, END, SUBSCRIPTION[:0], out)
    assert out.tolist() == CLAUSE.tolist()


def test_ids_of_long_runs() -> None:
    number, out = np.arange(100, dtype=np.int64) * 1000, np.empty(100, np.int64)
    for subscription, subscriptions in ((SUBSCRIPTION, SUBSCRIPTION[CLAUSE]), (SUBSCRIPTION[:0], CLAUSE)):
        fill_ids(CLAUSE, BEGIN, END, subscription, number, 0, out)
        assert out.tolist() == number[subscriptions].tolist()
        fill_ids(CLAUSE, BEGIN, END, subscription, number[:0], 5, out)
        assert out.tolist() == (subscriptions.astype(np.int64) + 5).tolist()


def test_message_ids_of_runs_with_gaps_between_them() -> None:
    begin, end, row = np.array([4, 20, 30]), np.array([7, 20, 32]), np.array([2, 0, 1])
    out = np.empty(5, np.int64)
    fill_message_ids(begin, end, row, np.array([10, 20, 30]), out)
    assert out.tolist() == [30, 30, 30, 20, 20]
    fill_ids(CLAUSE, begin, end, SUBSCRIPTION[:0], np.empty(0, np.int64), 0, out)
    assert out.tolist() == CLAUSE[[4, 5, 6, 30, 31]].tolist()
