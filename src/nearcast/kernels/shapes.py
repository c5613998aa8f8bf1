"""Test circles and polygons against the location of a message: yes, no, or too close to the border for floats to decide.

A polygon is any number of closed rings; inside is where a ray crosses their edges an odd number of times, so holes and
several parts need no case of their own. UNSURE is settled by the caller with exact arithmetic.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.boxes import euclidean_to_box, haversine_to_box_m
from nearcast.kernels.compile import inline_kernel, kernel

NO, YES, UNSURE = 0, 1, 2
NO_SHAPE = -1

# Relative error bound of the orientation of three points in float64 (Shewchuk 1997, ccwerrboundA), rounded up.
_ORIENTATION_ERROR = 3.5e-16


class ShapeArrays(NamedTuple):
    """Shape `s` has the rings `ring_first[s]:ring_first[s + 1]`; a circle has one ring of one vertex, its centre.

    Vertices of ring `r` are `x[vertex_first[r]:vertex_first[r + 1]]`, the last equal to the first.
    """

    radius: np.ndarray  # float64[n_shapes]; negative = polygon
    ring_first: np.ndarray  # int64[n_shapes + 1]
    vertex_first: np.ndarray  # int64[n_rings + 1]
    x: np.ndarray  # float64[]
    y: np.ndarray  # float64[]


@inline_kernel
def orientation(ax, ay, bx, by, cx, cy):
    """+1 if a, b, c turn left, -1 if right, 0 if floats cannot decide (or they are on one line)."""
    left = (bx - ax) * (cy - ay)
    right = (cx - ax) * (by - ay)
    bound = _ORIENTATION_ERROR * (abs(left) + abs(right))
    if left - right > bound:
        return 1
    if right - left > bound:
        return -1
    return 0


@kernel
def point_in_rings(x, y, xs, ys, vertex_first, first_ring, last_ring):
    """Whether the point lies inside or on the border of the polygon."""
    is_inside = False
    for ring in range(first_ring, last_ring):
        for a in range(vertex_first[ring], vertex_first[ring + 1] - 1):
            ax, ay, bx, by = xs[a], ys[a], xs[a + 1], ys[a + 1]
            if ax == x and ay == y:
                return YES
            if ay == y and by == y:
                if min(ax, bx) <= x <= max(ax, bx):
                    return YES
            elif (ay > y) != (by > y):
                turn = orientation(ax, ay, bx, by, x, y)
                if turn == 0:
                    return UNSURE
                # The edge crosses the ray to the right of the point.
                if (turn > 0) == (by > ay):
                    is_inside = not is_inside
    return YES if is_inside else NO


@kernel
def edge_meets_box(ax, ay, bx, by, x0, y0, x1, y1):
    """Whether a segment has a point in common with a closed box (separating axes: x, y and the segment's normal)."""
    if max(ax, bx) < x0 or x1 < min(ax, bx) or max(ay, by) < y0 or y1 < min(ay, by):
        return NO
    if (x0 <= ax <= x1 and y0 <= ay <= y1) or (x0 <= bx <= x1 and y0 <= by <= y1):
        return YES
    south_west = orientation(ax, ay, bx, by, x0, y0)
    south_east = orientation(ax, ay, bx, by, x1, y0)
    north_west = orientation(ax, ay, bx, by, x0, y1)
    north_east = orientation(ax, ay, bx, by, x1, y1)
    lowest = min(south_west, south_east, north_west, north_east)
    highest = max(south_west, south_east, north_west, north_east)
    if lowest < 0 and highest > 0:
        return YES
    if lowest == 0 or highest == 0:
        return UNSURE
    return NO


@kernel
def box_meets_rings(x0, y0, x1, y1, xs, ys, vertex_first, first_ring, last_ring):
    """Whether a closed box has a point in common with the polygon."""
    is_unsure = False
    for ring in range(first_ring, last_ring):
        for a in range(vertex_first[ring], vertex_first[ring + 1] - 1):
            verdict = edge_meets_box(xs[a], ys[a], xs[a + 1], ys[a + 1], x0, y0, x1, y1)
            if verdict == YES:
                return YES
            is_unsure = is_unsure or verdict == UNSURE
    if is_unsure:
        return UNSURE
    # No edge touches the box: it is completely inside or outside, and one corner decides.
    return point_in_rings(x0, y0, xs, ys, vertex_first, first_ring, last_ring)


@kernel
def shape_meets(shapes, shape, is_lonlat, x0, y0, x1, y1):
    """Whether a message at the box (or point) meets the shape."""
    first_ring, last_ring = shapes.ring_first[shape], shapes.ring_first[shape + 1]
    radius = shapes.radius[shape]
    if radius >= 0.0:
        centre = shapes.vertex_first[first_ring]
        x, y = shapes.x[centre], shapes.y[centre]
        distance = haversine_to_box_m(x, y, x0, y0, x1, y1) if is_lonlat else euclidean_to_box(x, y, x0, y0, x1, y1)
        return YES if distance <= radius else NO
    if x0 == x1 and y0 == y1:
        return point_in_rings(x0, y0, shapes.x, shapes.y, shapes.vertex_first, first_ring, last_ring)
    return box_meets_rings(x0, y0, x1, y1, shapes.x, shapes.y, shapes.vertex_first, first_ring, last_ring)
