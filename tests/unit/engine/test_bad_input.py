"""Bad input: the documented error or a rejected row, and the rest of the batch is processed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.errors import InterestError, KeywordError, NearcastError, RegionError, SchemaError

BOW_TIE = [[(0, 0), (2, 2), (2, 0), (0, 2)]]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: nc.Box(0, 0, math.nan, 1), "finite"),
        (lambda: nc.Box(0, -math.inf, 1, 1), "finite"),
        (lambda: nc.Box(2, 0, 1, 1), "x0"),
        (lambda: nc.Circle(0, 0, -1), "negative"),
        (lambda: nc.Polygon(BOW_TIE), "(?i)self-intersection"),
        (lambda: nc.region('{"type": "Polygon", "coordinates": [[[0,0],[2,2],[2,0],[0,2],[0,0]]]}'), "(?i)self-intersection"),
        (lambda: nc.Subscription(1, keywords=[""]), "empty"),
        (lambda: nc.Subscription(1, keywords="rain"), "list"),
        (lambda: nc.Subscription(1, keywords=[f"k{i}" for i in range(10_000)]), "at most 256"),
        (lambda: nc.Subscription(1, interest="(" * 5000 + "a" + ")" * 5000), "deep|nest"),
        (lambda: nc.Subscription(1, interest="NOT " * 4000 + "a"), "deep|nest"),
        (lambda: nc.Subscription(1.5), "id"),  # type: ignore[arg-type]
        (lambda: nc.Subscription(True), "id"),
        (lambda: nc.Message(1, keywords=[f"k{i}" for i in range(10_000)], location=(0, 0)), "at most 4096"),
        (lambda: nc.Message(1, keywords=["a"], location=(math.nan, 0)), "finite"),
        (lambda: nc.Message(1, keywords=["a"]), "location"),
        (lambda: nc.Message(1, location=(0, 0)), "neither keywords nor text"),
    ],
)
def test_constructors_refuse_with_a_reason(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(NearcastError, match=says) as raised:
        make()
    assert isinstance(raised.value, ValueError)


def test_errors_have_a_class_by_cause_and_a_position() -> None:
    with pytest.raises(InterestError) as raised:
        nc.parse_interest("a AND (b OR")
    assert raised.value.position is not None
    for cause in (RegionError, KeywordError, SchemaError):
        assert issubclass(cause, NearcastError)


def test_bad_rows_of_a_message_table_are_rejected_and_the_rest_matched() -> None:
    rows: list[tuple[Any, Any, Any, Any, str | None]] = [
        (1, ["a"], 0.0, 0.0, None),
        (2, ["a"], math.nan, 0.0, "not finite"),
        (3, ["a"], 0.0, math.inf, "not finite"),
        (4, ["a"], 0.0, 91.0, "outside lonlat"),
        (5, ["a"], -180.1, 0.0, "outside lonlat"),
        (6, ["a", ""], 0.0, 0.0, "empty"),
        (7, None, 0.0, 0.0, "keywords are null"),
        (8, ["a", None], 0.0, 0.0, "keyword is null"),
        (9, ["a"], None, 0.0, "coordinate is null"),
        (None, ["a"], 0.0, 0.0, "id is null"),
        (11, ["a", "x" * 1000], 0.0, 0.0, "longer than 256 bytes"),
        (12, ["a", *(f"k{i}" for i in range(10_000))], 0.0, 0.0, "at most 4096"),
        (13, ["a"] * 10_000, 0.0, 0.0, None),
        (14, [], 180.0, -90.0, None),
    ]
    matcher = nc.Matcher()
    matcher.subscribe([nc.Subscription(1, keywords=["a"])])
    ids, keywords, x, y, reasons = (list(column) for column in zip(*rows, strict=True))
    found = matcher.match_table(pa.table({"id": ids, "keywords": keywords, "x": x, "y": y}))
    assert found["message_id"].to_pylist() == [1, 13]
    expected = [(row, reason) for row, reason in enumerate(reasons) if reason is not None]
    assert [row for row, _ in matcher.report.rejected] == [row for row, _ in expected]
    for (_, said), (_, reason) in zip(matcher.report.rejected, expected, strict=True):
        assert reason in said
    assert matcher.report.messages == 3


def test_bad_rows_of_a_subscription_table_are_rejected_and_the_rest_filed() -> None:
    ok = [0.0, 0.0, 1.0, 1.0]
    tie = '{"type": "Polygon", "coordinates": [[[0,0],[2,2],[2,0],[0,2],[0,0]]]}'
    rows: list[tuple[Any, Any, Any, Any, list[Any], str | None]] = [
        ("a", ["x"], None, None, ok, None),
        ("a", ["x"], None, None, ok, "comes twice"),
        (None, ["x"], None, None, ok, "id is null"),
        ("", ["x"], None, None, ok, "id is ''"),
        ("b", ["x"], None, None, [0.0, 0.0, math.nan, 1.0], "not finite"),
        ("c", ["x"], None, None, [2.0, 0.0, 1.0, 1.0], "inverted"),
        ("d", ["x"], None, None, [0.0, 0.0, 200.0, 1.0], "outside lonlat"),
        ("e", ["x"], None, None, [0.0, None, 1.0, 1.0], "all four or none"),
        ("f", [""], None, None, ok, "empty"),
        ("g", None, None, None, ok, "neither keywords nor interest"),
        ("h", ["x"], "y", None, ok, "expected one of them"),
        ("i", None, "(x", None, ok, "never closed"),
        ("j", None, "(" * 5000 + "x" + ")" * 5000, None, ok, "deep|nest"),
        ("k", ["x"], None, tie, ok, "elf-intersection"),
        ("l", ["x"], None, "not a geometry", ok, "geometry|WKT|GeoJSON"),
        ("m", [f"k{i}" for i in range(10_000)], None, None, ok, "at most 256"),
        ("n", None, None, "POLYGON ((0 0, 1 0, 0 1, 0 0))", ok, "neither keywords nor interest"),
        ("o", ["x", "x"], None, None, [None] * 4, None),
    ]
    ids, keywords, interests, regions, boxes, reasons = (list(column) for column in zip(*rows, strict=True))
    sides = {name: [box[i] for box in boxes] for i, name in enumerate(("x0", "y0", "x1", "y1"))}
    matcher = nc.Matcher()
    matcher.subscribe_table(pa.table({"id": ids, "keywords": keywords, "interest": interests, "region": regions, **sides}))
    expected = {row: reason for row, reason in enumerate(reasons) if reason is not None}
    assert [row for row, _ in matcher.report.rejected] == list(expected)
    for row, said in matcher.report.rejected:
        assert re.search(expected[row], said)
    found = matcher.publish([nc.Message(7, keywords=["x"], location=(0.5, 0.5))])
    assert sorted(str(d.subscription_id) for d in found) == ["a", "o"]


def test_objects_of_the_wrong_type_are_rejected_one_by_one() -> None:
    matcher = nc.Matcher()
    matcher.subscribe([nc.Subscription("s", keywords=["a"]), "not a subscription"])  # type: ignore[list-item]
    assert "expected a nearcast.Subscription" in matcher.report.rejected[0][1]
    found = matcher.publish([nc.Message(7, keywords=["a"], location=(0, 0)), None])  # type: ignore[list-item]
    assert len(found) == 1
    assert "expected a nearcast.Message" in matcher.report.rejected[0][1]


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (
            {"id": [1], "keywords": [["a"]], "x": [0.0], "y": [0.0], "colour": ["red"]},
            r"unknown columns \['colour'\].*drop_columns",
        ),
        ({"keywords": [["a"]], "x": [0.0], "y": [0.0]}, "no column 'id'"),
        ({"id": [1.5], "keywords": [["a"]], "x": [0.0], "y": [0.0]}, "column 'id' is of type double"),
        ({"id": [1], "keywords": ["a"], "x": [0.0], "y": [0.0]}, "expected list<string> or list<int32>"),
        ({"id": [1], "keywords": [[1.5]], "x": [0.0], "y": [0.0]}, "expected list<string> or list<int32>"),
        ({"id": [1], "keywords": [["a"]], "x": ["0"], "y": [0.0]}, "column 'x' is of type string"),
        ({"id": [1], "keywords": [["a"]], "x": [0.0]}, r"but not \['y'\]"),
        ({"id": [1], "keywords": [["a"]]}, "expected x, y"),
        ({"id": [1], "x": [0.0], "y": [0.0]}, "either 'keywords' or 'text'"),
        ({"id": [1], "text": [5], "x": [0.0], "y": [0.0]}, "column 'text' is of type int64"),
    ],
)
def test_a_wrong_schema_of_messages_raises(columns: dict[str, list[Any]], says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        nc.Matcher().match_table(pa.table(columns))


def test_a_wrong_schema_of_subscriptions_raises() -> None:
    matcher = nc.Matcher()
    with pytest.raises(SchemaError, match="expected 'keywords' or 'interest'"):
        matcher.subscribe_table(pa.table({"id": [1]}))
    with pytest.raises(SchemaError, match="expected a pyarrow"):
        matcher.subscribe_table([{"id": 1}])
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    with pytest.raises(SchemaError, match="column twice"):
        matcher.subscribe_table(twice)
    # Columns of nothing but nulls carry no type and are read as absent values.
    matcher.subscribe_table(pa.table({"id": [1], "keywords": pa.nulls(1), "interest": ["a"], "region": pa.nulls(1)}))
    matcher.subscribe_table(pa.table({"id": [2], "keywords": pa.array([[]], pa.list_(pa.null()))}))
    assert matcher.report.rejected == []
    assert len(matcher.publish([nc.Message(7, keywords=["a"], location=(0, 0))])) == 2


def test_one_thing_instead_of_a_list_is_explained() -> None:
    matcher = nc.Matcher()
    calls: list[tuple[Callable[[Any], Any], Any]] = [
        (matcher.subscribe, nc.Subscription(1)),
        (matcher.publish, nc.Message(1, keywords=[], location=(0, 0))),
        (matcher.unsubscribe, "abc"),
        (matcher.unsubscribe, 5),
    ]
    for call, given in calls:
        with pytest.raises(NearcastError, match="expected a list"):
            call(given)
    with pytest.raises(NearcastError, match="id"):
        matcher.unsubscribe([1.5])  # type: ignore[list-item]


def _engines_with_one() -> tuple[nc.Matcher, nc.MovingMatcher, nc.Ranker]:
    """Each with subscription 1, which message 7 concerns."""
    matcher, moving, ranker = nc.Matcher(), nc.MovingMatcher(), nc.Ranker(nc.CountWindow(5))
    subscription, message = nc.Subscription(1, keywords=["tea"]), nc.Message(7, keywords=["tea"], location=(0, 0))
    matcher.subscribe([subscription])
    moving.subscribe([subscription])
    moving.publish([message])
    ranker.subscribe([nc.RankedSubscription(1, ["tea"], (0, 0))])
    ranker.publish([message])
    return matcher, moving, ranker


@pytest.mark.parametrize(
    "ids",
    [
        [1],
        np.array([1, 2]),
        pa.array([1, 1], pa.int32()),
        pa.chunked_array([[2], [1]]),
        ["1", 1],
        [1, "1"],
    ],
    ids=str,
)
def test_ids_are_given_as_a_list_or_as_a_column(ids: Any) -> None:
    matcher, moving, ranker = _engines_with_one()
    assert moving.current_table(ids)["message_id"].to_pylist() == [7]
    assert ranker.top_table(ids)["message_id"].to_pylist() == [7]
    for engine in (matcher, moving, ranker):
        engine.unsubscribe(ids)
        assert engine.stats()["subscriptions"] == 0


@pytest.mark.parametrize("ids", [[], ["1"], pa.array(["1"]), pa.array([2]), pa.chunked_array([], pa.int64())], ids=str)
def test_ids_of_nobody_are_ignored(ids: Any) -> None:
    matcher, moving, ranker = _engines_with_one()
    assert moving.current_table(ids).num_rows == 0
    assert ranker.top_table(ids).num_rows == 0
    for engine in (matcher, moving, ranker):
        engine.unsubscribe(ids)
        assert engine.stats()["subscriptions"] == 1


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (5, "ids were given as 5; expected a list"),
        ("abc", "ids were given as 'abc'; expected a list"),
        (pa.array([1, None]), "a column with 1 nulls; expected an id in each row"),
        (pa.array([1.5]), "of type double"),
    ],
    ids=str,
)
def test_ids_that_cannot_be_are_explained(ids: Any, said: str) -> None:
    matcher, moving, ranker = _engines_with_one()
    for call in (matcher.unsubscribe, moving.unsubscribe, ranker.unsubscribe, moving.current_table, ranker.top_table):
        with pytest.raises(NearcastError, match=said):
            call(ids)


def test_arguments_in_the_wrong_order_are_no_explanation() -> None:
    matcher = nc.Matcher(space="plane")
    matcher.subscribe([nc.Subscription(1, keywords=["tea"])])
    message = nc.Message(2, keywords=["tea"], location=(0, 0))
    with pytest.raises(nc.NearcastError, match=r"explain was given 1; expected explain\(message, subscription_id\)"):
        matcher.explain(1, message)  # type: ignore[arg-type]
    with pytest.raises(nc.NearcastError, match=r"the id Message.* is of type Message; expected an int"):
        matcher.explain(message, message)  # type: ignore[arg-type]
    assert matcher.explain(message, 1).matched
