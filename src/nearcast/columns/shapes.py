"""Circles and polygons as flat arrays, with the exact answer where floats cannot decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import GrowingArray
from nearcast.kernels.shapes import ShapeArrays
from nearcast.model.regions import Box, Circle, MultiPolygon, Polygon, Region
from nearcast.model.spaces import Space

_POLYGON = -1.0


class ShapeStore:
    """Regions that are not boxes, numbered in order of arrival."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]] | None = None) -> None:
        saved = arrays or {}
        zero = np.zeros(1, np.int64)
        self._radius = GrowingArray(np.float64, saved.get("radius"))
        self._ring_first = GrowingArray(np.int64, saved.get("ring_first", zero))
        self._vertex_first = GrowingArray(np.int64, saved.get("vertex_first", zero))
        self._x = GrowingArray(np.float64, saved.get("x"))
        self._y = GrowingArray(np.float64, saved.get("y"))
        self._is_hole = GrowingArray(np.uint8, saved.get("is_hole"))
        self._regions: dict[int, Region] = {}

    def __len__(self) -> int:
        return self._radius.n

    def add(self, region: Region) -> int:
        """File a circle, polygon or multipolygon; returns its number."""
        if isinstance(region, Circle):
            self._add_ring([(region.x, region.y)], is_hole=False)
            self._radius.extend(region.radius)
        else:
            if not isinstance(region, Polygon | MultiPolygon):
                raise TypeError(f"{type(region).__name__} is no shape")
            for rings in (region.rings,) if isinstance(region, Polygon) else region.polygons:
                for position, ring in enumerate(rings):
                    self._add_ring(ring, is_hole=position > 0)
            self._radius.extend(_POLYGON)
        self._ring_first.extend(self._vertex_first.n - 1)
        return len(self) - 1

    def move_circle(self, shape: int, circle: Circle) -> None:
        """Replace a circle by another one."""
        centre = self._vertex_first.used[self._ring_first.used[shape]]
        self._x.used[centre], self._y.used[centre] = circle.x, circle.y
        self._radius.used[shape] = circle.radius
        self._regions.pop(shape, None)

    def _add_ring(self, ring: Sequence[tuple[float, float]], is_hole: bool) -> None:
        vertices = np.asarray(ring, np.float64)
        self._x.extend(np.ascontiguousarray(vertices[:, 0]))
        self._y.extend(np.ascontiguousarray(vertices[:, 1]))
        self._vertex_first.extend(self._x.n)
        self._is_hole.extend(int(is_hole))

    def layout(self) -> ShapeArrays:
        return ShapeArrays(self._radius.used, self._ring_first.used, self._vertex_first.used, self._x.used, self._y.used)

    def region(self, shape: int) -> Region:
        """The shape as a region. It is kept, because building one validates it."""
        if shape not in self._regions:
            self._regions[shape] = self._build_region(shape)
        return self._regions[shape]

    def _build_region(self, shape: int) -> Region:
        rings = range(self._ring_first.used[shape], self._ring_first.used[shape + 1])
        if self._radius.used[shape] >= 0:
            ((x, y),) = self._ring(rings[0])
            return Circle(x, y, float(self._radius.used[shape]))
        polygons: list[list[list[tuple[float, float]]]] = []
        for ring in rings:
            if self._is_hole.used[ring]:
                polygons[-1].append(self._ring(ring))
            else:
                polygons.append([self._ring(ring)])
        return Polygon(polygons[0]) if len(polygons) == 1 else MultiPolygon(polygons)

    def meets_exactly(self, shape: int, box: Box) -> bool:
        """The exact test, for messages too close to the border of a polygon."""
        return self.region(shape).meets(box, Space.PLANE)

    def _ring(self, ring: int) -> list[tuple[float, float]]:
        vertices = slice(self._vertex_first.used[ring], self._vertex_first.used[ring + 1])
        return list(zip(self._x.used[vertices].tolist(), self._y.used[vertices].tolist(), strict=True))

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**self.layout()._asdict(), "is_hole": self._is_hole.used}

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for array in self.layout())
