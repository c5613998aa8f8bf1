"""Sums of changes."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.hashing import EMPTY_SLOT
from nearcast.ranked.kernels.rank_changes import sum_changes


def test_changes_of_one_message_in_one_list_are_added_up_where_the_first_is() -> None:
    rng = np.random.default_rng(3)
    n = 5000
    subscription, message = rng.integers(0, 40, n).astype(np.int32), rng.integers(0, 30, n).astype(np.int32)
    score, change = rng.integers(0, 2, n) / 3, rng.choice([-1, 1], n).astype(np.int8)
    sums: dict[tuple[int, int, float], int] = {}
    first: dict[tuple[int, int, float], int] = {}
    for i, key in enumerate(zip(subscription.tolist(), message.tolist(), score.tolist(), strict=True)):
        sums[key] = sums.get(key, 0) + int(change[i])
        first.setdefault(key, i)
    total = np.empty_like(change)
    # So full that many pairs collide.
    slot = np.full(4096, EMPTY_SLOT, np.int32)
    sum_changes(subscription, message, score, change, slot, total)
    expected = np.zeros(n, np.int8)
    for key, i in first.items():
        expected[i] = sums[key]
    assert len(first) > 2000
    assert total.tolist() == expected.tolist()
