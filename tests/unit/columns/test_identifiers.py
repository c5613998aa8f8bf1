"""Ids of subscriptions: either kind, one kind at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from nearcast.columns.identifiers import Identifiers, id_kind
from nearcast.errors import SchemaError


@pytest.mark.parametrize(("ids", "kind"), [(["b", "a", "b", "Ab"], "string"), ([7, -1, 7, 2**62], "int")])
def test_ids_become_numbers_and_come_back(ids: list[object], kind: str) -> None:
    table = Identifiers()
    assert table.find(pa.array(ids)).tolist() == [-1] * 4
    assert table.add(pa.array(ids[:0], pa.array(ids).type)).tolist() == []
    assert table.add(pa.array(ids)).tolist() == [0, 1, 0, 2]
    assert table.kind == kind
    assert table.take(np.array([2, 0], np.int32)).to_pylist() == [ids[3], ids[0]]
    assert table.value(1) == ids[1]
    again = Identifiers.from_arrays(kind, table.arrays())
    assert again.find(pa.array(ids)).tolist() == [0, 1, 0, 2]
    assert again.n == table.n == 3
    assert again.n_bytes > 0


def test_the_other_kind_is_refused_when_added_and_unknown_when_looked_up() -> None:
    table = Identifiers()
    table.add(pa.array([1]))
    assert table.find(pa.array(["1"])).tolist() == [-1]
    with pytest.raises(SchemaError, match="this engine uses int64 ids"):
        table.add(pa.array(["1"]))


def test_names_beyond_ascii_are_unknown_until_added() -> None:
    table = Identifiers()
    table.add(pa.array(["x"]))
    assert table.find(pa.array(["é"])).tolist() == [-1]


def test_other_types_are_no_ids() -> None:
    for kind in (pa.float64(), pa.uint64(), pa.bool_()):
        with pytest.raises(SchemaError, match="column 'id'"):
            id_kind(kind)


@pytest.mark.parametrize("first", [6_000_000_000_000_000, -5, 2**31 - 2])
def test_ids_that_count_up_come_back(first: int) -> None:
    table = Identifiers()
    table.add(pa.array(range(first, first + 4)))
    for kind in (np.int32, np.int64):
        assert table.take(np.array([3, 0], kind)).to_pylist() == [first + 3, first]
    assert table.take(np.empty(0, np.int32)).to_pylist() == []
