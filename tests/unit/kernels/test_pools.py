"""Growing lists in one pool."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.pools import FULL, PoolArrays, append_item, remove_item


def make_pool(n_lists: int, room: int) -> PoolArrays:
    start, size, capacity = np.zeros(n_lists, np.int64), np.zeros(n_lists, np.int32), np.zeros(n_lists, np.int32)
    return PoolArrays(start, size, capacity, np.zeros(room, np.int32), np.zeros(1, np.int64))


def items(pool: PoolArrays, owner: int) -> list[int]:
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
