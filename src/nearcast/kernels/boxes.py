"""Closed boxes: whether two meet (touching counts), and the distance from a point to one, in the plane and on the sphere.

Distances use the same operations in the same order as `model/spaces.py`, so that both give the same last bit.
"""

from __future__ import annotations

import math

from nearcast.kernels.compile import inline_kernel, kernel

EARTH_RADIUS_M = 6_371_008.8


@inline_kernel
def meets(ax0, ay0, ax1, ay1, bx0, by0, bx1, by1):
    """Whether two closed boxes have a point in common."""
    return ax0 <= bx1 and bx0 <= ax1 and ay0 <= by1 and by0 <= ay1


@kernel
def haversine_m(x0, y0, x1, y1):
    """Great-circle metres between two lon/lat points in degrees."""
    lat0 = math.radians(y0)
    lat1 = math.radians(y1)
    half_lat = math.sin((lat1 - lat0) * 0.5)
    half_lon = math.sin(math.radians(x1 - x0) * 0.5)
    a = half_lat * half_lat + math.cos(lat0) * math.cos(lat1) * half_lon * half_lon
    return 2.0 * EARTH_RADIUS_M * math.asin(math.sqrt(min(1.0, a)))


@kernel
def haversine_to_meridian_m(x, y, edge, y0, y1):
    """Metres from (x, y) to the part of the meridian `edge` between latitudes y0 and y1."""
    nearest = min(haversine_m(x, y, edge, y0), haversine_m(x, y, edge, y1))
    towards = math.cos(math.radians(edge - x))
    if towards > 0.0:
        # The foot of the perpendicular on the meridian: tan(foot) = tan(y) / cos(longitude difference).
        lat = math.radians(y)
        foot = math.degrees(math.atan2(math.sin(lat), math.cos(lat) * towards))
        if y0 < foot < y1:
            nearest = min(nearest, haversine_m(x, y, edge, foot))
    return nearest


@kernel
def haversine_to_box_m(x, y, x0, y0, x1, y1):
    """Metres from (x, y) to the nearest point of a lon/lat box; x = -180 and x = 180 are one meridian."""
    if x0 == x1 and y0 == y1:
        return haversine_m(x, y, x0, y0)
    if x0 <= x <= x1 or x0 <= x + 360.0 <= x1 or x0 <= x - 360.0 <= x1:
        return haversine_m(x, y, x, min(max(y, y0), y1))
    return min(haversine_to_meridian_m(x, y, x0, y0, y1), haversine_to_meridian_m(x, y, x1, y0, y1))


@kernel
def euclidean_to_box(x, y, x0, y0, x1, y1):
    """Distance from (x, y) to the nearest point of a box in the plane."""
    return math.hypot(max(x0 - x, 0.0, x - x1), max(y0 - y, 0.0, y - y1))
