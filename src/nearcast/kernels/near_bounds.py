"""How near a message can be at most, from rounded coordinates: the same arithmetic in the plane and on the sphere.

Points of the sphere are unit vectors, points of the plane are counted in units of `max_distance` from some origin. A chord is
shorter than its arc, and of the series of the arc sine every term is positive: so the first terms never exceed the arc.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel, lent
from nearcast.kernels.distances import EARTH_RADIUS_M

# Whatever is farther from the origin is moved to this distance, which brings no two points apart.
_FARTHEST = 64.0
# A smaller scale makes points seem nearer, never farther; beyond this one every two places are far apart.
_LARGEST_SCALE = 1e12
_LEAST_DISTANCE = 1e-150
# Of each axis, on the curve through all messages.
CURVE_BITS = 12
# A factor that makes up for rounding to 32 bits.
ROUNDED_UP = 1.0 + 1e-6


class Frame(NamedTuple):
    """Where coordinates count from, and what they are worth."""

    is_lonlat: bool
    x: float
    y: float
    unit: float  # of the plane
    scale: float  # from a length between coordinates to units of max_distance
    bend: float  # 1 on the sphere, where arcs are longer than chords; 0 in the plane
    slack: float  # more than rounding can amount to, in units of max_distance


def frame_of(is_lonlat: bool, max_distance: float, x: float, y: float) -> Frame:
    """Around a point that is near to most others."""
    if is_lonlat:
        scale = min(EARTH_RADIUS_M / max_distance, _LARGEST_SCALE)
        return Frame(True, 0.0, 0.0, 1.0, scale, 1.0, 1e-6 * (1.0 + scale))
    # Squares of smaller differences are 0, so that everything is near: no place tells anything.
    scale = 1.0 if max_distance > _LEAST_DISTANCE else 0.0
    return Frame(False, float(x), float(y), float(max_distance), scale, 0.0, 1e-6 * _FARTHEST)


@kernel
def coordinates(frame, x, y):
    """The three coordinates of a point."""
    if frame.is_lonlat:
        longitude, latitude = math.radians(x), math.radians(y)
        flat = math.cos(latitude)
        return flat * math.cos(longitude), flat * math.sin(longitude), math.sin(latitude)
    east = (float(x) - frame.x) / frame.unit
    north = (float(y) - frame.y) / frame.unit
    return min(max(east, -_FARTHEST), _FARTHEST), min(max(north, -_FARTHEST), _FARTHEST), 0.0


@kernel
def coordinates_of(frame, x, y):
    """The coordinates of some points, one point after the other."""
    found = np.empty((x.size, 3))
    for i in range(x.size):
        found[i, 0], found[i, 1], found[i, 2] = coordinates(frame, x[i], y[i])
    return found


@inline_kernel
def nearest_possible(frame, squared):
    """The largest proximity that two points with this squared length between their coordinates may have."""
    arc = math.sqrt(squared) * (1.0 + frame.bend * squared * (0.04166 + 0.00468 * squared))
    return min(1.0, max(0.0, 1.0 + frame.slack - frame.scale * arc))


@inline_kernel
def heft_of(window, place):
    """The largest count of a word of a message over the length of its vector; 0 without words."""
    n_times, begin, end = window.n_times, window.keyword_start[place], window.keyword_start[place + 1]
    most = 0
    for at in range(begin, end):
        most = max(most, n_times[at])
    return most / window.length[place] if most > 0 else 0.0


@kernel
def describe_messages(window, first, frame, place, heft):
    """Write coordinates and hefts of the messages from place `first` on."""
    window = lent(window)
    for i in range(heft.size):
        at = first + i
        place[0, i], place[1, i], place[2, i] = coordinates(frame, window.x[at], window.y[at])
        heft[i] = heft_of(window, at) * ROUNDED_UP


@kernel
def curve_positions(place):
    """Where each message lies on a curve through the box of all that keeps neighbours together (Morton order)."""
    position = np.zeros(place.shape[1], np.int64)
    for axis in range(3):
        low, high = np.inf, -np.inf
        for i in range(position.size):
            low, high = min(low, place[axis, i]), max(high, place[axis, i])
        if high <= low:
            continue
        steps = ((1 << CURVE_BITS) - 1) / (high - low)
        for i in range(position.size):
            step = int((place[axis, i] - low) * steps)
            for bit in range(CURVE_BITS):
                position[i] |= ((step >> bit) & 1) << (3 * bit + axis)
    return position
