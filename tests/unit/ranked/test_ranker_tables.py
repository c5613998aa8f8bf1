"""The contents of a ranker as tables: its subscriptions as they came, and the number of messages."""

from __future__ import annotations

import pyarrow as pa
import pytest

import nearcast as nc


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", [pa.string(), pa.int32()])
def test_subscriptions_come_back_as_a_table_that_makes_the_same_ranker(threads: int, kind: pa.DataType) -> None:
    words = [["1", "2"], ["3"], ["2", "4", "5"], ["1"]]
    lists = pa.array([[word if kind == pa.string() else int(word) for word in row] for row in words], pa.list_(kind))
    columns = {"id": [f"s{n}" for n in range(4)], "keywords": lists, "x": [0.0, 1.0, 2.0, 3.0], "y": [0.0, 1.0, 2.0, 3.0]}
    table = pa.table({**columns, "k": pa.array([1, 2, 3, 4], pa.int32()), "spatial_weight": [0.0, 0.5, 0.25, 1.0]})
    ranker = nc.Ranker(nc.CountWindow(3), space="plane", max_distance=5.0, threads=threads)
    assert ranker.tick == -1
    assert ranker.subscription_table().num_rows == 0
    ranker.subscribe_table(table)
    ranker.unsubscribe(["s1"])
    found = ranker.subscription_table().sort_by("id")
    kept = table.filter(pa.array([True, False, True, True]))
    assert found.drop_columns(["keywords"]).equals(kept.drop_columns(["keywords"]))
    assert [sorted(row) for row in found["keywords"].to_pylist()] == kept["keywords"].to_pylist()
    messages = pa.table({"id": [1, 2], "keywords": lists.slice(2), "x": [0.0, 1.0], "y": [0.0, 0.0]})
    again = nc.Ranker(nc.CountWindow(3), space="plane", max_distance=5.0)
    again.subscribe_table(found)
    changes = [
        one.publish_table(messages).sort_by([("tick", "ascending"), ("subscription_id", "ascending")])
        for one in (ranker, again)
    ]
    assert changes[0].equals(changes[1])
    assert ranker.tick == 1
