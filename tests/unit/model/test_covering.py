"""Covering boxes: never a lost point, never more than asked for, and small where it pays."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from shapely import make_valid

from nearcast.errors import RegionError
from nearcast.model.regions import Box, Circle, MultiPolygon, Polygon, Region, region
from nearcast.model.spaces import EARTH_RADIUS_M

HALF_WAY_ROUND = math.pi * EARTH_RADIUS_M
lons = st.one_of(st.floats(-180, 180), st.sampled_from([-180.0, 180.0, 179.9, -179.9, 0.0]))
lats = st.one_of(st.floats(-90, 90), st.sampled_from([-90.0, 90.0, 89.99, -89.9999999, 0.0]))
radii = st.one_of(st.floats(0, 5_000), st.floats(0, 1.1 * HALF_WAY_ROUND), st.sampled_from([0.0, HALF_WAY_ROUND]))
limits = st.integers(1, 8)
small = st.integers(0, 12)


def is_covered(region: Region, space: str, limit: int, box: Box) -> bool:
    boxes = region.covering_boxes(space, limit)
    assert 1 <= len(boxes) <= limit
    return any(covering.meets(box) for covering in boxes)


@settings(max_examples=300)
@given(lons, lats, radii, lons, lats, limits)
@example(0, 89.9999999, 20.0, 180.0, 89.9999999, 8)
@example(-180, 0, 1.0, 180.0, 0.0, 8)
def test_every_point_of_a_lonlat_circle_is_covered(x: float, y: float, radius: float, px: float, py: float, limit: int) -> None:
    circle = Circle(x, y, radius)
    if circle.meets(Box(px, py, px, py), "lonlat"):
        assert is_covered(circle, "lonlat", limit, Box(px, py, px, py))


@settings(max_examples=300)
@given(lons, st.floats(-89.9, 89.9), st.floats(0, 3.1), st.floats(0, 2 * math.pi), limits)
def test_the_rim_of_a_lonlat_circle_is_covered(x: float, y: float, angle: float, bearing: float, limit: int) -> None:
    lat = math.radians(y)
    sine = math.sin(lat) * math.cos(angle) + math.cos(lat) * math.sin(angle) * math.cos(bearing)
    rim_lat = math.asin(max(-1.0, min(1.0, sine)))
    turn = math.atan2(math.sin(bearing) * math.sin(angle) * math.cos(lat), math.cos(angle) - math.sin(lat) * math.sin(rim_lat))
    px = max(-180.0, min(180.0, (x + math.degrees(turn) + 540) % 360 - 180))
    py = math.degrees(rim_lat)
    circle = Circle(x, y, angle * EARTH_RADIUS_M)
    # Rounding may put the rim just outside the circle; then nothing is promised.
    assume(circle.meets(Box(px, py, px, py), "lonlat"))
    assert is_covered(circle, "lonlat", limit, Box(px, py, px, py))


@given(lons, lats, radii, lons, lons, lats, lats, limits)
def test_every_box_a_lonlat_circle_meets_is_covered(
    x: float, y: float, radius: float, xa: float, xb: float, ya: float, yb: float, limit: int
) -> None:
    circle = Circle(x, y, radius)
    box = Box(min(xa, xb), min(ya, yb), max(xa, xb), max(ya, yb))
    if circle.meets(box, "lonlat"):
        assert is_covered(circle, "lonlat", limit, box)


def test_circles_at_the_antimeridian_have_a_box_on_either_side() -> None:
    boxes = Circle(179.9, 10, 50_000).covering_boxes("lonlat")
    assert sorted((box.x0, box.x1) for box in boxes)[0][0] == -180
    assert any(box.x1 == 180 for box in boxes)
    assert len(boxes) == 2
    assert Circle(179.9, 10, 50_000).bounding_box("lonlat").x0 == -180
    assert Circle(5, 5, 3e7).covering_boxes("lonlat") == [Box(-180, -90, 180, 90)]


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9), st.floats(0, 1e9), st.floats(0, 2 * math.pi))
def test_every_point_of_a_plane_circle_is_covered(x: float, y: float, radius: float, bearing: float) -> None:
    px, py = x + radius * math.cos(bearing), y + radius * math.sin(bearing)
    circle = Circle(x, y, radius)
    assume(circle.meets(Box(px, py, px, py), "plane"))
    assert is_covered(circle, "plane", 1, Box(px, py, px, py))


def test_a_huge_plane_circle_stays_finite() -> None:
    assert Circle(1e308, 0, 1.7e308).covering_boxes("plane")[0].x1 < math.inf


@st.composite
def polygons(draw: st.DrawFn) -> Region:
    """Polygons with holes and several parts on a small integer grid, so that borders and corners collide."""
    ring = draw(st.lists(st.tuples(small, small), min_size=3, max_size=10, unique=True))
    try:
        shell = Polygon([ring])
    except RegionError:
        parts = [part for part in getattr(make_valid_region(ring), "geoms", ()) if part.geom_type == "Polygon"]
        assume(parts)
        return MultiPolygon([[list(part.exterior.coords), *(list(hole.coords) for hole in part.interiors)] for part in parts])
    cx, cy = draw(small), draw(small)
    hole = [(cx, cy), (cx + 1, cy), (cx + 1, cy + 2), (cx, cy + 2)]
    try:
        return Polygon([ring, hole])
    except RegionError:
        return shell


def make_valid_region(ring: list[tuple[int, int]]) -> object:
    from shapely import Polygon as Shape

    return make_valid(Shape(ring))


@settings(max_examples=250, deadline=None)
@given(polygons(), small, small, st.integers(0, 3), st.integers(0, 3), limits)
def test_every_box_and_point_a_polygon_meets_is_covered(
    some: Region, x: int, y: int, width: int, height: int, limit: int
) -> None:
    boxes = some.covering_boxes("plane", limit)
    assert 1 <= len(boxes) <= limit
    for cx in range(13):
        for cy in range(13):
            if some.meets(Box(cx, cy, cx, cy), "plane"):
                assert any(box.covers(cx, cy) for box in boxes)
    message = Box(x, y, x + width, y + height)
    if some.meets(message, "plane"):
        assert any(box.meets(message) for box in boxes)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-180, 180), st.floats(-90, 90)), min_size=3, max_size=8),
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)), min_size=10, max_size=20),
    limits,
)
def test_border_points_of_any_polygon_are_covered(
    ring: list[tuple[float, float]], samples: list[tuple[float, float, float]], limit: int
) -> None:
    try:
        some = Polygon([ring])
    except RegionError:
        assume(False)
    boxes = some.covering_boxes("lonlat", limit)
    corners = some.rings[0]
    for x, y in corners:
        assert any(box.covers(x, y) for box in boxes)
    for which, along, _ in samples:
        edge = int(which * (len(corners) - 1)) % (len(corners) - 1)
        (ax, ay), (bx, by) = corners[edge], corners[edge + 1]
        px, py = ax + along * (bx - ax), ay + along * (by - ay)
        if some.meets(Box(px, py, px, py)):
            assert any(box.covers(px, py) for box in boxes)


def test_a_diagonal_stripe_takes_many_small_boxes() -> None:
    stripe = Polygon([[(0, 0), (10, 10), (10, 11), (0, 1)]])
    boxes = stripe.covering_boxes("plane", 8)
    assert len(boxes) == 8
    assert sum(box.area for box in boxes) < 0.3 * stripe.bounding_box("plane").area


def test_a_square_takes_one_box() -> None:
    assert Polygon([[(0, 0), (5, 0), (5, 5), (0, 5)]]).covering_boxes("plane", 8) == [Box(0, 0, 5, 5)]


def test_far_islands_are_covered_apart_and_near_ones_together() -> None:
    far = MultiPolygon([[[(0, 0), (1, 0), (1, 1), (0, 1)]], [[(100, 0), (101, 0), (101, 1), (100, 1)]]])
    assert len(far.covering_boxes("plane", 8)) == 2
    assert far.covering_boxes("plane", 1) == [Box(0, 0, 101, 1)]
    near = MultiPolygon([[[(0, 0), (1, 0), (1, 1), (0, 1)]], [[(1.01, 0), (2, 0), (2, 1), (1.01, 1)]]])
    assert near.covering_boxes("plane", 8) == [Box(0, 0, 2, 1)]


def test_more_islands_than_boxes_stay_within_the_limit() -> None:
    islands = MultiPolygon([[[(i * 7, i), (i * 7 + 1, i), (i * 7 + 1, i + 1)]] for i in range(25)])
    boxes = islands.covering_boxes("plane", 4)
    assert len(boxes) <= 4
    assert all(any(box.covers(i * 7, i) for box in boxes) for i in range(25))


def test_a_polygon_split_at_the_antimeridian_is_not_covered_by_the_whole_band() -> None:
    fiji = region({"type": "Polygon", "coordinates": [[[177, -18], [-178, -18], [-178, -16], [177, -16]]]})
    assert sum(box.area for box in fiji.covering_boxes("lonlat")) == pytest.approx(10)


def test_the_default_limit_is_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    stripe = Polygon([[(0, 0), (10, 10), (10, 11), (0, 1)]])
    monkeypatch.setenv("NEARCAST_MAX_COVERING_BOXES", "3")
    assert len(stripe.covering_boxes("plane")) == 3
