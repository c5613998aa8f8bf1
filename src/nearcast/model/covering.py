"""A few boxes that contain a region, for indexes that store boxes.

A box that is too large costs a check; a box that is too small loses deliveries. So every step rounds outward.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely  # type: ignore[import-untyped, unused-ignore]

from nearcast.model.regions import Box, Circle
from nearcast.model.spaces import EARTH_RADIUS_M, Space

_WORLD = Box(-180.0, -90.0, 180.0, 90.0)
_LARGEST = 1.7976931348623157e308
# Two boxes instead of one are worth it only if their area is below this share of the one.
_WORTHWHILE = 0.8
_WELL_FILLED = 0.5
# Outward margin on edge parameters and coordinates: far above rounding errors, far too small to matter.
_SLACK = 1e-12


def cover_circle(circle: Circle, space: Space, limit: int) -> list[Box]:
    """One box, or two when a lon/lat circle reaches the antimeridian."""
    if space is Space.LONLAT:
        return _cover_cap(circle, limit)
    x, y, radius = circle.x, circle.y, circle.radius
    dx = radius + 4 * (math.ulp(x) + math.ulp(radius))
    dy = radius + 4 * (math.ulp(y) + math.ulp(radius))
    return [Box(max(x - dx, -_LARGEST), max(y - dy, -_LARGEST), min(x + dx, _LARGEST), min(y + dy, _LARGEST))]


def _cover_cap(circle: Circle, limit: int) -> list[Box]:
    # The haversine loses digits towards the antipode, so the margin is relative and absolute.
    angle = circle.radius / EARTH_RADIUS_M * (1 + 1e-9) + _SLACK
    if angle >= math.pi - 1e-6:
        return [_WORLD]
    height = math.degrees(angle)
    y0 = max(circle.y - height, -90.0)
    y1 = min(circle.y + height, 90.0)
    # Metres from a pole the quotient below has too few digits. Such a circle spans all longitudes anyway.
    if circle.y + height > 89.9999 or circle.y - height < -89.9999:
        return [Box(-180.0, y0, 180.0, y1)]
    # The circle contains no pole here, so angle < 90 degrees - |latitude| and the quotient is below 1.
    sine = min(math.sin(angle) / math.cos(math.radians(circle.y)), 1.0)
    width = math.degrees(math.asin(sine) * (1 + 1e-9)) + 1e-9
    x0, x1 = circle.x - width, circle.x + width
    if x0 > -180.0 and x1 < 180.0:
        return [Box(x0, y0, x1, y1)]
    if limit < 2 or x1 - x0 >= 360.0:
        return [Box(-180.0, y0, 180.0, y1)]
    if x0 <= -180.0:
        return [Box(-180.0, y0, x1, y1), Box(x0 + 360.0, y0, 180.0, y1)]
    return [Box(x0, y0, 180.0, y1), Box(-180.0, y0, x1 - 360.0, y1)]


def cover_geometry(geometry: Any, limit: int) -> list[Box]:
    """At most `limit` boxes around a valid polygon or multipolygon: one per part, then cut where it saves area.

    No point is lost: a valid polygon is the closure of its interior, interior points off the cut lines fall into one
    half each, and each half shrinks to a box with all of the geometry in it. Boxes are closed and finitely many.
    """
    whole = Box(*geometry.bounds)
    # Each box is one more clause to file and to check: worth it only for shapes that leave most of their bounds empty.
    if not math.isfinite(whole.area) or limit == 1 or geometry.area >= _WELL_FILLED * whole.area:
        return [whole]
    parts = shapely.get_parts(geometry)
    boxes = _merge_cheaply([Box(*part.bounds) for part in parts]) if len(parts) <= limit else [whole]
    outline = _Outline(geometry)
    cuts = {box: outline.best_cut(box) for box in boxes}
    while len(cuts) < limit:
        worthwhile = [box for box, halves in cuts.items() if _total_area(halves) < _WORTHWHILE * box.area]
        if not worthwhile:
            break
        best = max(worthwhile, key=lambda box: box.area - _total_area(cuts[box]))
        for half in cuts.pop(best):
            cuts[half] = outline.best_cut(half)
    return list(cuts)


class _Outline:
    """The edges of a geometry as arrays, to find the part of it inside a box."""

    def __init__(self, geometry: Any) -> None:
        self.geometry = geometry
        shapely.prepare(geometry)
        rings = shapely.get_rings(shapely.get_parts(geometry))  # a multipolygon as a whole gives none
        points, ring = shapely.get_coordinates(rings, return_index=True)
        is_edge = ring[1:] == ring[:-1]
        self.start: npt.NDArray[np.float64] = points[:-1][is_edge]
        self.step: npt.NDArray[np.float64] = points[1:][is_edge] - self.start

    def best_cut(self, box: Box) -> list[Box]:
        """The shrunken halves of the box, cut across the axis that saves more area."""
        x = box.x0 + (box.x1 - box.x0) / 2
        y = box.y0 + (box.y1 - box.y0) / 2
        by_x = (Box(box.x0, box.y0, x, box.y1), Box(x, box.y0, box.x1, box.y1))
        by_y = (Box(box.x0, box.y0, box.x1, y), Box(box.x0, y, box.x1, box.y1))
        candidates = [[part for half in halves if (part := self.shrink(half)) is not None] for halves in (by_x, by_y)]
        return min(candidates, key=_total_area)

    def shrink(self, box: Box) -> Box | None:
        """The bounding box of the geometry inside `box`; None if there is none.

        Its extremes lie on an edge of the geometry, or on a side of the box that no edge meets: then both corners of
        that side are inside. Each edge is clipped by its parameter (0 at the start, 1 at the end), never by a point
        computed before, so that errors do not add up.
        """
        low = np.array([box.x0, box.y0])
        high = np.array([box.x1, box.y1])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            at_low = (low - self.start) / self.step
            at_high = (high - self.start) / self.step
        is_still = self.step == 0.0
        first = np.where(is_still, 0.0, np.minimum(at_low, at_high)).max(axis=1)
        last = np.where(is_still, 1.0, np.maximum(at_low, at_high)).min(axis=1)
        first = np.maximum(first - _SLACK, 0.0)
        last = np.minimum(last + _SLACK, 1.0)
        is_outside = (is_still & ((self.start < low) | (self.start > high))).any(axis=1)
        inside = (first <= last) & ~is_outside

        start, step = self.start[inside], self.step[inside]
        ends = np.concatenate([start + first[inside, None] * step, start + last[inside, None] * step])
        corners = np.array([(box.x0, box.y0), (box.x0, box.y1), (box.x1, box.y0), (box.x1, box.y1)])
        inner_corners = corners[shapely.intersects_xy(self.geometry, corners[:, 0], corners[:, 1])]
        points = np.concatenate([ends, inner_corners])
        if not len(points):
            return None
        slack = _SLACK * np.abs(np.concatenate([points, start, step])).max(axis=0)
        x0, y0 = np.maximum(points.min(axis=0) - slack, low)
        x1, y1 = np.minimum(points.max(axis=0) + slack, high)
        if x0 > x1 or y0 > y1:
            # Only edges that miss the box by less than the margin.
            return None
        return Box(x0, y0, x1, y1)


def _merge_cheaply(boxes: list[Box]) -> list[Box]:
    """Join boxes that nearly fill their common bounds."""
    while True:
        for a, b in combinations(boxes, 2):
            joined = Box(min(a.x0, b.x0), min(a.y0, b.y0), max(a.x1, b.x1), max(a.y1, b.y1))
            if a.area + b.area >= _WORTHWHILE * joined.area:
                boxes = [box for box in boxes if box is not a and box is not b]
                boxes.append(joined)
                break
        else:
            return boxes


def _total_area(boxes: list[Box]) -> float:
    return sum(box.area for box in boxes)
