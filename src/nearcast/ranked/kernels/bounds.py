"""Upper bounds of the proximity and of the similarity of messages. Proximity uses rounded coordinates, also on the sphere.

Points of the sphere are unit vectors; points of the plane are counted in units of `max_distance` from an origin. A chord is
shorter than its arc, and all terms of the series of the arc sine are positive, so the first terms never exceed the arc.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nearcast.kernels.boxes import EARTH_RADIUS_M
from nearcast.kernels.compile import borrow, inline_kernel, kernel

# Points farther from the origin are moved to this distance, which never takes two points apart.
_FARTHEST = 64.0
# A smaller scale makes points seem nearer, never farther. Beyond this scale all points are far apart.
_LARGEST_SCALE = 1e12
_LEAST_DISTANCE = 1e-150
# Bits of each axis on the curve through all messages.
CURVE_BITS = 12
# Factors that make up for rounding to 32 bits, and for rounding an average.
ROUNDED_UP, _AVERAGED = 1.0 + 1e-6, 1.0 + 1e-9
# The figures of a word that a message repeats; see `gather_repeated`.
_COUNT, _VALUE, _SQUARE, _RARITY, N_FIGURES = 0, 1, 2, 3, 4
# More than there are keyword ids; multiplied with the number of messages it is still exact.
_MAX_KEYWORDS = float(1 << 31)


class Frame(NamedTuple):
    """The origin and the scale of coordinates."""

    is_lonlat: bool
    x: float
    y: float
    unit: float  # of the plane
    scale: float  # from a length between coordinates to units of max_distance
    bend: float  # 1 on the sphere, where arcs are longer than chords; 0 in the plane
    slack: float  # more than rounding can amount to, in units of max_distance


def frame_of(is_lonlat: bool, max_distance: float, x: float, y: float) -> Frame:
    """A frame around a point that is near to most others."""
    if is_lonlat:
        scale = min(EARTH_RADIUS_M / max_distance, _LARGEST_SCALE)
        return Frame(True, 0.0, 0.0, 1.0, scale, 1.0, 1e-6 * (1.0 + scale))
    # Squares of smaller differences are 0: everything seems near, and location excludes nothing.
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
    """The coordinates of each point, in rows."""
    coordinates_of_points = np.empty((x.size, 3))
    for i in range(x.size):
        coordinates_of_points[i, 0], coordinates_of_points[i, 1], coordinates_of_points[i, 2] = coordinates(frame, x[i], y[i])
    return coordinates_of_points


@inline_kernel
def nearest_possible(frame, squared):
    """The largest proximity of two points whose coordinates have this squared distance."""
    arc = math.sqrt(squared) * (1.0 + frame.bend * squared * (0.04166 + 0.00468 * squared))
    return min(1.0, max(0.0, 1.0 + frame.slack - frame.scale * arc))


@inline_kernel
def rarity_rank(frequency, keyword):
    """The order of keywords, the rarest first: by the number of messages that have it (0 beyond the end), then by id."""
    return (float(frequency[keyword]) if keyword < frequency.size else 0.0) * _MAX_KEYWORDS + keyword


@inline_kernel
def gather_repeated(frequency, window, position, repeated):
    """Write count, value, squared weight and rarity of the words that a message has more than once; returns their number.

    They are in order of falling counts. `repeated` has capacity for N_FIGURES numbers of each word.
    """
    n = 0
    for at in range(window.keyword_start[position], window.keyword_start[position + 1]):
        n_times = window.n_times[at]
        if n_times > 1:
            to = N_FIGURES * n
            while to > 0 and repeated[to - N_FIGURES + _COUNT] < n_times:
                for i in range(N_FIGURES):
                    repeated[to + i] = repeated[to - N_FIGURES + i]
                to -= N_FIGURES
            repeated[to + _COUNT], repeated[to + _VALUE] = n_times, window.value[at]
            repeated[to + _SQUARE] = window.value[at] / n_times
            repeated[to + _RARITY] = rarity_rank(frequency, int(window.keyword[at]))
            n += 1
    return n


@inline_kernel
def message_weight_at(frequency, window, position, at, repeated, n_repeated):
    """The weight of a message for subscriptions whose rarest word in common with it is the one at `at`.

    That is the average count of words, weighted by their squared weights, over the length of the message's vector. The average
    is over the word at `at` and those more frequent words that make it largest. `repeated` has all words that the message
    repeats (`gather_repeated`).
    """
    if n_repeated == 0:
        return _AVERAGED / window.length[position]
    rarity, n_times = rarity_rank(frequency, int(window.keyword[at])), float(window.n_times[at])
    total = window.value[at]
    squares = total if n_times == 1.0 else total / n_times
    for other in range(0, N_FIGURES * n_repeated, N_FIGURES):
        if repeated[other + _COUNT] * squares <= total:
            break
        if rarity < repeated[other + _RARITY]:
            total += repeated[other + _VALUE]
            squares += repeated[other + _SQUARE]
    if squares == 0.0:
        # Words without weight: any average works that is at least every count.
        return max(n_times, repeated[_COUNT]) / window.length[position]
    return total / (squares * window.length[position]) * _AVERAGED


@kernel
def locate_messages(window, first, frame, location):
    """Write the coordinates of the messages from position `first` on."""
    window = borrow(window)
    for i in range(location.shape[1]):
        at = first + i
        location[0, i], location[1, i], location[2, i] = coordinates(frame, window.x[at], window.y[at])


@kernel
def curve_positions(location):
    """The position of each message on a curve that keeps neighbours together (Morton order), in the box around all."""
    position = np.zeros(location.shape[1], np.int64)
    for axis in range(3):
        low, high = np.inf, -np.inf
        for i in range(position.size):
            low, high = min(low, location[axis, i]), max(high, location[axis, i])
        if high <= low:
            continue
        steps = ((1 << CURVE_BITS) - 1) / (high - low)
        for i in range(position.size):
            step = int((location[axis, i] - low) * steps)
            for bit in range(CURVE_BITS):
                position[i] |= ((step >> bit) & 1) << (3 * bit + axis)
    return position
