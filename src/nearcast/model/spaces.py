"""The two coordinate spaces and their distances.

Great-circle distances are on a sphere. Edges of boxes are straight in x and y in both spaces.
"""

from __future__ import annotations

import math
from enum import Enum

from nearcast.errors import NearcastError, RegionError

EARTH_RADIUS_M = 6_371_008.8


class Space(Enum):
    """What x and y mean; also the unit of a circle's radius."""

    LONLAT = "lonlat"
    PLANE = "plane"

    @property
    def is_lonlat(self) -> bool:
        return self is Space.LONLAT

    def check_point(self, x: float, y: float) -> None:
        """Raise RegionError unless (x, y) is a point of this space."""
        if not (math.isfinite(x) and math.isfinite(y)):
            raise RegionError(f"the point ({x!r}, {y!r}) is not finite; give two finite numbers")
        if self is Space.LONLAT and not (-180.0 <= x <= 180.0 and -90.0 <= y <= 90.0):
            raise RegionError(
                f"the point ({x!r}, {y!r}) lies outside lonlat: expected -180 <= x (longitude) <= 180 and "
                "-90 <= y (latitude) <= 90; check the order of the two, or use space='plane'"
            )

    def distance(self, x0: float, y0: float, x1: float, y1: float) -> float:
        """Metres along the great circle in lonlat, Euclidean in the plane."""
        if self is Space.LONLAT:
            return haversine_m(x0, y0, x1, y1)
        return math.hypot(x1 - x0, y1 - y0)

    def distance_to_box(self, x: float, y: float, x0: float, y0: float, x1: float, y1: float) -> float:
        """Distance from (x, y) to the nearest point of the closed box; 0 inside."""
        if self is Space.LONLAT:
            return _haversine_to_box_m(x, y, x0, y0, x1, y1)
        return math.hypot(max(x0 - x, 0.0, x - x1), max(y0 - y, 0.0, y - y1))


def space_of(name: str | Space) -> Space:
    """The space of that name."""
    if isinstance(name, Space):
        return name
    if name == "lonlat":
        return Space.LONLAT
    if name == "plane":
        return Space.PLANE
    raise NearcastError(f"there is no space {name!r}; give 'lonlat' (degrees, metres) or 'plane' (any numbers)")


def haversine_m(x0: float, y0: float, x1: float, y1: float) -> float:
    """Great-circle metres between two lon/lat points in degrees.

    Kernels that must agree to the last bit use these operations in this order.
    """
    lat0 = math.radians(y0)
    lat1 = math.radians(y1)
    half_lat = math.sin((lat1 - lat0) * 0.5)
    half_lon = math.sin(math.radians(x1 - x0) * 0.5)
    a = half_lat * half_lat + math.cos(lat0) * math.cos(lat1) * half_lon * half_lon
    return 2.0 * EARTH_RADIUS_M * math.asin(math.sqrt(min(1.0, a)))


def _haversine_to_box_m(x: float, y: float, x0: float, y0: float, x1: float, y1: float) -> float:
    if x0 == x1 and y0 == y1:
        return haversine_m(x, y, x0, y0)
    # x = -180 and x = 180 are the same meridian, so the box may also be one turn away.
    if any(x0 <= x + turn <= x1 for turn in (0.0, 360.0, -360.0)):
        return haversine_m(x, y, x, min(max(y, y0), y1))
    # At a fixed latitude the distance grows with the longitude difference: the nearest point is on an edge.
    return min(_haversine_to_meridian_m(x, y, edge, y0, y1) for edge in (x0, x1))


def _haversine_to_meridian_m(x: float, y: float, edge: float, y0: float, y1: float) -> float:
    nearest = min(haversine_m(x, y, edge, y0), haversine_m(x, y, edge, y1))
    towards = math.cos(math.radians(edge - x))
    if towards > 0.0:
        # The foot of the perpendicular on the meridian: tan(foot) = tan(y) / cos(longitude difference).
        lat = math.radians(y)
        foot = math.degrees(math.atan2(math.sin(lat), math.cos(lat) * towards))
        if y0 < foot < y1:
            nearest = min(nearest, haversine_m(x, y, edge, foot))
    return nearest
