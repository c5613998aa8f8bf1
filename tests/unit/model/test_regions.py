"""Regions: what is legal, what meets what, by definition."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import fields
from typing import Any

import pytest
import shapely

from nearcast.errors import RegionError
from nearcast.model.regions import Box, Circle, MultiPolygon, Polygon, Region, region

SQUARE = [(0.0, 0.0), (10.0, 0.0), (10.0, 10.0), (0.0, 10.0), (0.0, 0.0)]
HOLE = [(2.0, 2.0), (8.0, 2.0), (8.0, 8.0), (2.0, 8.0)]
REGIONS: list[Region] = [
    Box(0, 0, 1, 1),
    Circle(0, 0, 5),
    Polygon([SQUARE, HOLE]),
    MultiPolygon([[SQUARE], [[(20, 0), (30, 0), (30, 5)]]]),
]


def point(x: float, y: float) -> Box:
    return Box(x, y, x, y)


@pytest.mark.parametrize("corners", [(1, 0, 0, 1), (0, 1, 1, 0), (math.nan, 0, 1, 1), (0, 0, math.inf, 1), ("0", 0, 1, 1)])
def test_an_impossible_box_is_refused(corners: tuple[Any, ...]) -> None:
    with pytest.raises(RegionError):
        Box(*corners)


def test_a_box_without_area_is_legal_and_touching_counts() -> None:
    assert Box(1, 1, 1, 1).meets(Box(1, 0, 2, 1))
    assert Box(0, 0, 1, 1).meets(point(1, 1))
    assert not Box(0, 0, 1, 1).meets(point(1, math.nextafter(1, 2)))
    assert Box(0, 0, 1, 1).is_exact_box
    assert Box(0, 0, 1, 1).covering_boxes("lonlat") == [Box(0, 0, 1, 1)]


@pytest.mark.parametrize("radius", [-1, math.nan, math.inf, "5"])
def test_an_impossible_radius_is_refused(radius: Any) -> None:
    with pytest.raises(RegionError):
        Circle(0, 0, radius)


def test_a_circle_is_closed_in_the_plane() -> None:
    circle = Circle(0, 0, 5)
    assert circle.meets(point(3, 4), "plane")
    assert not circle.meets(point(3.0001, 4), "plane")
    assert circle.meets(Box(3, 4, 9, 9), "plane")
    assert Circle(1, 1, 0).meets(point(1, 1), "plane")
    assert not circle.is_exact_box


def test_a_circle_has_metres_in_lonlat() -> None:
    berlin = Circle(13.4, 52.5, 10_000)
    assert berlin.meets(point(13.5, 52.5), "lonlat")
    assert not berlin.meets(point(13.6, 52.5), "lonlat")
    assert Circle(179.99, 0, 5_000).meets(point(-179.99, 0), "lonlat")
    assert Circle(0, 89.99, 5_000).meets(point(180, 89.99), "lonlat")
    assert Circle(0, 60, 10_000).meets(Box(-10, 60.05, 10, 61), "lonlat")


@pytest.mark.parametrize(
    ("rings", "reason"),
    [
        ([[(0, 0), (1, 1), (1, 0), (0, 1)]], r"Self-intersection\[0.5 0.5\]"),
        ([[(0, 0), (1, 1)]], "too few points"),
        ([[(0, 0), (1, 1), (0, 0), (1, 1)]], "not valid"),
        ([SQUARE, [(20, 20), (21, 20), (21, 21)]], "Hole lies outside"),
        ([], "without rings"),
        ([[]], "too few"),
        ([[(0, 0), (1, math.nan), (1, 1)]], "finite"),
        ([[(0, 0), (1,), (1, 1)]], "pair"),
        ([["00", "11", "01"]], "text"),
        ([5], "list"),
        ("POLYGON", "list"),
    ],
)
def test_an_invalid_polygon_is_refused_with_the_reason(rings: Any, reason: str) -> None:
    with pytest.raises(RegionError, match=reason):
        Polygon(rings)


def test_an_invalid_polygon_is_told_how_to_be_repaired() -> None:
    with pytest.raises(RegionError, match="repair=True"):
        Polygon([[(0, 0), (1, 1), (1, 0), (0, 1)]])


def test_rings_are_closed_flattened_and_freed_of_repeats() -> None:
    tidy = Polygon([[(0, 0), (1, 0), (1, 1), (0, 0)]])
    assert Polygon([[(0, 0, 7), (1, 0, 7), (1, 0), (1, 1, 7)]]) == tidy
    assert hash(Polygon([[[0, 0], [1, 0], [1, 1]]])) == hash(tidy)
    assert Polygon([SQUARE[::-1]]).meets(point(5, 5))


def test_borders_of_a_polygon_and_of_its_holes_count() -> None:
    ring = Polygon([SQUARE, HOLE])
    assert ring.meets(point(10, 5))
    assert ring.meets(point(2, 5))
    assert not ring.meets(point(5, 5))
    assert not ring.meets(Box(3, 3, 7, 7))
    assert ring.meets(Box(3, 3, 8, 7))
    assert ring.meets(Box(10, 10, 11, 11))


def test_messages_of_zero_width_meet_polygons_as_lines() -> None:
    ring = Polygon([SQUARE, HOLE])
    assert ring.meets(Box(5, 5, 5, 9))
    assert ring.meets(Box(-5, 5, 0, 5))
    assert not ring.meets(Box(3, 5, 7, 5))


def test_a_multipolygon_meets_where_one_of_its_parts_does() -> None:
    two = MultiPolygon([[SQUARE], [[(20, 0), (30, 0), (30, 5)]]])
    assert two.meets(point(30, 2))
    assert not two.meets(point(15, 2))
    with pytest.raises(RegionError, match="not valid"):
        MultiPolygon([[SQUARE], [HOLE]])
    with pytest.raises(RegionError, match="without polygons"):
        MultiPolygon([])


def test_regions_outside_lonlat_fail_their_check() -> None:
    for outside in (Box(0, 0, 181, 1), Circle(0, 91, 1), Polygon([[(0, 0), (200, 0), (200, 1)]])):
        outside.check("plane")
        with pytest.raises(RegionError, match="outside lonlat"):
            outside.check("lonlat")


def test_too_many_vertices_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARCAST_MAX_REGION_VERTICES", "4")
    with pytest.raises(RegionError, match="MAX_REGION_VERTICES"):
        Polygon([SQUARE])


@pytest.mark.parametrize("some", REGIONS)
def test_regions_are_values(some: Region) -> None:
    assert pickle.loads(pickle.dumps(some)) == some
    assert copy.deepcopy(some) == some
    assert len({some, copy.copy(some)}) == 1
    with pytest.raises(AttributeError):
        setattr(some, next(iter(fields(some))).name, 1)  # type: ignore[arg-type]


def test_a_repr_can_be_read_and_is_never_huge() -> None:
    assert eval(repr(Polygon([SQUARE]))) == Polygon([SQUARE])
    big = Polygon([[(math.cos(i / 50), math.sin(i / 50)) for i in range(300)]])
    assert len(repr(big)) < 200
    assert len(repr(MultiPolygon([big.rings]))) < 200


def test_the_geo_interface_can_be_read_by_others_and_by_us() -> None:
    assert shapely.geometry.shape(Box(0, 0, 1, 2)).area == 2
    assert shapely.geometry.shape(Polygon([SQUARE, HOLE])).area == 64
    for some in REGIONS[1:]:
        assert region(some.__geo_interface__) == some


def test_a_covering_of_no_boxes_is_refused() -> None:
    with pytest.raises(RegionError):
        Circle(0, 0, 1).covering_boxes("plane", 0)
