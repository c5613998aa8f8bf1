"""Between the geometry of the wire and regions of the model."""

from __future__ import annotations

import msgspec

from nearcast import settings
from nearcast.errors import RegionError
from nearcast.model.regions import Box, Circle, Region, region
from nearcast.model.spaces import Space
from nearcast.wire.api import (
    BoxShape,
    CircleShape,
    MultiPolygonShape,
    PlaceShape,
    PointShape,
    PolygonShape,
    RegionShape,
)

Point = tuple[float, float]


def given_region(shape: RegionShape) -> Region:
    """The region of a shape that a request brings: not so large that others wait for it. Raises RegionError."""
    if isinstance(shape, (PolygonShape, MultiPolygonShape)):
        n, most = sum(map(len, _rings(shape))), settings.limit("service_region_vertices")
        if n > most:
            raise RegionError(f"the region has {n} vertices; this server takes at most {most}: simplify it or send parts")
    return region_of(shape)


def region_of(shape: RegionShape) -> Region:
    """The region; raises RegionError with what is wrong."""
    if isinstance(shape, BoxShape):
        box = Box(*shape.bbox)
        box.check(Space.LONLAT)
        return box
    if isinstance(shape, CircleShape):
        circle = Circle(shape.coordinates[0], shape.coordinates[1], shape.radius)
        circle.check(Space.LONLAT)
        return circle
    return region(msgspec.to_builtins(shape), Space.LONLAT)


def place_of(shape: PlaceShape) -> Box:
    """Where a message is, as a box; of zero area for a point. Raises RegionError."""
    if isinstance(shape, PointShape):
        x, y = shape.coordinates[0], shape.coordinates[1]
        box = Box(x, y, x, y)
    else:
        box = Box(*shape.bbox)
    box.check(Space.LONLAT)
    return box


def point_of(shape: PointShape) -> Point:
    """A position, checked to lie on Earth."""
    x, y = shape.coordinates[0], shape.coordinates[1]
    Space.LONLAT.check_point(x, y)
    return x, y


def middle_of(shape: RegionShape | None) -> Point | None:
    """The centre of a circle, else of the box around the shape; None for everywhere."""
    if shape is None:
        return None
    if isinstance(shape, CircleShape):
        return shape.coordinates[0], shape.coordinates[1]
    if isinstance(shape, BoxShape):
        x0, y0, x1, y1 = shape.bbox
    else:
        xs, ys = ([position[axis] for ring in _rings(shape) for position in ring] for axis in (0, 1))
        x0, y0, x1, y1 = min(xs), min(ys), max(xs), max(ys)
    return (x0 + x1) / 2, (y0 + y1) / 2


def _rings(shape: PolygonShape | MultiPolygonShape) -> list[list[list[float]]]:
    return shape.coordinates if isinstance(shape, PolygonShape) else [ring for part in shape.coordinates for ring in part]


def moved_to(shape: RegionShape, middle: Point) -> RegionShape:
    """The same shape around another middle; raises RegionError if it would leave the Earth."""
    if isinstance(shape, CircleShape):
        return CircleShape([*middle], shape.radius)
    old = middle_of(shape)
    assert old is not None
    dx, dy = middle[0] - old[0], middle[1] - old[1]
    if isinstance(shape, BoxShape):
        x0, y0, x1, y1 = shape.bbox
        return BoxShape([max(-180.0, x0 + dx), max(-90.0, y0 + dy), min(180.0, x1 + dx), min(90.0, y1 + dy)])
    if isinstance(shape, PolygonShape):
        return PolygonShape(_shifted(shape.coordinates, dx, dy))
    return MultiPolygonShape([_shifted(part, dx, dy) for part in shape.coordinates])


def _shifted(rings: list[list[list[float]]], dx: float, dy: float) -> list[list[list[float]]]:
    return [[[position[0] + dx, position[1] + dy] for position in ring] for ring in rings]


def is_inside(place: Region, point: Point) -> bool:
    return place.meets(Box(point[0], point[1], point[0], point[1]), Space.LONLAT)
