"""Memory of columns is used again when they are gone, and not before."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from nearcast.columns import arrow
from nearcast.columns.arrow import copy_used_again, number_buffer, used_again


def address(column: pa.Array) -> int:
    return int(column.buffers()[1].address)


def test_memory_of_a_column_is_used_again_when_nobody_holds_it() -> None:
    values, column = number_buffer(5000)
    values[:] = np.arange(5000)
    assert column.to_pylist() == list(range(5000))
    was, held = address(column), pa.table({"n": column}).slice(10, 3)
    del values, column
    others = [number_buffer(5000) for _ in range(3)]
    assert was not in [address(other) for _, other in others]
    for room, _ in others:
        room[:] = -1
    assert held["n"].to_pylist() == [10, 11, 12]
    del held
    assert address(number_buffer(4500)[1]) == was


def test_a_view_of_an_array_holds_its_memory() -> None:
    given = np.arange(3000, dtype=np.int32)
    view = copy_used_again(given)[10:13]
    others = [used_again(3000, np.int32) for _ in range(3)]
    for other in others:
        other[:] = -1
    assert view.tolist() == [10, 11, 12]


def test_only_so_much_memory_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "_waiting", {})
    rooms = [number_buffer(2000) for _ in range(9)]
    del rooms
    assert {size: len(blocks) for size, blocks in arrow._waiting.items()} == {("<i8", 2048): arrow._MOST_WAITING}


def test_a_long_column_has_memory_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "_waiting", {})
    values, column = number_buffer(arrow._LONGEST_KEPT + 1)
    values[-1] = 7
    assert column[-1].as_py() == 7
    assert len(number_buffer(0)[1]) == 0
    assert list(arrow._waiting) == [("<i8", arrow._SHORTEST_KEPT)]
