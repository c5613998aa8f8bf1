"""Spaces: which points belong, how far apart they are."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import NearcastError, RegionError
from nearcast.model.spaces import EARTH_RADIUS_M, Space, haversine_m, space_of

lons = st.floats(-180, 180)
lats = st.floats(-90, 90)


def test_spaces_are_found_by_name() -> None:
    assert space_of("lonlat") is Space.LONLAT
    assert space_of("plane") is Space.PLANE
    assert space_of(Space.PLANE) is Space.PLANE


@pytest.mark.parametrize("name", ["", "LONLAT", "sphere", None, 4326])
def test_another_space_is_refused(name: str) -> None:
    with pytest.raises(NearcastError, match="lonlat"):
        space_of(name)


@pytest.mark.parametrize("point", [(180.1, 0), (-180.1, 0), (0, 90.1), (0, -90.1), (math.nan, 0), (0, math.inf)])
def test_points_outside_lonlat_are_refused(point: tuple[float, float]) -> None:
    with pytest.raises(RegionError):
        Space.LONLAT.check_point(*point)


def test_the_plane_takes_any_finite_point() -> None:
    Space.PLANE.check_point(1e300, -1e300)
    with pytest.raises(RegionError):
        Space.PLANE.check_point(math.nan, 0)


def test_a_quarter_of_the_equator_has_its_known_length() -> None:
    assert haversine_m(0, 0, 90, 0) == pytest.approx(math.pi / 2 * EARTH_RADIUS_M)
    assert haversine_m(0, -90, 33, 90) == pytest.approx(math.pi * EARTH_RADIUS_M)
    assert Space.PLANE.distance(0, 0, 3, 4) == 5


def test_the_antimeridian_is_no_distance() -> None:
    assert Space.LONLAT.distance(180, 10, -180, 10) == pytest.approx(0, abs=1e-6)
    assert Space.LONLAT.distance_to_box(180, 10, -180, 0, -170, 20) == 0


@given(lons, lats, lons, lons, lats, lats, st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=5, max_size=20))
def test_no_point_of_a_box_is_nearer_than_its_distance(
    x: float, y: float, xa: float, xb: float, ya: float, yb: float, samples: list[tuple[float, float]]
) -> None:
    x0, x1, y0, y1 = min(xa, xb), max(xa, xb), min(ya, yb), max(ya, yb)
    for space in Space:
        distance = space.distance_to_box(x, y, x0, y0, x1, y1)
        inside = [(min(x0 + s * (x1 - x0), x1), min(y0 + t * (y1 - y0), y1)) for s, t in samples]
        assert all(space.distance(x, y, *point) >= distance - 1e-6 * (1 + distance) for point in inside)


@given(lons, lats, lons, lons, lats, lats)
def test_the_distance_to_a_box_is_reached_on_its_edge(x: float, y: float, xa: float, xb: float, ya: float, yb: float) -> None:
    x0, x1, y0, y1 = min(xa, xb), max(xa, xb), min(ya, yb), max(ya, yb)
    distance = Space.LONLAT.distance_to_box(x, y, x0, y0, x1, y1)
    if x0 <= x <= x1 and y0 <= y <= y1:
        assert distance == 0
        return
    steps = [i / 200 for i in range(201)]
    edge = [(cx, min(y0 + t * (y1 - y0), y1)) for cx in (x0, x1) for t in steps]
    edge += [(min(max(x, x0), x1), cy) for cy in (y0, y1)]
    nearest = min(haversine_m(x, y, *point) for point in edge)
    spacing = math.radians(y1 - y0) / 200 * EARTH_RADIUS_M
    assert distance - 1e-3 <= nearest <= distance + spacing + 1e-3
