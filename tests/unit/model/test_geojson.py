"""`region`: every geometry people have, and those that are none."""

from __future__ import annotations

import json
from typing import Any

import pytest
import shapely

from nearcast.errors import RegionError
from nearcast.model.regions import Box, Circle, MultiPolygon, Polygon, region

TRIANGLE: dict[str, Any] = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 0]]]}
BOW_TIE = {"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]]}
FIJI = {"type": "Polygon", "coordinates": [[[177, -18], [-178, -18], [-178, -16], [177, -16], [177, -18]]]}


def point(x: float, y: float) -> Box:
    return Box(x, y, x, y)


@pytest.mark.parametrize(
    "geometry",
    [
        TRIANGLE,
        json.dumps(TRIANGLE),
        "POLYGON ((0 0, 4 0, 4 4, 0 0))",
        "POLYGON Z ((0 0 1, 4 0 1, 4 4 1, 0 0 1))",
        {"type": "Feature", "properties": None, "geometry": TRIANGLE},
        {"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": TRIANGLE, "properties": {}}]},
        {"type": "GeometryCollection", "geometries": [TRIANGLE]},
        shapely.Polygon([(0, 0), (4, 0), (4, 4)]),
        Polygon(TRIANGLE["coordinates"]),
        shapely.MultiPolygon([shapely.Polygon([(0, 0), (4, 0), (4, 4)])]),
    ],
)
def test_every_spelling_of_a_polygon_is_the_same_region(geometry: object) -> None:
    assert region(geometry) == Polygon(TRIANGLE["coordinates"])


def test_regions_pass_through_checked() -> None:
    assert region(Circle(1, 2, 3)) == Circle(1, 2, 3)
    with pytest.raises(RegionError):
        region(Box(0, 0, 500, 1))
    assert region(Box(0, 0, 500, 1), space="plane") == Box(0, 0, 500, 1)


@pytest.mark.parametrize(
    ("geometry", "reason"),
    [
        ("POINT (1 1)", "Point has no area"),
        ("LINESTRING (1 1, 2 2)", "LineString has no area"),
        ({"type": "GeometryCollection", "geometries": [TRIANGLE, {"type": "Point", "coordinates": [0, 0]}]}, "Point"),
        ({"type": "GeometryCollection", "geometries": []}, "empty"),
        ({"type": "GeometryCollection", "geometries": [1]}, "expected an object"),
        ({"type": "Feature", "geometry": None}, "geometry=None"),
        ({"type": "Feature", "geometry": 7}, "geometry of the Feature"),
        ({"type": "Polygon", "coordinates": 5}, "coordinates=5"),
        ({"type": "Polygon", "coordinates": [5]}, "list"),
        ({"type": "Polygon", "coordinates": [[["a", 1], [1, 1], [2, 2]]]}, "finite number"),
        ({"type": "Polygon"}, "coordinates=None"),
        ({"type": "Sphere"}, "Sphere"),
        ({}, "type None"),
        ("POLYGON EMPTY", "empty"),
        ("hello", "neither GeoJSON nor WKT"),
        ("", "neither GeoJSON nor WKT"),
        ("{hello", "does not parse"),
        ("CURVEPOLYGON (CIRCULARSTRING (0 0, 1 1, 2 0, 1 -1, 0 0))", "curves"),
        ({"type": "Feature", "geometry": {"type": "Point"}, "properties": {"shape": "Circle", "radius": 1}}, "centre"),
        (5, "not a geometry"),
        (None, "not a geometry"),
        (BOW_TIE, "repair=True"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 95]]]}, "outside lonlat"),
        ({"type": "Polygon", "coordinates": [[[5e5, 0], [5e5, 1], [6e5, 1]]]}, "space='plane'"),
    ],
)
def test_what_is_no_area_is_refused_with_the_reason(geometry: object, reason: str) -> None:
    with pytest.raises(RegionError, match=reason):
        region(geometry)


def test_deeply_nested_collections_do_not_overflow() -> None:
    nested: dict[str, Any] = TRIANGLE
    for _ in range(5_000):
        nested = {"type": "GeometryCollection", "geometries": [nested]}
    assert region(nested) == region(TRIANGLE)
    with pytest.raises(RegionError, match="does not parse"):
        region('{"a":' + "[" * 200_000)


def test_repair_makes_two_triangles_of_a_bow_tie() -> None:
    repaired = region(BOW_TIE, repair=True)
    assert isinstance(repaired, MultiPolygon)
    assert repaired.geometry.area == 0.5
    assert region(TRIANGLE, repair=True).meets(point(4, 4), "lonlat")


def test_repair_cannot_help_what_has_no_inside() -> None:
    with pytest.raises(RegionError, match="nothing with an area"):
        region({"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [2, 2], [0, 0]]]}, repair=True)


def test_members_of_a_collection_may_overlap() -> None:
    joined = region(
        {"type": "GeometryCollection", "geometries": [shapely.box(i, i, i + 2, i + 2).__geo_interface__ for i in (0, 1)]}
    )
    assert isinstance(joined, Polygon)
    assert joined.geometry.area == 7


def test_a_polygon_across_the_antimeridian_is_split_with_straight_edges() -> None:
    fiji = region(FIJI)
    assert isinstance(fiji, MultiPolygon)
    assert fiji.bounds == (-180.0, -18.0, 180.0, -16.0)
    for x in (177, 179, 180, -180, -179, -178):
        assert fiji.meets(point(x, -18), "lonlat")
    for x in (0, 176, -177):
        assert not fiji.meets(point(x, -17), "lonlat")


def test_longitudes_beyond_180_mean_the_same() -> None:
    beyond = {"type": "Polygon", "coordinates": [[[177, -18], [182, -18], [182, -16], [177, -16]]]}
    assert region(beyond) == region(FIJI)


def test_a_hole_across_the_antimeridian_stays_a_hole() -> None:
    for far in (190, -170):
        near = far - 2
        ring = [[170, 0], [far, 0], [far, 10], [170, 10]]
        hole = [[172, 2], [near, 2], [near, 8], [172, 8]]
        with_hole = region({"type": "Polygon", "coordinates": [ring, hole]})
        for x in (175, 180, -180, -175):
            assert with_hole.meets(point(x, 1), "lonlat")
            assert not with_hole.meets(point(x, 5), "lonlat")


@pytest.mark.parametrize("latitude", [80, -80])
@pytest.mark.parametrize("direction", [1, -1])
def test_a_ring_around_a_pole_holds_the_near_pole_for_either_winding(latitude: int, direction: int) -> None:
    ring = [[0, latitude], [90, latitude], [180, latitude], [-90, latitude]][::direction]
    cap = region({"type": "Polygon", "coordinates": [ring]})
    assert cap.meets(point(33, latitude * 1.1), "lonlat")
    assert not cap.meets(point(33, 0), "lonlat")


def test_in_the_plane_nothing_is_split() -> None:
    flat = region(FIJI, space="plane")
    assert isinstance(flat, Polygon)
    assert flat.meets(point(0, -17), "plane")
