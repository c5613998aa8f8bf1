"""The moving quadtrees: messages at the depths where clauses look, and what is cleared away while clauses travel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nearcast as nc
from nearcast.testing.oracles.moving import MovingOracle
from nearcast.testing.scenarios.moving import MovingComparison

INDEXES = ["moving_space_first_quadtree", "moving_keyword_first_quadtree"]


def crowd(index: str, **options: Any) -> MovingComparison:
    both = MovingComparison(nc.MovingMatcher(index, "plane", **options), MovingOracle("plane"))
    both.subscribe([nc.Subscription(i, [f"w{i % 3}"], nc.Box(i % 10, i // 10, i % 10 + 0.4, i // 10 + 0.4)) for i in range(60)])
    return both


@pytest.mark.parametrize("index", INDEXES)
def test_places_that_clauses_have_left_are_cleared_away(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.papers.moving.quadtrees.index._LEAST", 1)
    both = crowd(index, update_cost=0.001, max_depth=5)
    rng = np.random.default_rng(2)
    both.publish([nc.Message(i, [f"w{i % 4}"], (float(x), float(y))) for i, (x, y) in enumerate(rng.uniform(0, 10, (60, 2)))])
    sizes = []
    for _ in range(30):
        both.move({i: nc.Box(x, y, x + 0.4, y + 0.4) for i, (x, y) in enumerate(rng.uniform(0, 10, (60, 2)).tolist())})
        sizes.append(float(both.matcher.stats()["bytes"]))
    assert max(sizes[15:]) < 3 * sizes[0]


@pytest.mark.parametrize("index", INDEXES)
def test_messages_follow_clauses_to_a_new_depth(index: str) -> None:
    both = crowd(index, update_cost=0.001, max_depth=6, **({"smallest_tree": 1} if "keyword" in index else {}))
    both.publish(
        [nc.Message(i, [f"w{i % 3}", "new"], (i % 10 + 0.2, i // 10 + 0.1), time=0, expires=1 + i % 2) for i in range(60)]
    )
    both.publish([nc.Message(100, ["new"], nc.Box(0, 0, 9, 9))])
    before = int(both.matcher.stats()["message_entries"])
    assert both.subscribe([nc.Subscription(200 + i, ["new"], nc.Box(3 + i, 3, 3.5 + i, 3.5)) for i in range(4)])
    assert int(both.matcher.stats()["message_entries"]) > before
    both.advance(1.5)
    # The dead are not posted again.
    both.move({0: nc.Box(0, 0, 9, 9), 1: nc.Box(2.21, 2.11, 2.22, 2.12), 200: nc.Box(7.2, 4.1, 7.2, 4.1)})


def test_cells_well_inside_both_boxes_are_left_out() -> None:
    both = crowd("moving_space_first_quadtree", update_cost=0.0001, max_depth=6)
    rng = np.random.default_rng(1)
    both.publish([nc.Message(i, ["w0"], (float(x), float(y))) for i, (x, y) in enumerate(rng.uniform(3, 7, (400, 2)))])
    both.move({0: nc.Box(2, 1.5, 7, 5)})
    both.matcher.move({0: nc.Box(2.05, 1.5, 7.05, 5)})
    # Each message in the boxes would be a candidate twice.
    assert both.matcher.report.candidates < 1.5 * len(both.matcher.current(0))
    both.move({0: nc.Box(2, 1.5, 7.1, 5)})
