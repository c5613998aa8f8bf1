"""The IQ-Tree: weights of keywords, and what it tells about itself."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.errors import IndexParameterError
from nearcast.papers.boolean.quadtrees.index import SpaceFirstQuadtree, SpaceFirstQuadtreeParameters
from nearcast.papers.boolean.quadtrees.layout import MessageLocations


def locations(n_messages: int, mean: float, counts: list[int]) -> MessageLocations:
    none = np.empty(0, np.int32)
    start = np.concatenate([[0], np.cumsum([0, *counts])]).astype(np.int64)
    return MessageLocations(np.zeros(6), none, start, none, np.array([10, n_messages, mean]))


def test_without_a_history_a_keyword_weighs_its_share_times_the_length_of_a_message() -> None:
    index = SpaceFirstQuadtree(SpaceFirstQuadtreeParameters(message_length=4.0))
    weight = index.anchor_weights(np.array([6, 3, 1]), locations(0, 0, []))
    assert weight.tolist() == pytest.approx([1.0, 1.0, 1.0, 0.4])


def test_with_a_history_a_keyword_weighs_the_share_of_messages_that_have_it() -> None:
    index = SpaceFirstQuadtree(SpaceFirstQuadtreeParameters())
    weight = index.anchor_weights(np.array([5, 5]), locations(984, 0.5, [492]))
    # Sixteen messages' worth of the frequency among the clauses: half of the keywords, half a keyword per message.
    assert weight.tolist() == pytest.approx([1.0, (492 + 16 * 0.25) / 1000, 16 * 0.25 / 1000])


def test_messages_need_some_length() -> None:
    with pytest.raises(IndexParameterError, match="message_length"):
        SpaceFirstQuadtreeParameters(message_length=0.0)


def test_frequent_keywords_are_bound_to_smaller_cells() -> None:
    """A clause across the middle of the region stays whole for a rare keyword, and is cut for one that every message has."""
    history = pa.table(
        {
            "id": list(range(400)),
            "keywords": [["often"] if i % 100 else ["often", "seldom"] for i in range(400)],
            "x": [float(i % 20) for i in range(400)],
            "y": [float(i // 20) for i in range(400)],
        }
    )
    matcher = nc.Matcher("space_first_quadtree", "plane", history=history)
    across = nc.Box(9, 9, 10, 10)
    matcher.subscribe([nc.Subscription("a", ["seldom"], across), nc.Subscription("b", ["often"], across)])
    seldom, often = (matcher.explain(nc.Message(1, ["seldom", "often"], (9, 9)), id).path for id in "ab")
    assert seldom[1].startswith("depth 0, column 0, row 0: list of 1 clauses, visited")
    assert "bound to 4 of the cells" in often[0]


def test_the_way_to_a_clause_is_told_in_words() -> None:
    matcher = nc.Matcher("space_first_quadtree", "plane")
    subscriptions = [nc.Subscription(1, ["a"], nc.Box(0, 0, 1, 1)), nc.Subscription(2, [], nc.Box(7, 7, 8, 8))]
    matcher.subscribe(subscriptions)
    here, there = nc.Message(1, ["a"], (0.5, 0.5)), nc.Message(2, ["b"], (7.5, 7.5))
    assert any("list of 1 clauses, visited" in line for line in matcher.explain(here, 1).path)
    assert matcher.explain(there, 1).path[-1] == "no list visited: the message lacks that keyword"
    assert "posted without keyword" in matcher.explain(there, 2).path[0]
    assert all("lies elsewhere" in line for line in matcher.explain(here, 2).path[1:])


def test_stats_tell_cells_lists_and_depth() -> None:
    matcher = nc.Matcher("iq-tree", "plane")
    assert matcher.stats()["depth"] == 1
    matcher.subscribe([nc.Subscription(i, ["a"], nc.Box(i, i, i + 0.1, i + 0.1)) for i in range(16)])
    stats = matcher.stats()
    assert int(stats["cells"]) == int(stats["lists"]) > 1
    paths = [matcher.explain(nc.Message(1, ["a"], (i, i)), i).path[1:] for i in range(16)]
    assert stats["depth"] == 1 + max(int(line.split(",")[0].removeprefix("depth ")) for path in paths for line in path)
    assert float(stats["copies"]) >= 1.0
