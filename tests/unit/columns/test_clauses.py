"""The clause store: slots in order, subscriptions, removal, compaction."""

from __future__ import annotations

import numpy as np

from nearcast.columns.clauses import ClauseBatch, ClauseStore
from nearcast.columns.growing import LINE_BYTES, GrowingArray, aligned_copy
from nearcast.kernels.checks import PLAIN
from nearcast.kernels.shapes import NO_SHAPE


def plain_batch(subscriptions: list[int], keywords: list[list[int]]) -> ClauseBatch:
    starts = np.cumsum([0, *map(len, keywords)]).astype(np.int64)
    side = np.array(subscriptions, np.float64)
    flat = np.array([k for own in keywords for k in own], np.int32)
    return ClauseBatch(np.array(subscriptions, np.int32), starts, flat, side, side, side + 1, side + 1)


def checked_batch() -> ClauseBatch:
    batch = plain_batch([5, 5, 6], [[1], [2], []])
    batch.is_checked = np.array([True, True, False])
    batch.forbidden_start = np.array([0, 1, 3, 3])
    batch.forbidden = np.array([7, 8, 9], np.int32)
    batch.shape = np.array([0, 0, NO_SHAPE], np.int32)
    return batch


def test_clauses_of_a_subscription_are_found_and_removed_together() -> None:
    store = ClauseStore()
    assert store.add(plain_batch([0, 1], [[3], [4, 6]])).tolist() == [0, 1]
    assert not store.has_checks
    assert store.add(checked_batch()).tolist() == [2, 3, 4]
    assert (store.n, store.n_alive, store.n_subscriptions, store.n_keywords) == (5, 5, 4, 7)
    assert store.slots_of(5) == range(2, 4)
    assert list(store.slots_of(2)) == list(store.slots_of(99)) == list(store.slots_of(-1)) == []
    assert store.remove(np.array([5, 2, 0, 99, -1], np.int32)).tolist() == [2, 3, 0]
    assert store.remove(np.array([5], np.int32)).tolist() == []
    assert (store.n_alive, store.n_subscriptions) == (2, 2)
    assert store.layout().is_alive.tolist() == [0, 1, 0, 0, 1]


def test_checks_keep_forbidden_keywords_and_shapes() -> None:
    store = ClauseStore()
    store.add(plain_batch([0], [[3]]))
    store.add(checked_batch())
    checks = store.checks()
    assert checks.check.tolist() == [PLAIN, 0, 1, PLAIN]
    assert checks.forbidden_start.tolist() == [0, 1, 3]
    assert checks.forbidden.tolist() == [7, 8, 9]
    assert checks.shape.tolist() == [0, 0]


def test_the_living_move_into_a_new_store() -> None:
    store = ClauseStore()
    store.add(plain_batch([0, 1], [[3], [4, 6]]))
    store.add(checked_batch())
    store.remove(np.array([0], np.int32))
    numbers, batch = store.alive_batch()
    assert numbers.tolist() == [1, 5, 6]
    again = ClauseStore()
    again.add(batch)
    assert again.checks().subscription.tolist() == [0, 1, 1, 2]
    assert again.checks().check.tolist() == [PLAIN, 0, 1, PLAIN]
    assert again.checks().forbidden.tolist() == [7, 8, 9]
    assert again.layout().keyword.tolist() == [4, 6, 1, 2]
    assert again.layout().x0.tolist() == [1, 5, 5, 6]
    plain_only = ClauseStore()
    plain_only.add(plain_batch([0], [[3]]))
    assert plain_only.alive_batch()[1].is_checked is None


def test_a_store_survives_the_way_through_arrays() -> None:
    store = ClauseStore()
    store.add(checked_batch())
    store.add(plain_batch([], []))
    again = ClauseStore({name: array.copy() for name, array in store.arrays().items()})
    assert (again.n, again.n_alive, again.n_subscriptions, again.n_keywords) == (3, 3, 2, 3)
    assert again.add(plain_batch([9], [[0]])).tolist() == [3]
    assert again.n_bytes > 0


def test_growing_arrays_keep_old_views_alive() -> None:
    array = GrowingArray(np.int32)
    array.extend(np.array([1, 2], np.int32))
    view = array.used
    array.extend(7, 100)
    assert view.tolist() == [1, 2]
    assert array.used[:3].tolist() == [1, 2, 7]
    assert array.n == 102


def test_growing_arrays_forget_what_is_in_front() -> None:
    column = GrowingArray(np.int64)
    column.extend(np.arange(100))
    room = column.memory
    for n_over, expected in ((0, range(100)), (30, range(30, 100)), (1, range(31, 100)), (35, range(66, 100))):
        column.drop(n_over)
        assert column.used.tolist() == list(expected)
        assert column.memory is room
    column.drop(25)
    assert column.used.tolist() == list(range(91, 100))
    # Most of it was spare.
    assert len(column.memory) == 9
    column.extend(7)
    assert column.used.tolist() == [*range(91, 100), 7]


def test_growing_arrays_begin_with_a_line_of_memory() -> None:
    column = GrowingArray(np.int32)
    for n in (1, 100, 10_000):
        column.extend(0, n)
        assert column.memory.ctypes.data % LINE_BYTES == 0
    assert aligned_copy(column.used[3:].reshape(-1, 2)).ctypes.data % LINE_BYTES == 0
