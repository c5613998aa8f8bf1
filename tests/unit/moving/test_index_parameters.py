"""Choices of moving indexes that are not possible, and what their parts tell."""

from __future__ import annotations

from typing import Any

import pytest

import nearcast as nc
from nearcast.engine.registry import create
from nearcast.errors import IndexParameterError
from nearcast.moving.indexes import MOVING_INDEXES
from nearcast.moving.live_messages import LiveMessages


@pytest.mark.parametrize(
    ("index", "parameters", "message"),
    [
        ("nothing", {}, "no moving index 'nothing'; expected 'auto' or one of moving_scan"),
        ("moving_scan", {"side": 3}, "takes no parameters"),
        ("grid_space_first", {"side": 0}, "expected 1 to 1024"),
        ("ss-index", {"most_cells": 0}, "expected at least 1"),
        ("moving_adaptive_tree", {"max_message_copies": 0}, "expected 1 to 4096"),
        ("moving_adaptive_tree", {"message_lists": "nowhere"}, "expected tree or keyword_grid"),
        ("moving_adaptive_tree", {"costs": "none"}, "expected matching or moving"),
        ("moving_adaptive_tree", {"mobility": 0.0}, "expected more than 0, at most 1"),
        ("moving_adaptive_tree", {"arrivals": 0.0}, "expected more than 0"),
        ("moving_adaptive_tree", {"speed": -1.0}, "expected 0 or more"),
        ("ap-plus-tree", {"fanout": 1}, "expected 4 to"),
        ("iq-plus-tree", {"max_depth": 0}, "expected 1 to"),
        ("rq-plus-tree", {"smallest_tree": 0}, "expected at least 1"),
        ("moving_grid", {"first_level": 13}, "first_level=13 is not possible; expected 1 to 12"),
    ],
)
def test_what_is_not_possible_is_explained(index: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(IndexParameterError, match=message):
        nc.MovingMatcher(index, **parameters)


def test_moving_indexes_are_listed_with_paper_and_parameters() -> None:
    known = nc.indexes(kind="moving")
    assert {"moving_scan", "grid_space_first", "grid_keyword_first", "moving_adaptive_tree"} <= set(known)
    assert known["grid_space_first"].parameters == {"side": 40, "most_cells": 400}
    assert known["moving_adaptive_tree"].parameters["max_message_copies"] == 32
    assert all(info.paper and info.summary for info in known.values())


def test_the_tree_keeps_a_message_at_no_more_nodes_than_allowed() -> None:
    for limit in (1, 3, 16):
        matcher = nc.MovingMatcher("moving_adaptive_tree", "plane", leaf_size=2, fanout=4, max_message_copies=limit)
        matcher.subscribe([nc.Subscription(i, [f"w{i % 5}", f"w{i % 7}"], nc.Box(i % 9, 0, i % 9 + 1, 2)) for i in range(80)])
        matcher.publish([nc.Message(i, [f"w{k}" for k in range(i % 7)], (i % 10, 1)) for i in range(50)])
        copies = int(matcher.stats()["message_copies"])
        assert 50 <= copies <= 50 * limit
        matcher.move({i: nc.Box(i % 11, 0, i % 11 + 2, 2) for i in range(80)})
        assert int(matcher.stats()["message_copies"]) <= 50 * limit


def test_an_index_that_drops_dead_messages_at_once_collects_nothing() -> None:
    index = create(MOVING_INDEXES, "moving_scan", {})
    assert not index.collects_dead
    assert not index.collect_dead(LiveMessages(), 1)
