"""Buffers of the best messages, one operation at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nearcast as nc
from nearcast.papers.ranked.skyband.kernels.buffers import (
    ADMITTED,
    ADMITTED_AND_TRUNCATED,
    REFUSED,
    REFUSED_AND_TRUNCATED,
    BufferArrays,
    admit,
    drop,
    oldest_held,
    truncate,
)
from nearcast.papers.ranked.skyband.kernels.ticks import SnapshotArrays, snapshot_list, snapshot_lists
from nearcast.ranked.kernels.layouts import MESSAGE_RECORD, NO_MESSAGE, WindowArrays
from nearcast.ranked.subscriptions import RankedSubscriptionBatch, RankedSubscriptions
from nearcast.ranked.window import window_arrays

K = 2


def window(times: list[float]) -> WindowArrays:
    n = len(times)
    words: dict[str, Any] = {"keyword": np.zeros(0, np.int32), "value": np.zeros(0), "n_times": np.zeros(0, np.int32)}
    columns = {"time": np.array(times), "is_alive": np.ones(n, np.uint8)}
    return window_arrays(np.zeros(1, np.int64), np.zeros(MESSAGE_RECORD * (n + 1)), columns | words)


def buffers(capacity: int) -> BufferArrays:
    one = np.zeros(1, np.int64)
    return BufferArrays(
        one, np.array([capacity], np.int32), np.zeros(1, np.int32), np.ones(1, np.uint8), np.zeros(1), np.zeros(1), one.copy(),
        np.zeros(capacity), np.zeros(capacity, np.int64), np.zeros(capacity, np.int32),
    )  # fmt: skip


def held(of: BufferArrays) -> list[tuple[float, int]]:
    n = int(of.size[0])
    return list(zip(of.score[:n].tolist(), of.number[:n].tolist(), strict=True))


def test_messages_stand_by_score_then_by_age_and_the_dominated_go() -> None:
    of, past, n_kept = buffers(8), window([0.0] * 6), np.array([3], np.int32)
    for number, score in enumerate([0.5, 0.9, 0.5, 0.7]):
        assert admit(of, past, 0, K, number, score, False, True, n_kept) == ADMITTED
    # Number 0 has two newer messages that are at least as relevant, number 2 has one.
    assert held(of) == [(0.9, 1), (0.7, 3), (0.5, 2)]
    drop(of, 0, 2)
    assert oldest_held(of, past, 0) == 1
    drop(of, 0, 1)
    drop(of, 0, 99)
    assert held(of) == [(0.7, 3)]
    drop(of, 0, 3)
    assert oldest_held(of, past, 0) == NO_MESSAGE


def test_a_late_message_may_be_dominated_when_it_comes() -> None:
    of, past, n_kept = buffers(8), window([5.0, 6.0, 1.0, 5.5]), np.array([3], np.int32)
    for number, score in ((0, 0.9), (1, 0.8)):
        admit(of, past, 0, K, number, score, False, True, n_kept)
    assert admit(of, past, 0, K, 2, 0.5, True, True, n_kept) == REFUSED
    assert admit(of, past, 0, K, 3, 0.85, True, True, n_kept) == ADMITTED
    assert held(of) == [(0.9, 0), (0.85, 3), (0.8, 1)]
    # It is newer than 0 and older than 1, so it dominates neither: 0 ranks before it, 1 is newer.
    assert of.dominators[:3].tolist() == [0, 0, 0]


def test_a_full_buffer_is_cut_and_its_last_message_is_the_guard() -> None:
    of, past, n_kept = buffers(3), window([0.0] * 9), np.array([2], np.int32)
    for number, score in enumerate([0.5, 0.6, 0.7]):
        admit(of, past, 0, K, number, score, False, False, n_kept)
    assert admit(of, past, 0, K, 3, 0.1, False, False, n_kept) == REFUSED_AND_TRUNCATED
    assert held(of) == [(0.7, 2), (0.6, 1)]
    assert (of.threshold[0], of.guard_number[0], of.is_complete[0]) == (0.6, 1, 0)
    assert admit(of, past, 0, K, 4, 0.3, False, False, n_kept) == REFUSED
    # As relevant as the guard and newer.
    assert admit(of, past, 0, K, 5, 0.6, False, False, n_kept) == ADMITTED
    assert admit(of, past, 0, K, 6, 0.9, False, False, n_kept) == ADMITTED_AND_TRUNCATED
    assert held(of) == [(0.9, 6), (0.7, 2), (0.6, 5)]


def test_the_guard_tells_equal_scores_apart_by_time() -> None:
    of, past, n_kept = buffers(3), window([5.0, 4.0, 6.0]), np.array([2], np.int32)
    admit(of, past, 0, K, 0, 0.5, False, False, n_kept)
    truncate(of, past, 0, 1)
    assert admit(of, past, 0, K, 1, 0.5, True, False, n_kept) == REFUSED
    assert admit(of, past, 0, K, 2, 0.5, False, False, n_kept) == ADMITTED


@pytest.mark.parametrize("capacity", [1, 2])
def test_a_journal_without_room_says_so(capacity: int) -> None:
    of, past, n_kept = buffers(4), window([0.0] * 4), np.array([3], np.int32)
    for number, score in enumerate([0.5, 0.6]):
        admit(of, past, 0, K, number, score, False, True, n_kept)
    head = np.array([1, 0, 0], np.int64)
    one = np.zeros(1, np.int64)
    snapshots = SnapshotArrays(
        head, one, np.zeros(1, np.int32), np.zeros(2, np.int64), np.zeros(capacity), np.zeros(capacity, np.int64)
    )
    numbers, place = np.array([0], np.int32), np.zeros(1)
    subscriptions = RankedSubscriptions()
    subscriptions.put(RankedSubscriptionBatch(numbers, place, place, place, numbers + K, np.array([0, 1]), numbers), np.ones(1))
    assert snapshot_lists(snapshots, subscriptions.layout(), of, numbers, 0) == (0 if capacity == 1 else 1)
    assert snapshot_list(snapshots, of, K, 0) == (capacity == 2)


def test_replaced_subscriptions_are_compared_when_snapshots_lack_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def changes() -> list[tuple[object, ...]]:
        ranker = nc.Ranker(nc.CountWindow(20), index="individually_pruned", space="plane", bounds=nc.Box(0, 0, 10, 10))
        wide = [nc.RankedSubscription(number, ["oak"], (5.0, 5.0), k=4) for number in range(3)]
        # Lists that the window fills need no snapshot yet.
        ranker.publish([nc.Message(number, ["oak"], (number, 5.0)) for number in range(8)])
        ranker.subscribe(wide)
        moved = [nc.RankedSubscription(number, ["oak"], (0.0, 5.0), k=4) for number in range(3)]
        return sorted((c.subscription_id, c.message_id, c.change) for c in ranker.subscribe(moved))

    expected = changes()
    monkeypatch.setattr("nearcast.papers.ranked.skyband.tick_index._FIRST_CAPACITY", 1)
    assert changes() == expected
    assert len(expected) > 3


def test_an_index_of_the_papers_finds_subscriptions_when_a_message_arrives_and_not_before() -> None:
    ranker = nc.Ranker(nc.CountWindow(20), index="individually_pruned", space="plane", bounds=nc.Box(0, 0, 1, 1))
    index: Any = ranker._engine.shards[0].index
    for find in (index.find, index.find_more):
        with pytest.raises(NotImplementedError, match="in run_ticks"):
            find()
