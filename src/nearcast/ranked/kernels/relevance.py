"""The relevance of a message to a subscription, to the last bit as `model/relevance.py` defines it."""

from __future__ import annotations

import math

import numpy as np

from nearcast.kernels.boxes import haversine_m
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.sorting import sort_into, sort_run


@kernel
def steady_sum(values, n):
    """The sum of the first `n` values from the smallest up; they are sorted in place."""
    sort_run(values, 0, n)
    total = 0.0
    for i in range(n):
        total += values[i]
    return total


@kernel
def sum_in_order(values, n, ordered):
    """As `steady_sum`, of values that are not below 0 and stay where they are; `ordered` is scratch."""
    # As their bits, such numbers have the same order.
    sort_into(values.view(np.int64), 0, n, ordered.view(np.int64), 0)
    total = 0.0
    for i in range(n):
        total += ordered[i]
    return total


@inline_kernel
def short_sum(values, n):
    """As `steady_sum`, for at least one value: the order of two does not matter."""
    if n == 1:
        return values[0]
    return values[0] + values[1] if n == 2 else steady_sum(values, n)


@inline_kernel
def sum_of_five(a, b, c, d, e):
    """As `steady_sum` of five values, of which those that are not there are 0; without a branch."""
    a, d = min(a, d), max(a, d)
    b, e = min(b, e), max(b, e)
    a, c = min(a, c), max(a, c)
    b, d = min(b, d), max(b, d)
    a, b = min(a, b), max(a, b)
    c, e = min(c, e), max(c, e)
    b, c = min(b, c), max(b, c)
    d, e = min(d, e), max(d, e)
    c, d = min(c, d), max(c, d)
    return a + b + c + d + e


@inline_kernel
def proximity(is_lonlat, max_distance, x0, y0, x1, y1):
    """1 at the same place, falling linearly to 0 at `max_distance` and beyond."""
    if is_lonlat:
        distance = haversine_m(x0, y0, x1, y1)
    else:
        # As Python's own floats, which overflow to infinity without a word.
        dx, dy = float(x1) - float(x0), float(y1) - float(y0)
        distance = math.sqrt(dx * dx + dy * dy)
    return max(0.0, 1.0 - distance / max_distance)


@inline_kernel
def similarity(dot, message_length, subscription_length):
    return min(1.0, dot / (message_length * subscription_length))


@inline_kernel
def relevance(spatial_weight, near, similar):
    return spatial_weight * near + (1.0 - spatial_weight) * similar
