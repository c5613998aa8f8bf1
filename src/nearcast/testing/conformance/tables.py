"""Tables give what objects give; bad rows are named and the rest is processed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nearcast.errors import SchemaError
from nearcast.model.message import Message
from nearcast.model.regions import Box, Circle
from nearcast.model.subscription import Subscription
from nearcast.testing.budget import current_budget
from nearcast.testing.conformance.base import Cases, messages_at
from nearcast.testing.oracles.boolean import Oracle, Pair, messages_from_table, subscriptions_from_table
from nearcast.testing.scenarios.boolean import compare_pairs
from nearcast.testing.scenarios.worlds import WorldMaker, message_table, subscription_table


def pairs_of(table: pa.Table) -> list[Pair]:
    """The deliveries of a table, in its order."""
    assert set(table.column_names) == {"message_id", "subscription_id"}
    return list(map(Pair, table["subscription_id"].to_pylist(), table["message_id"].to_pylist()))


class TableCases(Cases):
    """`subscribe_table` and `match_table`, compared with `subscribe` and `publish`."""

    @pytest.mark.parametrize("space", ["lonlat", "plane"])
    @pytest.mark.parametrize("seed", range(current_budget().seeds))
    def test_tables_equal_objects(self, space: str, seed: int) -> None:
        maker = WorldMaker(np.random.default_rng([7, seed]), space)
        subscriptions, messages = maker.world(100)
        both = self.compare(space)
        both.subscribe(subscriptions)
        by_table = self.make_matcher(space)
        by_table.subscribe_table(subscription_table(subscriptions[:60]))
        by_table.subscribe_table(subscription_table(subscriptions[60:]))
        assert by_table.report.rejected == []
        table = message_table(messages)
        compare_pairs(pairs_of(by_table.match_table(table)), both.publish(messages), both.oracle.subscriptions, messages)
        assert by_table.report.matches == both.matcher.report.matches
        compare_pairs(
            pairs_of(both.matcher.match_table(table)), both.oracle.publish(messages), both.oracle.subscriptions, messages
        )
        points = [m for m in messages if not isinstance(m.location, Box)]
        pairs = pairs_of(by_table.match_table(message_table(points, as_points=True)))
        compare_pairs(pairs, both.oracle.publish(points), both.oracle.subscriptions, points)

    @pytest.mark.parametrize("space", ["lonlat", "plane"])
    def test_a_table_read_by_the_oracle_gives_the_same(self, space: str) -> None:
        maker = WorldMaker(np.random.default_rng(70), space)
        subscriptions, messages = maker.world(60)
        oracle = Oracle(space)
        oracle.subscribe(subscriptions_from_table(subscription_table(subscriptions), space))
        matcher = self.make_matcher(space)
        matcher.subscribe_table(subscription_table(subscriptions))
        table = message_table(messages)
        compare_pairs(
            pairs_of(matcher.match_table(table)), oracle.publish(messages_from_table(table)), oracle.subscriptions, messages
        )

    def test_a_replaced_row_of_a_table_no_longer_matches(self) -> None:
        both = self.compare("plane")
        first = [Subscription(i, ["a"], Box(i, 0, i + 1, 1)) for i in range(10)]
        second = [Subscription(i, ["a"], Box(i, 5, i + 1, 6)) for i in range(5)]
        for batch in (first, second):
            both.matcher.subscribe_table(subscription_table(batch))
            both.oracle.subscribe(batch)
        both.publish(messages_at([(x / 2, y) for x in range(24) for y in (0, 1, 5, 6)]))

    @pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
    def test_ids_keep_their_type(self, kind: pa.DataType) -> None:
        matcher = self.make_matcher("plane")
        ids = pa.array([2**63 - 1, -(2**63)] if kind == pa.int64() else ["1", "é"], kind)
        words = pa.array([["a"], ["a"]])
        matcher.subscribe_table(
            pa.table({"id": ids, "keywords": words, "x0": [0, 0], "y0": [0, 0], "x1": [1, 1], "y1": [1, 1]})
        )
        pairs = matcher.match_table(pa.table({"id": ids, "keywords": words, "x": [0.5, 9.0], "y": [0.5, 9.0]}))
        assert pairs.schema.field("message_id").type == kind
        assert pairs.schema.field("subscription_id").type == kind
        assert sorted(pairs_of(pairs)) == sorted(Pair(id, ids[0].as_py()) for id in ids.to_pylist())
        deliveries = matcher.publish([Message(ids[0].as_py(), ["a"], (0.5, 0.5))])
        assert {type(d.subscription_id) for d in deliveries} == {type(ids[0].as_py())}

    def test_message_ids_may_be_of_another_kind_than_subscription_ids(self) -> None:
        both = self.compare("plane")
        both.subscribe([Subscription("x", ["a"], Box(0, 0, 1, 1))])
        assert both.publish([Message(1, ["a"], (0, 0)), Message(2, ["a"], (1, 1))]) == {Pair("x", 1), Pair("x", 2)}

    def test_numbers_as_keywords_in_tables(self) -> None:
        matcher = self.make_matcher("plane")
        box = {"x0": [0.0, 0.0, 0.0], "y0": [0.0] * 3, "x1": [1.0] * 3, "y1": [1.0] * 3}
        matcher.subscribe_table(
            pa.table({"id": [1, 2, 3], "keywords": pa.array([[5], [5, -7], []], pa.list_(pa.int32())), **box})
        )
        words = pa.array([[5], [-7, 9, 5], [], [2**31 - 1]], pa.list_(pa.int32()))
        pairs = matcher.match_table(pa.table({"id": [1, 2, 3, 4], "keywords": words, "x": [0.0] * 4, "y": [1.0] * 4}))
        assert sorted(pairs_of(pairs)) == [(1, 1), (1, 2), (2, 2), (3, 1), (3, 2), (3, 3), (3, 4)]

    def test_an_empty_table(self) -> None:
        matcher = self.make_matcher("plane")
        subscriptions = [Subscription(1, ["a"], Box(0, 0, 1, 1))]
        matcher.subscribe_table(subscription_table(subscriptions).slice(0, 0))
        assert matcher.match_table(message_table(messages_at([(0, 0)]))).num_rows == 0
        matcher.subscribe_table(subscription_table(subscriptions))
        assert matcher.match_table(message_table(messages_at([(0, 0)])).slice(0, 0)).num_rows == 0

    def test_a_slice_of_a_table_and_a_table_in_chunks(self) -> None:
        maker = WorldMaker(np.random.default_rng(71), "plane")
        subscriptions, messages = maker.world(60)
        both = self.compare("plane")
        both.oracle.subscribe(subscriptions[20:50])
        both.matcher.subscribe_table(subscription_table(subscriptions).slice(20, 30))
        chunks = pa.concat_tables([message_table(messages).slice(0, 7), message_table(messages).slice(11, 9)])
        in_chunks = messages[:7] + messages[11:20]
        compare_pairs(
            pairs_of(both.matcher.match_table(chunks)), both.oracle.publish(in_chunks), both.oracle.subscriptions, in_chunks
        )

    def test_bad_rows_of_a_subscription_table_are_named_and_the_rest_is_processed(self) -> None:
        matcher = self.make_matcher("lonlat")
        rows: list[dict[str, Any]] = [
            {"id": 1, "keywords": ["a"], "x0": 0, "y0": 0, "x1": 1, "y1": 1},
            {"id": 2, "keywords": ["a"], "x0": 1, "y0": 0, "x1": 0, "y1": 1},
            {"id": 3, "keywords": [""], "x0": 0, "y0": 0, "x1": 1, "y1": 1},
            {"id": 4, "keywords": ["a"], "x0": 0, "y0": 0, "x1": 181, "y1": 1},
            {"id": 5, "keywords": ["a"], "x0": math.nan, "y0": 0, "x1": 1, "y1": 1},
            {"id": None, "keywords": ["a"], "x0": 0, "y0": 0, "x1": 1, "y1": 1},
            {"id": 1, "keywords": ["a"], "x0": 5, "y0": 5, "x1": 6, "y1": 6},
            {"id": 8, "keywords": [], "x0": 0, "y0": 0, "x1": 1, "y1": 1, "interest": "a AND ("},
            {"id": 9, "keywords": ["a"], "region": '{"type": "Point", "coordinates": [0, 0]}'},
            {"id": 10, "keywords": ["a"], "x0": 0, "y0": None, "x1": 1, "y1": 1},
            {"id": 11, "keywords": [], "x0": 0, "y0": 0, "x1": 1, "y1": 1, "interest": "a OR b"},
            {"id": 12, "keywords": ["a", None], "x0": 0, "y0": 0, "x1": 1, "y1": 1},
            {"id": 13, "keywords": ["a"]},
        ]
        schema = pa.schema(
            [("id", pa.int64()), ("keywords", pa.list_(pa.string()))]
            + [(name, pa.float64()) for name in ("x0", "y0", "x1", "y1")]
            + [("interest", pa.string()), ("region", pa.string())]
        )
        matcher.subscribe_table(pa.Table.from_pylist(rows, schema=schema))
        assert [row for row, _ in matcher.report.rejected] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 11]
        assert all(reason for _, reason in matcher.report.rejected)
        pairs = pairs_of(matcher.match_table(message_table(messages_at([(0.5, 0.5), (5.5, 5.5)]))))
        assert sorted(pairs) == [(1, 0), (11, 0), (13, 0), (13, 1)]

    def test_bad_rows_of_a_message_table_are_named_and_the_rest_is_processed(self) -> None:
        both = self.compare("lonlat")
        both.subscribe([Subscription(1, ["a"])])
        rows: list[dict[str, Any]] = [
            {"id": 0, "keywords": ["a"], "x": 0.0, "y": 0.0},
            {"id": 1, "keywords": ["a"], "x": 180.5, "y": 0.0},
            {"id": 2, "keywords": ["a", ""], "x": 0.0, "y": 0.0},
            {"id": 3, "keywords": ["a"], "x": math.inf, "y": 0.0},
            {"id": 4, "keywords": ["a"], "x": None, "y": 0.0},
            {"id": None, "keywords": ["a"], "x": 0.0, "y": 0.0},
            {"id": 6, "keywords": None, "x": 0.0, "y": 0.0},
            {"id": 7, "keywords": [f"w{i}" for i in range(4097)], "x": 0.0, "y": 0.0},
            {"id": 8, "keywords": ["x" * 257, "a"], "x": 0.0, "y": 0.0},
            {"id": 9, "keywords": ["a"], "x": -180.0, "y": -90.0},
        ]
        pairs = pairs_of(both.matcher.match_table(pa.Table.from_pylist(rows)))
        assert sorted(pairs) == [(1, 0), (1, 9)]
        assert [row for row, _ in both.matcher.report.rejected] == [1, 2, 3, 4, 5, 6, 7, 8]
        assert all(reason for _, reason in both.matcher.report.rejected)

    def test_bad_objects_are_named_and_the_rest_is_processed(self) -> None:
        both = self.compare("lonlat")
        both.subscribe(
            [
                Subscription(1, ["a"], Box(0, 0, 1, 1)),
                Subscription(2, ["a"], Box(0, 0, 181, 1)),
                Subscription(3, ["a"], Circle(0, 91, 5)),
                Subscription(4, ["a"], Box(0, 0, 180, 90)),
            ]
        )
        assert [row for row, _ in both.matcher.report.rejected] == [1, 2]
        assert all(reason for _, reason in both.matcher.report.rejected)
        pairs = both.publish(messages_at([(0, 0), (0, 90.1), (180, 90), Box(0, 0, 1, 100)]))
        assert pairs == {Pair(1, 0), Pair(4, 0), Pair(4, 2)}
        assert [row for row, _ in both.matcher.report.rejected] == [1, 3]

    def test_a_bad_replacement_leaves_the_old_subscription(self) -> None:
        both = self.compare("lonlat")
        both.subscribe([Subscription(1, ["a"], Box(0, 0, 1, 1))])
        both.subscribe([Subscription(1, ["a"], Box(0, 0, 200, 1))])
        assert both.publish(messages_at([(1, 1)])) == {Pair(1, 0)}

    @pytest.mark.parametrize("is_first", [True, False])
    def test_ids_and_keywords_of_the_other_kind_are_rejected(self, is_first: bool) -> None:
        matcher = self.make_matcher("plane")
        batch = [Subscription(1, ["a"]), Subscription("one", ["a"]), Subscription(2, [5]), Subscription(3, ["b"])]
        if is_first:
            matcher.subscribe(batch)
        else:
            matcher.subscribe([Subscription(0, ["a"])])
            matcher.subscribe(batch)
        assert [row for row, _ in matcher.report.rejected] == [1, 2]
        pairs = matcher.publish([Message(1, ["a", "b"], (0, 0)), Message(2, [5], (0, 0))])
        assert {d.subscription_id for d in pairs} == {1, 3} | (set() if is_first else {0})
        assert [row for row, _ in matcher.report.rejected] == [1]
        assert matcher.publish([Message(2, [5], (0, 0)), Message(1, ["b"], (0, 0))])[0].message_id == 1

    def test_messages_of_both_keyword_kinds_before_any_subscription(self) -> None:
        matcher = self.make_matcher("plane")
        assert matcher.publish([Message(1, [5], (0, 0)), Message(2, ["a"], (0, 0))]) == []
        matcher.subscribe([Subscription(1, ["a"])])
        assert len(matcher.publish([Message(2, ["a"], (0, 0))])) == 1

    def test_a_wrong_schema_raises(self) -> None:
        matcher = self.make_matcher("plane")
        with pytest.raises(SchemaError, match="id"):
            matcher.subscribe_table(pa.table({"keywords": [["a"]]}))
        with pytest.raises(SchemaError):
            matcher.match_table(pa.table({"id": [1], "keywords": [["a"]]}))
        with pytest.raises(SchemaError):
            matcher.match_table(pa.table({"id": [1], "keywords": [["a"]], "x": ["west"], "y": [0.0]}))
        with pytest.raises(SchemaError):
            matcher.match_table(pa.table({"id": [1], "keywords": ["a"], "x": [0.0], "y": [0.0]}))
