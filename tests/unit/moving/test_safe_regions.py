"""Subscribers that do not report in their safe regions: the regions they get, and that these are right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import nearcast as nc
from nearcast.errors import IndexParameterError
from nearcast.model.inputs import Id
from nearcast.testing.budget import Budget
from nearcast.testing.scenarios.safe_regions import run_safe_region_worlds

VARIANTS: list[tuple[str, str, dict[str, Any]]] = [
    ("plane", "moving_adaptive_tree", {"safe_region": True, "leaf_size": 2, "fanout": 4}),
    ("lonlat", "moving_adaptive_tree", {"safe_region": True, "message_lists": "space_grid"}),
    ("plane", "moving_space_first_quadtree", {"safe_region": "cells"}),
    ("lonlat", "moving_keyword_first_quadtree", {"safe_region": True, "max_depth": 3, "smallest_tree": 1}),
    ("plane", "grid_space_first", {"safe_region": "cells"}),
]


@pytest.mark.parametrize(("space", "index", "options"), VARIANTS, ids=str)
def test_silent_clients_never_miss_and_never_keep_a_wrong_message(
    space: str, index: str, options: dict[str, Any], budget: Budget
) -> None:
    def make_matcher(space: str, positions: Callable[[list[Id]], Mapping[Id, object]]) -> nc.MovingMatcher:
        return nc.MovingMatcher(index, space, positions=positions, **options)

    counts = run_safe_region_worlds(space, make_matcher, 1000 if budget.is_soak else max(2, budget.worlds // 50))
    assert 0.2 * counts["moves"] < counts["moves not reported"] < counts["moves"]


class Alone:
    """A matcher with one subscriber at a place."""

    def __init__(self, where: Any, **options: Any) -> None:
        self.asked: list[list[Id]] = []
        self.where = where
        self.matcher = nc.MovingMatcher("moving_adaptive_tree", "plane", safe_region=True, positions=self.answer, **options)
        self.matcher.subscribe([nc.Subscription(1, ["a"], where)])

    def answer(self, ids: list[Id]) -> Mapping[Id, object]:
        self.asked.append(ids)
        return {1: self.where}


def test_a_circle_may_go_as_far_as_the_nearest_message_is_from_its_border() -> None:
    alone = Alone(nc.Circle(0, 0, 2))
    alone.matcher.publish([nc.Message(1, ["a"], (0, 1.5)), nc.Message(2, ["a"], (3, 0)), nc.Message(3, ["b"], (2, 0))])
    region = alone.matcher.safe_regions([1, 99])[1]
    assert isinstance(region, nc.Circle)
    # Paper: footnote 17 gives 1.5 - 2 < 0 [E23].
    assert region.radius == pytest.approx(0.5)
    assert alone.matcher.traffic.safe_regions == 1


def test_a_box_may_go_as_far_in_x_and_in_y() -> None:
    alone = Alone(nc.Box(0, 0, 4, 2))
    alone.matcher.publish([nc.Message(1, ["a"], (2, 0.75)), nc.Message(2, ["a"], nc.Box(7, 0, 9, 9))])
    region = alone.matcher.safe_regions([1])[1]
    assert isinstance(region, nc.Box)
    assert region.bounds == pytest.approx((1.25, 0.25, 2.75, 1.75))


def test_who_is_everywhere_never_reports_and_a_polygon_always() -> None:
    anywhere = Alone(None).matcher.safe_regions([1])[1]
    assert anywhere.meets(nc.Box(1e300, 0, 1e300, 0), "plane")
    triangle = Alone(nc.Polygon([[(0, 0), (2, 0), (0, 2)]])).matcher.safe_regions([1])[1]
    assert isinstance(triangle, nc.Circle)
    assert triangle.radius == 0


def test_only_messages_between_in_and_out_make_a_contact() -> None:
    alone = Alone(nc.Circle(0, 0, 2))
    alone.matcher.publish([nc.Message(1, ["a"], (3, 0))])
    alone.matcher.safe_regions([1])
    far, near, other = nc.Message(2, ["a"], (0, 3.5)), nc.Message(3, ["a"], (0.1, 0)), nc.Message(4, ["b"], (2, 0))
    assert alone.matcher.publish([far, near, other]) == [nc.Change(1, 3, 1)]
    assert alone.asked == []
    alone.where = nc.Circle(0.9, 0, 2)
    assert alone.matcher.publish([nc.Message(5, ["a"], (-1.5, 0)), nc.Message(6, ["a"], (2.5, 0))]) == [nc.Change(1, 6, 1)]
    assert alone.asked == [[1]]
    # The safe regions are cancelled.
    alone.matcher.publish([nc.Message(7, ["a"], (1.5, 0))])
    assert len(alone.asked) == 1
    traffic = alone.matcher.traffic
    assert (traffic.reports, traffic.contacts, traffic.safe_regions, traffic.total) == (0, 1, 1, 2)


def test_a_client_that_left_its_region_gets_what_it_missed_when_it_is_asked() -> None:
    alone = Alone(nc.Circle(0, 0, 2))
    alone.matcher.publish([nc.Message(1, ["a"], (3, 0), time=0, expires=5), nc.Message(2, ["a"], (0, 1.5), time=0)])
    alone.matcher.safe_regions([1])
    alone.where = nc.Circle(9, 0, 2)
    # The first enters by the move and expires at once; the second is out of reach.
    assert set(alone.matcher.publish([nc.Message(3, ["a"], (2, 0), time=6)])) == {nc.Change(1, 2, -1)}


def test_a_circle_across_the_antimeridian_must_be_reported() -> None:
    matcher = nc.MovingMatcher("moving_adaptive_tree", safe_region=True, positions=lambda ids: {})
    matcher.subscribe([nc.Subscription("x", ["a"], nc.Circle(179.9, 0, 50_000))])
    region = matcher.safe_regions(["x"])["x"]
    assert isinstance(region, nc.Circle)
    assert region.radius == 0


def test_safe_regions_stay_valid_when_dead_clauses_are_cleared_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.moving.safe_regions.circles._LEAST_DEAD", 0)
    monkeypatch.setattr("nearcast.engine.subscription_store._LEAST_DEAD", 0)
    asked: list[list[Id]] = []

    def answer(ids: list[Id]) -> Mapping[Id, object]:
        asked.append(ids)
        return {}

    for kind in (True, "cells"):
        asked.clear()
        matcher = nc.MovingMatcher("moving_adaptive_tree", "plane", safe_region=kind, positions=answer)
        matcher.subscribe([nc.Subscription(i, ["a"], nc.Box(4 * i, 0, 4 * i + 1, 1)) for i in range(9)])
        matcher.safe_regions(range(9))
        matcher.unsubscribe(range(7))
        matcher.safe_regions([8])
        matcher.publish([nc.Message(1, ["a"], (33.3, 0.5)), nc.Message(2, ["a"], (0, 0))])
        assert asked == [[8]]


@pytest.mark.parametrize("index", ["moving_adaptive_tree", "moving_space_first_quadtree"])
def test_a_message_deep_inside_leaves_room_for_safe_cells(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.engine.kernel_calls.FIRST_CAPACITY", 1)
    matcher = nc.MovingMatcher(index, "plane", safe_region="cells", positions=lambda ids: {})
    matcher.subscribe([nc.Subscription(1, ["a"], nc.Circle(0, 0, 2)), nc.Subscription(2, ["a"], nc.Box(-2, -2, 2, 2))])
    matcher.publish([nc.Message(i, ["a"], (0.1 * i, 0)) for i in range(4)])
    for region in matcher.safe_regions([1, 2]).values():
        assert region.meets(nc.Box(0, 0, 0, 0), "plane")
        assert region.meets(nc.Box(0.05, 0, 0.05, 0), "plane")


def test_an_opened_matcher_has_assigned_no_safe_regions(tmp_path: Path) -> None:
    alone = Alone(nc.Circle(0, 0, 2))
    alone.matcher.publish([nc.Message(1, ["a"], (3, 0))])
    alone.matcher.safe_regions([1])
    alone.matcher.save(tmp_path / "saved")
    again = nc.MovingMatcher.open(tmp_path / "saved", safe_region=True, positions=alone.answer)
    assert again.publish([nc.Message(2, ["a"], (1.5, 0))]) == [nc.Change(1, 2, 1)]
    assert alone.asked == []
    region = again.safe_regions([1])[1]
    assert isinstance(region, nc.Circle)
    assert region.radius == pytest.approx(0.5)


def test_what_is_not_possible_is_said() -> None:
    with pytest.raises(nc.NearcastError, match="positions="):
        nc.MovingMatcher(safe_region=True)
    with pytest.raises(nc.NearcastError, match="'squares' is not known"):
        nc.MovingMatcher(safe_region="squares", positions=lambda ids: {})
    plain = nc.MovingMatcher()
    with pytest.raises(nc.NearcastError, match="safe_region=True"):
        plain.safe_regions([1])
    cells = nc.MovingMatcher("grid_space_first", safe_region="cells", positions=lambda ids: {})
    cells.subscribe([nc.Subscription(1, ["a"], nc.Circle(0, 0, 1))])
    with pytest.raises(nc.NearcastError, match="need space='plane'"):
        cells.safe_regions([1])


def test_an_index_that_cannot_look_elsewhere_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.moving.moving_scan.index.MovingScan.searches_any_box", False)
    matcher = nc.MovingMatcher("moving_scan", safe_region=True, positions=lambda ids: {})
    matcher.subscribe([nc.Subscription(1, ["a"], nc.Circle(0, 0, 1))])
    with pytest.raises(IndexParameterError, match="gives no safe regions"):
        matcher.safe_regions([1])


def test_the_index_for_silent_subscribers_is_chosen_by_itself() -> None:
    assert nc.MovingMatcher(safe_region=True, positions=lambda ids: {}).stats()["index"] == "moving_adaptive_tree"
    assert nc.MovingMatcher().stats()["index"] == "moving_grid"
