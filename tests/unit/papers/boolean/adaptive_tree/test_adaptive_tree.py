"""The AP-Tree as its users see it: parameters, costs, the way of a message in words, and what the paper works out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nearcast as nc
from nearcast.errors import IndexParameterError
from nearcast.papers.boolean.adaptive_tree.cost_inputs import HistoryArrays, likelihoods, no_history
from nearcast.papers.boolean.adaptive_tree.index import AdaptiveTreeParameters
from nearcast.papers.boolean.adaptive_tree.kernels.match import enter_cuts
from nearcast.papers.boolean.adaptive_tree.layout import (
    BEFORE_ALL,
    BLOCK_FIELDS,
    FIRST,
    KIND,
    LEAF,
    N_NODES,
    NO_RANK,
    NODE_FIELDS,
    SIZE,
)
from nearcast.testing.oracles.boolean import Oracle
from nearcast.testing.scenarios.boolean import BooleanComparison


def spread(first: int, n: int, *keywords: str) -> list[nc.Subscription]:
    return [
        nc.Subscription(i, list(keywords), nc.Box(i % 10, i // 10 % 10, i % 10 + 0.5, i // 10 % 10 + 0.5))
        for i in range(first, first + n)
    ]


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"partition": "best"}, "partition='best' is not known; expected heuristic or optimal"),
        ({"priority": "words"}, "expected cost or keyword or space"),
        ({"keyword_order": "id"}, "expected rare_first or frequent_first"),
        ({"rebuild": "always"}, "expected drift or never"),
        ({"fanout": 3}, "fanout=3 is not possible; expected 4 to"),
        ({"leaf_size": 1}, "leaf_size=1"),
        ({"max_copies": 0.5}, "max_copies=0.5"),
        ({"message_length": 0.0}, "message_length=0.0"),
        ({"drift_limit": -1.0}, "drift_limit=-1.0"),
        ({"least_change": float("nan")}, "least_change=nan"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(parameters: dict[str, object], told: str) -> None:
    with pytest.raises(IndexParameterError, match=told):
        AdaptiveTreeParameters(**parameters)  # type: ignore[arg-type]


def test_the_cuts_of_the_papers_example_are_entered_with_its_positions() -> None:
    """Example 6: cuts [w1], [w2, w3], [w4, w5]; m1 = {w2, w3, w4} enters the second with η = 2 and the third with η = 4."""
    left = [BEFORE_ALL, 1, 2, 4, 6]
    block = np.array([0] * BLOCK_FIELDS + [10, 11, 12, 13, 14] + left, np.int32)
    node = np.zeros(NODE_FIELDS * 20, np.int32)
    node[FIRST], node[SIZE] = 0, len(left)
    queue, position = np.zeros(5, np.int32), np.zeros(5, np.int32)
    rank = np.array([2, 3, 4], np.int32)
    n = enter_cuts(node, block, 0, rank, 3, queue, position, 0, 0, 0)
    # Positions are counted from 0 here: one less.
    assert list(zip(queue[:n].tolist(), position[:n].tolist(), strict=True)) == [(12, 1), (13, 3)]
    # A cut of several keywords that may be divided by the same one again is entered with that keyword.
    n = enter_cuts(node, block, 0, rank, 3, queue, position, 0, 0, 1)
    assert list(zip(queue[:n].tolist(), position[:n].tolist(), strict=True)) == [(12, 0), (13, 2)]


def test_a_message_has_as_many_chances_for_a_keyword_as_it_has_keywords() -> None:
    rank = np.array([1, NO_RANK, 0], np.int32)
    frequency = np.array([30, 0, 70], np.int64)
    assert likelihoods(rank, frequency, no_history(), 1.0).tolist() == pytest.approx([0.7, 0.3, 0.3])
    assert likelihoods(rank, frequency, no_history(), 2.0).tolist() == pytest.approx([1.0, 0.6, 0.6])
    history = HistoryArrays(np.array([984, 5], np.int64), np.array([984, 984 * 2], np.int64))
    counts = likelihoods(rank, frequency, history, 9.0)
    assert counts.tolist() == pytest.approx([16 * 1.0 / 1000, (984 + 16 * 0.6) / 1000, 16 * 1.0 / 1000])


def test_the_cheaper_division_comes_first() -> None:
    """Figure 2: the same place and many words, or many places and one word."""
    words = nc.Matcher("ap-tree", "plane", leaf_size=10)
    words.subscribe([nc.Subscription(i, [f"w{i % 50}"], nc.Box(0, 0, 10, 10)) for i in range(200)])
    assert "cuts by keyword number 1" in words.explain(nc.Message(1, ["w3"], (5, 5)), 3).path[0]
    places = nc.Matcher("ap-tree", "plane", leaf_size=10)
    places.subscribe(spread(0, 200, "w"))
    assert places.explain(nc.Message(1, ["w"], (3, 0)), 3).path[0].startswith("grid of")
    both = [nc.Matcher("ap-tree", "plane", leaf_size=10, priority=first) for first in ("keyword", "space")]
    for matcher in both:
        matcher.subscribe(spread(0, 200, "v", "w"))
    told = [matcher.explain(nc.Message(1, ["v", "w"], (3, 0)), 3).path for matcher in both]
    assert [line.split(" by ")[0] for line in told[0][:2]] == ["3 cuts", "3 cuts"]
    assert told[1][0].startswith("grid of")
    assert told[0][-1].startswith("leaf of")


def test_a_history_moves_the_divisions_to_where_messages_are() -> None:
    subscriptions = spread(0, 100, "w")
    told = []
    for x in (1.0, 9.0):
        history = nc.Matcher("scan", "plane")
        assert history.stats()["subscriptions"] == 0
        table = _messages([(x, 5.0)] * 300 + [(0.0, 0.0), (10.0, 10.0)])
        matcher = nc.Matcher("adaptive_tree", "plane", leaf_size=30, priority="space", history=table)
        matcher.subscribe(subscriptions)
        told.append(
            sum(matcher.publish([nc.Message(1, ["w"], (x, y))]) is not None and matcher.report.candidates for y in range(10))
        )
        matcher.publish([nc.Message(1, ["w"], (10.0 - x, 5.0))])
        told.append(matcher.report.candidates * 10)
    assert told[0] < told[1]
    assert told[2] < told[3]


def _messages(places: list[tuple[float, float]]) -> object:
    import pyarrow as pa

    return pa.table(
        {
            "id": list(range(len(places))),
            "keywords": [["w"]] * len(places),
            "x": [x for x, _ in places],
            "y": [y for _, y in places],
        }
    )


def test_explain_tells_where_the_ways_part() -> None:
    matcher = nc.Matcher("adaptive_tree", "plane", leaf_size=2, fanout=16, priority="keyword")
    matcher.subscribe(
        [
            *spread(0, 100, "often"),
            *spread(100, 30, "seldom", "often"),
            nc.Subscription(500, [], nc.Box(3, 3, 8, 8)),
            nc.Subscription(501, ["often"]),
        ]
    )
    inside = matcher.explain(nc.Message(1, ["often"], (5.2, 5.2)), 55)
    assert inside.matched
    assert "leaf of" in inside.path[-1]
    without = matcher.explain(nc.Message(1, ["unheard"], (5.2, 5.2)), 55)
    assert "the message has no keyword in it" in without.path[-1]
    elsewhere = matcher.explain(nc.Message(1, ["often"], (9.2, 0.2)), 55)
    assert "the message lies elsewhere" in elsewhere.path[-1]
    assert "which every message enters" in " ".join(matcher.explain(nc.Message(1, [], (5, 5)), 500).path)
    assert "covers the region" in " ".join(matcher.explain(nc.Message(1, ["often"], (99, 99)), 501).path)


def test_a_leaf_whose_way_proves_the_keywords_needs_no_look_at_them() -> None:
    both = BooleanComparison(nc.Matcher("adaptive_tree", "plane", leaf_size=4, priority="keyword"), Oracle("plane"))
    both.subscribe([*spread(0, 40, "a"), *spread(40, 40, "b", "a"), *spread(80, 40, "c")])
    both.publish([nc.Message(i, words, (i, 4)) for i, words in enumerate((["a"], ["b"], ["a", "b"], ["a", "c"]))])
    index: Any = both.matcher._index
    records = index._tree.node.reshape(-1, NODE_FIELDS)[: int(index._tree.head[N_NODES])]
    leaves = records[records[:, KIND] == LEAF]
    assert len(leaves) > 3
    for _, first, size, _ in leaves.tolist():
        assert not index._tree.signature[first : first + size].any()


def test_messages_with_many_keywords_and_clauses_with_more_than_fit_the_bits() -> None:
    both = BooleanComparison(nc.Matcher("adaptive_tree", "plane", leaf_size=2, fanout=4), Oracle("plane"))
    words = [f"w{i}" for i in range(80)]
    both.subscribe([nc.Subscription(i, words[i:], nc.Box(0, 0, 1, 1)) for i in range(12)])
    both.subscribe([nc.Subscription(20 + i, words[: 70 + i], nc.Box(0, 0, 1, 1)) for i in range(5)])
    both.publish([nc.Message(1, words, (0, 0)), nc.Message(2, words[1:], (1, 1)), nc.Message(3, words[:72], (0, 1))])
