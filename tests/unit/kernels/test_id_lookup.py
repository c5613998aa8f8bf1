"""Ids of changes and places of clauses, whole columns at a time."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.kernels.deliveries import fill_group_ids, fill_spans


@pytest.mark.parametrize("is_counting", [False, True])
def test_the_ids_of_groups_are_those_of_their_pairs(is_counting: bool) -> None:
    rng = np.random.default_rng(1)
    size = rng.integers(0, 60, 40) * (rng.random(40) < 0.5)
    # Groups have gaps between them.
    end = np.cumsum(size + rng.integers(0, 3, 40))
    begin = end - size
    of, member = rng.integers(0, 50, 40).astype(np.int32), rng.integers(0, 70, int(end[-1])).astype(np.int32)
    of_id, member_id = rng.integers(-(1 << 60), 1 << 60, 50), 5 + np.arange(70) if is_counting else rng.integers(0, 1 << 60, 70)
    of_out, member_out = np.empty(int(size.sum()), np.int64), np.empty(int(size.sum()), np.int64)
    given = (member_id[:0], 5) if is_counting else (member_id, 0)
    fill_group_ids(of, member, begin, end, of_id, *given, of_out, member_out)
    assert of_out.tolist() == np.repeat(of_id[of], size).tolist()
    members = np.concatenate([member[first:last] for first, last in zip(begin, end, strict=True)])
    assert member_out.tolist() == member_id[members].tolist()


def test_unknown_subscriptions_have_no_clauses() -> None:
    first_clause, n_clauses = np.arange(0, 200, 2, dtype=np.int32), np.arange(100, dtype=np.int32) % 4
    subscriptions = np.array([*range(100), -1, 100, 99, -7, 12345], np.int32)
    first, count = np.empty(len(subscriptions), np.int32), np.empty(len(subscriptions), np.int32)
    fill_spans(first_clause, n_clauses, subscriptions, first, count)
    assert first.tolist() == [*range(0, 200, 2), 0, 0, 198, 0, 0]
    assert count.tolist() == [*(n_clauses.tolist()), 0, 0, 3, 0, 0]
