"""Regions and places as people have them, as the wire wants them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nearcast.errors import RegionError
from nearcast.model.regions import Box, Circle, MultiPolygon, Polygon, Region, region
from nearcast.wire.api import (
    BoxShape,
    CircleShape,
    MultiPolygonShape,
    PlaceShape,
    PointShape,
    PolygonShape,
    RegionShape,
)

Place = tuple[float, float] | Sequence[float] | Box | PlaceShape
"""Where a message is: (longitude, latitude), or a box."""
Area = Region | RegionShape | Mapping[str, Any] | str
"""Where a subscription listens: a region of nearcast, a shape of the wire, GeoJSON or WKT."""


def region_shape(given: Area | None) -> RegionShape | None:
    if given is None or isinstance(given, (PolygonShape, MultiPolygonShape, CircleShape, BoxShape)):
        return given
    if isinstance(given, Mapping) and given.get("type") in ("Circle", "Box"):
        return msgspec.convert(given, CircleShape | BoxShape)
    found = region(given)
    if isinstance(found, Box):
        return BoxShape([*found.bounds])
    if isinstance(found, Circle):
        return CircleShape([found.x, found.y], found.radius)
    if isinstance(found, Polygon):
        return PolygonShape([[[*position] for position in ring] for ring in found.rings])
    assert isinstance(found, MultiPolygon)
    return MultiPolygonShape([[[[*position] for position in ring] for ring in rings] for rings in found.polygons])


def place_shape(given: Place) -> PlaceShape:
    if isinstance(given, (PointShape, BoxShape)):
        return given
    if isinstance(given, Box):
        return BoxShape([*given.bounds])
    numbers = [float(number) for number in given]
    if len(numbers) not in (2, 4):
        raise RegionError(f"{given!r} is not a place; expected (longitude, latitude), or a box of four numbers")
    return PointShape(numbers) if len(numbers) == 2 else BoxShape(numbers)


def point_shape(given: Sequence[float] | PointShape) -> PointShape:
    shape = place_shape(given)
    if not isinstance(shape, PointShape):
        raise RegionError(f"{given!r} is not a point; expected (longitude, latitude)")
    return shape
