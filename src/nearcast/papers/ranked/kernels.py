"""Safe bounds: rounded numbers, and distances that are never too long."""

from __future__ import annotations

import math

from nearcast.kernels.boxes import EARTH_RADIUS_M, haversine_m, haversine_to_box_m, haversine_to_meridian_m
from nearcast.kernels.compile import inline_kernel, kernel

SLACK = 1e-9
"""Bounds and scores are computed differently: only what is below the threshold by more than this is skipped."""
M_PER_DEGREE = EARTH_RADIUS_M * math.pi / 180.0
# A float32 is within 6e-8 of the number it stands for.
_UP, _DOWN = 1.0 + 1.3e-7, 1.0 - 1.3e-7
_LARGEST = 3e38
_FARTHEST = 1e30
_ROUNDED, _ROUNDED_METRES = 1.3e-7, 4.0
# Two steps of the smallest float32: smaller numbers are not rounded in proportion.
_LEAST_STEPS = 3e-45
_SPREAD = 40503
# Great-circle distances computed in different ways differ by less than this: a factor (near the antipode), and metres.
CLOSE, METRES = 1.0 - 1e-7, 1e-6


@inline_kernel
def rounded_up(value):
    """For a number >= 0: a number that is not below it when stored as float32."""
    return value * _UP


@inline_kernel
def rounded_down(value):
    """For a number >= 0: a number that is not above it when stored as float32."""
    return min(value * _DOWN, _LARGEST)


@inline_kernel
def within_float32(coordinate):
    """A coordinate within the range of float32. Clamping takes no two points farther apart."""
    return min(max(coordinate, -_FARTHEST), _FARTHEST)


@inline_kernel
def rounding_of(is_lonlat, x0, y0, x1, y1):
    """More than any distance changes when one of the points, in this box, is stored as float32."""
    if is_lonlat:
        return _ROUNDED_METRES
    far_x, far_y = max(abs(within_float32(x0)), abs(within_float32(x1))), max(abs(within_float32(y0)), abs(within_float32(y1)))
    return _ROUNDED * (far_x + far_y) + _LEAST_STEPS


@inline_kernel
def distance_to_rounded(is_lonlat, x, y, rough_x, rough_y, rounding):
    """At most the distance of two points, of which one was stored as float32."""
    if is_lonlat:
        return max(0.0, haversine_m(x, y, rough_x, rough_y) * CLOSE - rounding)
    dx, dy = within_float32(x) - rough_x, within_float32(y) - rough_y
    return max(0.0, math.sqrt(dx * dx + dy * dy) - rounding)


@inline_kernel
def bit_of(keyword):
    """The bit of a keyword in a set of 63."""
    return 1 << ((keyword * _SPREAD >> 8) % 63)


@inline_kernel
def gap(value, low, high):
    """The distance of a number from an interval."""
    # Python's own floats, which overflow to infinity silently.
    return max(float(low) - float(value), 0.0, float(value) - float(high))


@inline_kernel
def distance_to_box(is_lonlat, x, y, x0, y0, x1, y1):
    """At most the distance from a point to anything in a box; 0 inside."""
    if is_lonlat:
        if x0 <= x <= x1 and y0 <= y <= y1:
            return 0.0
        return max(0.0, haversine_to_box_m(x, y, x0, y0, x1, y1) * CLOSE - METRES)
    # The same operations as in `proximity`: none of them reverses the order of two differences.
    dx, dy = gap(x, x0, x1), gap(y, y0, y1)
    return math.sqrt(dx * dx + dy * dy)


@kernel
def distance_to_border(is_lonlat, x, y, x0, y0, x1, y1):
    """At most the distance from a point in a box to anything outside."""
    if not is_lonlat:
        return max(0.0, min(float(x) - float(x0), float(x1) - float(x), float(y) - float(y0), float(y1) - float(y)))
    way = min(y - y0, y1 - y) * M_PER_DEGREE
    way = min(way, haversine_to_meridian_m(x, y, x0, y0, y1), haversine_to_meridian_m(x, y, x1, y0, y1))
    return max(0.0, way * CLOSE - METRES)


@inline_kernel
def nearness(distance, max_distance):
    return max(0.0, 1.0 - distance / max_distance)
