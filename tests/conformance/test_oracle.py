"""The oracle on examples computed by hand, and its formulas against the plainest ones there are."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings

from nearcast.model.analysis import Analysis
from nearcast.model.message import Message
from nearcast.model.regions import Box, Circle, MultiPolygon, Polygon
from nearcast.model.subscription import Subscription
from nearcast.testing import strategies
from nearcast.testing.oracles.boolean import (
    Oracle,
    Pair,
    boxes_meet,
    circle_meets_box,
    distance_m,
    distance_to_box_m,
    messages_from_table,
    subscriptions_from_table,
)
from nearcast.testing.scenarios.worlds import World, message_table, random_world, subscription_table

_DEGREE_M = math.pi * 6_371_008.8 / 180


def test_the_example_of_the_lfilter_paper() -> None:
    """Paper: Yu et al. 2015, §2. The paper states the rectangles of s1, s3 and s4 only."""
    oracle = Oracle("plane")
    oracle.subscribe(
        [
            Subscription(1, ["a", "b", "c"], Box(25, 0, 30, 20)),
            Subscription(3, ["b", "c", "d"], Box(20, 32, 35, 35)),
            Subscription(4, ["b", "c", "d"], Box(20, 10, 28, 18)),
        ]
    )
    point = Message("m_p", ["b", "c", "d", "e", "f"], (26, 14))
    assert oracle.publish([point]) == [Pair(4, "m_p")]
    assert not oracle.matches(1, point)
    assert not oracle.matches(3, point)
    area = Message("m_r", ["a", "c", "d", "e"], Box(10, 10, 40, 40))
    assert oracle.publish([area]) == []


def test_the_keywords_of_the_textual_rtree_paper() -> None:
    """Paper: Li et al. 2013, Figure 1, the subscriptions whose tokens the text determines; the locations are ours."""
    words = {
        1: "32GB AT&T iphone4s",
        4: "verizon iphone4s",
        7: "AT&T ipad2",
        8: "AT&T ipad2 iphone4s",
        10: "32GB AT&T iphone4s",
        12: "64GB ipad2",
    }
    oracle = Oracle("plane")
    oracle.subscribe([Subscription(id, text.split(), Box(id, 0, id + 1, 1)) for id, text in words.items()])
    m_p = ["iphone4s", "ipad2", "AT&T", "64GB"]
    assert {pair.subscription_id for pair in oracle.publish([Message(0, m_p, Box(0, 0, 99, 1))])} == {7, 8, 12}
    assert {pair.subscription_id for pair in oracle.publish([Message(0, m_p, Box(8, 0, 99, 1))])} == {7, 8, 12}
    assert {pair.subscription_id for pair in oracle.publish([Message(0, m_p, Box(8.5, 0, 99, 1))])} == {8, 12}
    short = ["ipad2", "AT&T", "32GB", "64GB"]
    assert {pair.subscription_id for pair in oracle.publish([Message(0, short, Box(8.5, 0, 99, 1))])} == {12}


def test_the_keywords_of_the_ap_tree_paper() -> None:
    """Paper: Wang et al. 2015, §3: m1 = {w2, w3, w4} meets s7 = {w3, w4} and not s1 = {w1, w2}."""
    oracle = Oracle("plane")
    oracle.subscribe([Subscription(1, ["w1", "w2"]), Subscription(7, ["w3", "w4"])])
    assert oracle.publish([Message(1, ["w2", "w3", "w4"], (0, 0))]) == [Pair(7, 1)]


def test_boxes_are_closed() -> None:
    box = Box(0, 0, 2, 2)
    for other in (Box(2, 2, 3, 3), Box(2, 0, 2, 0), Box(-1, -1, 0, 0), Box(1, 1, 1, 1), Box(-5, 1, 5, 1), Box(-5, -5, 5, 5)):
        assert boxes_meet(box, other)
        assert boxes_meet(other, box)
    for other in (Box(2.1, 0, 3, 2), Box(0, 2.1, 2, 3), Box(-1, 0, -0.1, 2), Box(3, 3, 4, 4)):
        assert not boxes_meet(box, other)
        assert not boxes_meet(other, box)


def test_a_known_id_replaces_and_the_second_of_a_batch_is_rejected() -> None:
    oracle = Oracle("plane")
    oracle.subscribe([Subscription(1, ["a"]), Subscription(2, ["b"]), Subscription(1, ["c"])])
    assert oracle.rejected == [2]
    message = Message(9, ["a", "c"], (0, 0))
    assert oracle.publish([message]) == [Pair(1, 9)]
    oracle.subscribe([Subscription(1, ["b"])])
    assert oracle.rejected == []
    assert oracle.publish([message]) == []
    oracle.unsubscribe([1, 1, 7])
    assert set(oracle.subscriptions) == {2}


def test_what_lies_outside_lonlat_is_rejected_and_the_rest_is_answered() -> None:
    oracle = Oracle("lonlat")
    ring = [(170, 0), (181, 0), (170, 5)]
    oracle.subscribe([Subscription(1), Subscription(2, region=Box(0, 0, 181, 1)), Subscription(3, region=Circle(0, -91, 1))])
    assert oracle.rejected == [1, 2]
    oracle.subscribe(
        [Subscription(4, region=Polygon([ring])), Subscription(5, region=MultiPolygon([[[(0, 0), (1, 0), (0, 1)]]]))]
    )
    assert oracle.rejected == [0]
    assert oracle.publish([Message(1, [], (0, 91)), Message(2, [], (180, 90))]) == [Pair(1, 2)]
    assert oracle.rejected == [0]


def test_interests_hold_word_by_word() -> None:
    oracle = Oracle("plane")
    oracle.subscribe([Subscription(1, interest="(ipad OR iphone) AND sale AND NOT refurbished")])
    texts = ["iPad sale", "iphone SALE today", "sale", "ipad", "ipad sale refurbished"]
    assert oracle.publish([Message(i, text=text, location=(0, 0)) for i, text in enumerate(texts)]) == [Pair(1, 0), Pair(1, 1)]


def test_stems_are_compared_when_the_analysis_stems() -> None:
    pytest.importorskip("Stemmer")
    oracle = Oracle("plane", Analysis(stem="english"))
    oracle.subscribe([Subscription(1, ["running"]), Subscription(2, interest="runs AND NOT shoes"), Subscription(3, [])])
    pairs = oracle.publish([Message(1, text="She ran and runs", location=(0, 0)), Message(2, ["running", "shoe"], (0, 0))])
    assert set(pairs) == {Pair(1, 1), Pair(2, 1), Pair(3, 1), Pair(1, 2), Pair(3, 2)}


def test_a_message_with_too_many_words_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARCAST_MAX_MESSAGE_KEYWORDS", "2")
    oracle = Oracle("plane")
    oracle.subscribe([Subscription(1)])
    assert oracle.publish([Message(1, text="a b c", location=(0, 0)), Message(2, text="a b", location=(0, 0))]) == [Pair(1, 2)]
    assert oracle.rejected == [0]


def test_distances_on_the_sphere_by_hand() -> None:
    assert distance_m(0, 0, 90, 0) == pytest.approx(90 * _DEGREE_M)
    assert distance_m(10, 90, -77, 0) == pytest.approx(90 * _DEGREE_M)
    assert distance_m(0, 0, 180, 0) == pytest.approx(180 * _DEGREE_M)
    assert distance_m(179.5, 0, -179.5, 0) == pytest.approx(_DEGREE_M)
    assert distance_m(5, 5, 5, 5) == 0
    # Paris to London, 343 to 344 km in every table.
    assert distance_m(2.3522, 48.8566, -0.1276, 51.5072) == pytest.approx(343_556, rel=1e-3)


def test_the_nearest_point_of_a_box_by_hand() -> None:
    assert distance_to_box_m(0, 0, Box(-1, -1, 1, 1)) == 0
    assert distance_to_box_m(0, 3, Box(-1, -1, 1, 1)) == pytest.approx(2 * _DEGREE_M)
    assert distance_to_box_m(3, 0, Box(-1, -1, 1, 1)) == pytest.approx(2 * _DEGREE_M)
    # From the pole every longitude is as near.
    assert distance_to_box_m(123, 90, Box(-1, -1, 1, 80)) == pytest.approx(10 * _DEGREE_M)
    # Across the antimeridian, and from the other side of the pole.
    assert distance_to_box_m(179, 0, Box(-180, -1, -178, 1)) == pytest.approx(_DEGREE_M)
    assert distance_to_box_m(0, 80, Box(180, 85, 180, 88)) == pytest.approx(12 * _DEGREE_M)
    # A box across the whole width touches itself at the antimeridian.
    assert distance_to_box_m(180, 5, Box(-180, 0, -170, 10)) == 0


def test_the_nearest_point_of_a_box_is_no_farther_than_any_other() -> None:
    rng = np.random.default_rng(5)
    for _ in range(60):
        x, y = rng.uniform(-180, 180), rng.uniform(-90, 90)
        x0, x1 = sorted(rng.uniform(-180, 180, 2).tolist())
        y0, y1 = sorted(rng.uniform(-90, 90, 2).tolist())
        nearest = distance_to_box_m(x, y, Box(x0, y0, x1, y1))
        sampled = min(distance_m(x, y, a, b) for a in np.linspace(x0, x1, 40) for b in np.linspace(y0, y1, 40))
        assert nearest <= sampled + 1e-6
        # No point lies farther from its nearest sample than half a step on each axis.
        assert sampled - nearest <= _DEGREE_M * ((x1 - x0) + (y1 - y0)) / 78 + 1e-6


def test_circles_in_the_plane_are_exact() -> None:
    assert circle_meets_box(Circle(0, 0, 5), Box(3, 4, 9, 9), "plane")
    assert not circle_meets_box(Circle(0, 0, 5), Box(3.0000000000000004, 4, 9, 9), "plane")
    assert circle_meets_box(Circle(1, 1, 0), Box(1, 1, 1, 1), "plane")
    assert circle_meets_box(Circle(0, 0, 1e300), Box(1e300, 0, 1e300, 0), "plane")
    assert not circle_meets_box(Circle(0, 0, 1e300), Box(1e300, 1e290, 1e300, 1e290), "plane")


def test_polygons_meet_points_lines_and_boxes_as_shapely_says() -> None:
    oracle = Oracle("plane")
    frame = Polygon([[(0, 0), (6, 0), (6, 6), (0, 6)], [(2, 2), (4, 2), (4, 4), (2, 4)]])
    oracle.subscribe([Subscription(1, region=frame)])
    yes: list[tuple[float, float] | Box] = [
        (0, 0),
        (6, 3),
        (2, 3),
        (4, 4),
        Box(3, 3, 5, 5),
        Box(1, 3, 3, 3),
        Box(3, 2, 3, 3),
        Box(-9, -9, 9, 9),
        Box(6, 6, 7, 7),
    ]
    no: list[tuple[float, float] | Box] = [(3, 3), (7, 0), Box(2.5, 2.5, 3.5, 3.5), Box(2.5, 3, 3.5, 3), Box(7, 0, 7, 6)]
    assert [oracle.matches(1, Message(0, [], place)) for place in yes + no] == [True] * len(yes) + [False] * len(no)


@settings(max_examples=30)
@given(strategies.worlds())
def test_a_world_survives_the_way_through_tables(world: World) -> None:
    space = "plane"
    direct, through_tables = Oracle(space), Oracle(space)
    direct.subscribe(world.subscriptions)
    through_tables.subscribe(subscriptions_from_table(subscription_table(world.subscriptions), space))
    expected = direct.publish(world.messages)
    assert through_tables.publish(messages_from_table(message_table(world.messages))) == expected
    points = [m for m in world.messages if not isinstance(m.location, Box)]
    assert through_tables.publish(messages_from_table(message_table(points, as_points=True))) == direct.publish(points)


def test_random_worlds_repeat_and_hold_what_they_should() -> None:
    assert random_world(7, 50, "plane") == random_world(7, 50, "plane")
    worlds = [random_world([1, i], 40, space) for i in range(40) for space in ("plane", "lonlat")]
    regions = [type(s.region) for world in worlds for s in world.subscriptions]
    assert set(regions) == {type(None), Box, Circle, Polygon, MultiPolygon}
    kinds = {type(word) for world in worlds for message in world.messages for word in message.keywords or ()}
    assert kinds == {int, str}
    assert {type(m.location) for world in worlds for m in world.messages} == {tuple, Box}
    answers = [len(_answers(world)) for world in worlds]
    assert sum(n > 0 for n in answers) > len(answers) * 0.9


def _answers(world: World) -> list[Pair]:
    oracle = Oracle("plane")
    oracle.subscribe(world.subscriptions)
    return oracle.publish(world.messages)


def test_the_oracle_needs_neither_the_compiler_nor_the_indexes() -> None:
    forbidden = ("numba", "nearcast.kernels", "nearcast.columns", "nearcast.boolean", "nearcast.papers", "nearcast.engine")
    code = f"import sys, nearcast.testing.oracles.boolean; print([name for name in {forbidden!r} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"
