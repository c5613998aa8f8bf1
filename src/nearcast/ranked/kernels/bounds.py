"""How near and how similar a message can be at most. Nearness is by rounded coordinates, of the plane and of the sphere alike.

Points of the sphere are unit vectors, points of the plane are counted in units of `max_distance` from some origin. A chord is
shorter than its arc, and of the series of the arc sine every term is positive: so the first terms never exceed the arc.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nearcast.kernels.boxes import EARTH_RADIUS_M
from nearcast.kernels.compile import borrow, inline_kernel, kernel

# Whatever is farther from the origin is moved to this distance, which brings no two points apart.
_FARTHEST = 64.0
# A smaller scale makes points seem nearer, never farther; beyond this one every two places are far apart.
_LARGEST_SCALE = 1e12
_LEAST_DISTANCE = 1e-150
# Of each axis, on the curve through all messages.
CURVE_BITS = 12
# Factors that make up for rounding to 32 bits, and for that of an average.
ROUNDED_UP, _AVERAGED = 1.0 + 1e-6, 1.0 + 1e-9
# Figures of words that are there more than once; see `gather_repeated`.
_COUNT, _VALUE, _SQUARE, _RARITY, N_FIGURES = 0, 1, 2, 3, 4
# More than keywords have numbers; times as many messages as there may be it is still exact.
_NUMBERS = float(1 << 31)


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
def rarity_of(frequency, keyword):
    """The less, the rarer: by how many messages have the keyword, none if it is beyond the end, then by its number."""
    return (float(frequency[keyword]) if keyword < frequency.size else 0.0) * _NUMBERS + keyword


@inline_kernel
def gather_repeated(frequency, window, place, repeated):
    """Write of the words that a message has more than once count, value, squared weight and rarity; returns how many these are.

    In order of falling counts. `repeated` has room for N_FIGURES numbers of each word.
    """
    n = 0
    for at in range(window.keyword_start[place], window.keyword_start[place + 1]):
        n_times = window.n_times[at]
        if n_times > 1:
            to = N_FIGURES * n
            while to > 0 and repeated[to - N_FIGURES + _COUNT] < n_times:
                for i in range(N_FIGURES):
                    repeated[to + i] = repeated[to - N_FIGURES + i]
                to -= N_FIGURES
            repeated[to + _COUNT], repeated[to + _VALUE] = n_times, window.value[at]
            repeated[to + _SQUARE] = window.value[at] / n_times
            repeated[to + _RARITY] = rarity_of(frequency, int(window.keyword[at]))
            n += 1
    return n


@inline_kernel
def heft_with(frequency, window, place, at, repeated, n_repeated):
    """The heft of a message for those whose rarest word in common with it is the one at `at`.

    That is the average count of words, by their squared weights, over the length of the vector: of the one at `at` and of those
    more frequent ones that make it largest. `repeated` are all that are there more than once (`gather_repeated`).
    """
    if n_repeated == 0:
        return _AVERAGED / window.length[place]
    rarity, n_times = rarity_of(frequency, int(window.keyword[at])), float(window.n_times[at])
    total = window.value[at]
    squares = total if n_times == 1.0 else total / n_times
    for other in range(0, N_FIGURES * n_repeated, N_FIGURES):
        if repeated[other + _COUNT] * squares <= total:
            break
        if rarity < repeated[other + _RARITY]:
            total += repeated[other + _VALUE]
            squares += repeated[other + _SQUARE]
    if squares == 0.0:
        # Words without weight: any average is right that no count exceeds.
        return max(n_times, repeated[_COUNT]) / window.length[place]
    return total / (squares * window.length[place]) * _AVERAGED


@kernel
def locate_messages(window, first, frame, place):
    """Write coordinates of the messages from place `first` on."""
    window = borrow(window)
    for i in range(place.shape[1]):
        at = first + i
        place[0, i], place[1, i], place[2, i] = coordinates(frame, window.x[at], window.y[at])


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
