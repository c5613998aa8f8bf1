"""Buffers of the best messages, one operation at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nearcast.papers.ranked.skyband.kernels.buffers import (
    ADMITTED,
    ADMITTED_WITH_CUT,
    REFUSED,
    REFUSED_WITH_CUT,
    BufferArrays,
    admit,
    cut,
    drop,
    oldest_held,
)
from nearcast.papers.ranked.skyband.kernels.ticks import JournalArrays, remember, remember_all
from nearcast.ranked.kernels.layouts import MESSAGE_RECORD, NO_MESSAGE, WindowArrays
from nearcast.ranked.subscriptions import RankedSubscriptionBatch, RankedSubscriptions
from nearcast.ranked.window import window_arrays

K = 2


def window(times: list[float]) -> WindowArrays:
    n = len(times)
    words: dict[str, Any] = {"keyword": np.zeros(0, np.int32), "value": np.zeros(0), "n_times": np.zeros(0, np.int32)}
    columns = {"time": np.array(times), "is_alive": np.ones(n, np.uint8)}
    return window_arrays(np.zeros(1, np.int64), np.zeros(MESSAGE_RECORD * (n + 1)), columns | words)


def buffers(room: int) -> BufferArrays:
    one = np.zeros(1, np.int64)
    return BufferArrays(
        one, np.array([room], np.int32), np.zeros(1, np.int32), np.ones(1, np.uint8), np.zeros(1), np.zeros(1), one.copy(),
        np.zeros(room), np.zeros(room, np.int64), np.zeros(room, np.int32),
    )  # fmt: skip


def held(of: BufferArrays) -> list[tuple[float, int]]:
    n = int(of.size[0])
    return list(zip(of.score[:n].tolist(), of.number[:n].tolist(), strict=True))


def test_messages_stand_by_score_then_by_age_and_the_dominated_go() -> None:
    of, past, kept = buffers(8), window([0.0] * 6), np.array([3], np.int32)
    for number, score in enumerate([0.5, 0.9, 0.5, 0.7]):
        assert admit(of, past, 0, K, number, score, False, True, kept) == ADMITTED
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
    of, past, kept = buffers(8), window([5.0, 6.0, 1.0, 5.5]), np.array([3], np.int32)
    for number, score in ((0, 0.9), (1, 0.8)):
        admit(of, past, 0, K, number, score, False, True, kept)
    assert admit(of, past, 0, K, 2, 0.5, True, True, kept) == REFUSED
    assert admit(of, past, 0, K, 3, 0.85, True, True, kept) == ADMITTED
    assert held(of) == [(0.9, 0), (0.85, 3), (0.8, 1)]
    # It is newer than 0 and older than 1, so it counts against neither: 0 ranks before it, 1 is newer.
    assert of.dominators[:3].tolist() == [0, 0, 0]


def test_a_full_buffer_is_cut_and_its_last_message_is_the_guard() -> None:
    of, past, kept = buffers(3), window([0.0] * 9), np.array([2], np.int32)
    for number, score in enumerate([0.5, 0.6, 0.7]):
        admit(of, past, 0, K, number, score, False, False, kept)
    assert admit(of, past, 0, K, 3, 0.1, False, False, kept) == REFUSED_WITH_CUT
    assert held(of) == [(0.7, 2), (0.6, 1)]
    assert (of.threshold[0], of.guard_number[0], of.is_complete[0]) == (0.6, 1, 0)
    assert admit(of, past, 0, K, 4, 0.3, False, False, kept) == REFUSED
    # As relevant as the guard and newer.
    assert admit(of, past, 0, K, 5, 0.6, False, False, kept) == ADMITTED
    assert admit(of, past, 0, K, 6, 0.9, False, False, kept) == ADMITTED_WITH_CUT
    assert held(of) == [(0.9, 6), (0.7, 2), (0.6, 5)]


def test_the_guard_tells_equal_scores_apart_by_time() -> None:
    of, past, kept = buffers(3), window([5.0, 4.0, 6.0]), np.array([2], np.int32)
    admit(of, past, 0, K, 0, 0.5, False, False, kept)
    cut(of, past, 0, 1)
    assert admit(of, past, 0, K, 1, 0.5, True, False, kept) == REFUSED
    assert admit(of, past, 0, K, 2, 0.5, False, False, kept) == ADMITTED


@pytest.mark.parametrize("room", [1, 2])
def test_a_journal_without_room_says_so(room: int) -> None:
    of, past, kept = buffers(4), window([0.0] * 4), np.array([3], np.int32)
    for number, score in enumerate([0.5, 0.6]):
        admit(of, past, 0, K, number, score, False, True, kept)
    head = np.array([1, 0, 0], np.int64)
    one = np.zeros(1, np.int64)
    journal = JournalArrays(head, one, np.zeros(1, np.int32), np.zeros(2, np.int64), np.zeros(room), np.zeros(room, np.int64))
    asked, place = np.array([0], np.int32), np.zeros(1)
    subscribers = RankedSubscriptions()
    subscribers.put(RankedSubscriptionBatch(asked, place, place, place, asked + K, np.array([0, 1]), asked), np.ones(1))
    assert remember_all(journal, subscribers.layout(), of, asked, 0) == (0 if room == 1 else 1)
    assert remember(journal, of, K, 0) == (room == 2)
