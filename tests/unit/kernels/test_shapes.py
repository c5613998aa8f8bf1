"""Kernels for circles and polygons agree with the definitions of the model; UNSURE only near a border."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from nearcast.columns.shapes import ShapeStore
from nearcast.kernels import boxes as box_kernels
from nearcast.kernels.shapes import NO, UNSURE, YES, edge_meets_box, orientation, shape_meets
from nearcast.model.regions import Box, Circle, MultiPolygon, Polygon, Region
from nearcast.model.spaces import Space

small = st.integers(-3, 12).map(float)
anywhere = st.floats(-3, 12, allow_nan=False)
HOLED = Polygon([[(0, 0), (10, 0), (10, 10), (0, 10)], [(2, 2), (2, 6), (6, 6), (6, 2)]])
SLANTED = Polygon([[(0, 0), (10, 3), (7, 9), (1, 8)]])
TWO = MultiPolygon([[[(0, 0), (3, 0), (0, 3)]], [[(5, 5), (9, 5), (9, 9), (5, 9)], [(6, 6), (8, 6), (8, 8), (6, 8)]]])


def boxes(numbers: st.SearchStrategy[float]) -> st.SearchStrategy[Box]:
    sides = st.tuples(numbers, numbers).map(sorted)
    areas = st.tuples(sides, sides).map(lambda s: Box(s[0][0], s[1][0], s[0][1], s[1][1]))
    points = st.tuples(numbers, numbers).map(lambda p: Box(p[0], p[1], p[0], p[1]))
    return st.one_of(areas, points)


def verdict_of(region: Region, box: Box, space: Space) -> int:
    store = ShapeStore()
    store.add(Circle(0, 0, 1))
    shape = store.add(region)
    return int(shape_meets(store.layout(), shape, space.is_lonlat, *box.bounds))


@pytest.mark.parametrize("region", [HOLED, SLANTED, TWO], ids=["holed", "slanted", "two-parts"])
@given(box=st.one_of(boxes(small), boxes(anywhere)))
def test_a_polygon_is_met_exactly_when_shapely_says_so(region: Region, box: Box) -> None:
    verdict = verdict_of(region, box, Space.PLANE)
    if verdict == UNSURE:
        outline = shapely.boundary(region.geometry)  # type: ignore[attr-defined]
        place = shapely.box(*box.bounds) if box.area else shapely.LineString([box.bounds[:2], box.bounds[2:]])
        assert outline.distance(place) < 1e-9 or outline.distance(shapely.boundary(place)) < 1e-9
    else:
        assert (verdict == YES) == region.meets(box, Space.PLANE)


def test_points_on_the_border_of_a_hole_belong_to_the_polygon() -> None:
    assert verdict_of(HOLED, Box(2, 2, 2, 2), Space.PLANE) == YES
    assert verdict_of(HOLED, Box(3, 2, 3, 2), Space.PLANE) == YES
    assert verdict_of(HOLED, Box(4, 4, 4, 4), Space.PLANE) == NO
    assert verdict_of(HOLED, Box(3, 3, 5, 5), Space.PLANE) == NO
    assert verdict_of(HOLED, Box(-1, -1, 11, 11), Space.PLANE) == YES


def test_three_points_on_a_line_are_left_undecided() -> None:
    assert orientation(0.0, 0.0, 1.0, 1.0, 0.5, 0.5) == 0
    assert orientation(0.0, 0.0, 1.0, 0.0, 0.5, 1.0) == 1
    assert orientation(0.0, 0.0, 1.0, 0.0, 0.5, -1.0) == -1


def test_an_edge_through_a_box_is_seen_without_an_end_inside() -> None:
    assert edge_meets_box(-1.0, 0.5, 2.0, 0.6, 0.0, 0.0, 1.0, 1.0) == YES
    assert edge_meets_box(-1.0, 1.5, 1.5, 4.0, 0.0, 0.0, 1.0, 3.0) == YES
    assert edge_meets_box(0.9, 3.0, 3.0, 0.95, 0.0, 0.0, 1.0, 1.0) == NO
    assert edge_meets_box(-1.0, 1.0, 1.0, 3.0, 0.0, 0.0, 1.0, 2.0) == UNSURE


lon, lat = st.floats(-180, 180), st.floats(-90, 90)


@given(lon, lat, st.floats(0, 2e7), st.tuples(lon, lon).map(sorted), st.tuples(lat, lat).map(sorted))
def test_a_circle_on_the_globe_agrees_with_the_model_to_the_last_bit(
    x: float, y: float, radius: float, xs: list[float], ys: list[float]
) -> None:
    box = Box(xs[0], ys[0], xs[1], ys[1])
    circle = Circle(x, y, radius)
    assert (verdict_of(circle, box, Space.LONLAT) == YES) == circle.meets(box, Space.LONLAT)
    point = Box(xs[0], ys[0], xs[0], ys[0])
    assert (verdict_of(circle, point, Space.LONLAT) == YES) == circle.meets(point, Space.LONLAT)


@given(small, small, st.integers(0, 8), boxes(small))
def test_a_circle_in_the_plane_agrees_with_the_model(x: float, y: float, radius: int, box: Box) -> None:
    circle = Circle(x, y, radius)
    assert (verdict_of(circle, box, Space.PLANE) == YES) == circle.meets(box, Space.PLANE)


def test_distances_wrap_at_the_antimeridian() -> None:
    assert box_kernels.haversine_to_box_m(180.0, 0.0, -180.0, -1.0, -179.0, 1.0) == 0.0
    near = box_kernels.haversine_to_box_m(179.5, 0.0, -179.5, -1.0, -179.0, 1.0)
    assert near == pytest.approx(box_kernels.haversine_m(179.5, 0.0, -179.5, 0.0))
    over_the_pole = box_kernels.haversine_to_box_m(0.0, 89.0, 170.0, 80.0, 175.0, 85.0)
    assert over_the_pole == pytest.approx(box_kernels.haversine_m(0.0, 89.0, 170.0, 85.0))


def test_shapes_survive_the_way_through_arrays() -> None:
    store = ShapeStore()
    regions = [Circle(1, 2, 3), HOLED, TWO]
    for region in regions:
        store.add(region)
    again = ShapeStore(store.arrays())
    assert [again.region(i) for i in range(len(again))] == regions
    assert again.n_bytes == store.n_bytes > 0
    assert np.array_equal(again.layout().x, store.layout().x)
    with pytest.raises(TypeError, match="Box is no shape"):
        store.add(Box(0, 0, 1, 1))
