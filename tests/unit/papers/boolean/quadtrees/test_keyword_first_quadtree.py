"""The RQ-Tree: which posting lists are divided, and when."""

from __future__ import annotations

import pytest

import nearcast as nc
from nearcast.errors import IndexParameterError
from nearcast.papers.boolean.quadtrees.index import KeywordFirstQuadtreeParameters
from nearcast.testing.oracles.boolean import Oracle
from nearcast.testing.scenarios.boolean import BooleanComparison


def spread(first: int, n: int, keyword: str) -> list[nc.Subscription]:
    return [
        nc.Subscription(i, [keyword], nc.Box(i % 10, i // 10 % 10, i % 10 + 0.5, i // 10 % 10 + 0.5))
        for i in range(first, first + n)
    ]


def test_short_lists_are_not_divided() -> None:
    matcher = nc.Matcher("rq-tree", "plane", smallest_tree=10)
    matcher.subscribe([*spread(0, 9, "short"), *spread(100, 60, "long")])
    assert (
        "depth 0, column 0, row 0: list of 9 clauses, visited" in matcher.explain(nc.Message(1, ["short"], (0, 0)), 0).path[1]
    )
    assert "depth 0" not in " ".join(matcher.explain(nc.Message(1, ["long"], (0, 0)), 111).path[1:])
    with pytest.raises(IndexParameterError, match="smallest_tree=0"):
        KeywordFirstQuadtreeParameters(smallest_tree=0)


def test_a_list_that_grows_long_is_divided_when_it_is_twice_as_long() -> None:
    both = BooleanComparison(nc.Matcher("keyword_first_quadtree", "plane", smallest_tree=10), Oracle("plane"))
    both.subscribe([*spread(0, 9, "word"), *spread(1000, 200, "other")])
    messages = [nc.Message(i, ["word"], (i % 10, i // 10)) for i in range(100)]
    both.subscribe(spread(9, 10, "word"))
    both.publish(messages)
    assert both.matcher.report.candidates == 1900
    both.subscribe(spread(19, 20, "word"))
    both.publish(messages)
    assert both.matcher.report.candidates < 400
    both.unsubscribe(range(0, 39, 2))
    both.publish(messages)


def test_every_list_of_a_keyword_is_reached_by_a_message_that_covers_everything() -> None:
    both = BooleanComparison(nc.Matcher("keyword_first_quadtree", "plane", smallest_tree=1), Oracle("plane"))
    both.subscribe([*spread(0, 100, "word"), nc.Subscription(500, [], nc.Box(3, 3, 8, 8)), nc.Subscription(501, ["word"])])
    everywhere = nc.Message(1, ["word", "unknown"], nc.Box(-1e308, -1e308, 1e308, 1e308))
    assert len(both.publish([everywhere])) == 102
    # A small box looks for its few cells instead.
    assert len(both.publish([nc.Message(2, ["word"], nc.Box(3.2, 3.2, 3.3, 3.3))])) == 3
    assert both.matcher.report.nodes_visited < 20


def test_only_messages_with_the_keyword_count() -> None:
    """A rare keyword is divided as finely as a frequent one: its share of the messages does not matter."""
    matcher = nc.Matcher("keyword_first_quadtree", "plane", smallest_tree=1)
    matcher.subscribe(
        [*spread(0, 100, "often"), *spread(200, 100, "seldom"), *[nc.Subscription(1000 + i, ["often"]) for i in range(500)]]
    )
    often, seldom = (
        matcher.explain(nc.Message(1, [word], (5, 5)), id).path[1:] for word, id in (("often", 55), ("seldom", 255))
    )
    assert [line.split(":")[0] for line in often] == [line.split(":")[0] for line in seldom]
