"""Chunks of a growing array: sizes, classes, and that what is freed is used again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nearcast.kernels.chunks import N_CLASSES, NO_CHUNK, chunk_class, chunk_room, give_back, take_chunk


def test_a_chunk_has_little_more_room_than_is_asked_for() -> None:
    for size in range(3000):
        room = chunk_room(size)
        assert size <= room <= max(size + 1, size * 9 // 8)
        assert chunk_room(room) == room


def test_every_room_has_a_class_of_its_own() -> None:
    rooms = sorted({chunk_room(size) for size in range(100_000)})
    classes = [chunk_class(room) for room in rooms]
    assert classes == list(range(len(rooms)))
    assert chunk_class(chunk_room(2**31 - 1)) < N_CLASSES


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
