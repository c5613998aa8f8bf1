"""Growing lists in one pool."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nearcast.kernels.pools import (
    FULL,
    N_CLASSES,
    NO_CHUNK,
    ListPool,
    append_item,
    chunk_capacity,
    give_back,
    remove_item,
    size_class,
    take_chunk,
)


def make_pool(n_lists: int, room: int) -> ListPool:
    start, size, capacity = np.zeros(n_lists, np.int64), np.zeros(n_lists, np.int32), np.zeros(n_lists, np.int32)
    return ListPool(start, size, capacity, np.zeros(room, np.int32), np.zeros(1, np.int64))


def items(pool: ListPool, owner: int) -> list[int]:
    return list(pool.item[pool.start[owner] : pool.start[owner] + pool.size[owner]])


def test_lists_grow_side_by_side_and_tell_when_the_pool_is_full() -> None:
    pool = make_pool(2, 20)
    for value in range(5):
        assert append_item(pool, 0, value) == value
        assert append_item(pool, 1, 10 + value) in (value, FULL)
    assert items(pool, 0) == [0, 1, 2, 3, 4]
    assert items(pool, 1) == [10, 11, 12, 13]


def test_a_removed_item_is_replaced_by_the_last_one() -> None:
    pool = make_pool(1, 8)
    for value in (5, 6, 7):
        append_item(pool, 0, value)
    assert remove_item(pool, 0, 0) == 7
    assert items(pool, 0) == [7, 6]
    assert remove_item(pool, 0, 1) == 6
    assert items(pool, 0) == [7]


def test_a_chunk_has_little_more_room_than_is_asked_for() -> None:
    for size in range(3000):
        room = chunk_capacity(size)
        assert size <= room <= max(size + 1, size * 9 // 8)
        assert chunk_capacity(room) == room


def test_every_room_has_a_class_of_its_own() -> None:
    rooms = sorted({chunk_capacity(size) for size in range(100_000)})
    classes = [size_class(room) for room in rooms]
    assert classes == list(range(len(rooms)))
    assert size_class(chunk_capacity(2**31 - 1)) < N_CLASSES


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_a_freed_chunk_serves_the_next_of_its_size(dtype: type) -> None:
    free, used = np.full(N_CLASSES, NO_CHUNK, np.int32), np.zeros(1, np.int64)
    link: NDArray[Any] = np.zeros(100, dtype)
    first, second, other = (take_chunk(free, link, used, 0, room) for room in (8, 8, 10))
    assert (first, second, other) == (0, 8, 16)
    give_back(free, link, first, 8)
    give_back(free, link, second, 8)
    assert [take_chunk(free, link, used, 0, room) for room in (10, 8, 8, 8)] == [26, 8, 0, 36]
    assert used[0] == 44


def test_a_chunk_without_room_is_not_kept() -> None:
    free, link = np.full(N_CLASSES, NO_CHUNK, np.int32), np.zeros(1, np.int32)
    give_back(free, link, 0, 0)
    assert np.all(free == NO_CHUNK)
