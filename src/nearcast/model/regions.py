"""Regions of subscriptions: box, circle, polygon, multipolygon; all closed and immutable.

Geometry libraries load when the first polygon is made, so that messages (which need `Box`) stay light.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from nearcast import settings
from nearcast.errors import RegionError
from nearcast.model.inputs import finite_number
from nearcast.model.spaces import Space, space_of

Position: TypeAlias = tuple[float, float]
Ring: TypeAlias = tuple[Position, ...]
Rings: TypeAlias = tuple[Ring, ...]
Bounds: TypeAlias = tuple[float, float, float, float]

# Above this many vertices a repr shows the size and the bounds instead of every position.
_REPR_VERTICES = 12


class Region(ABC):
    """A closed set of points of a space: its border belongs to it."""

    __slots__ = ()

    is_exact_box: ClassVar[bool] = False
    """Whether the covering box is the region itself, so that no further check is needed."""

    @abstractmethod
    def check(self, space: Space | str) -> None:
        """Raise RegionError if the region does not lie in `space`."""

    @abstractmethod
    def meets(self, box: Box, space: Space | str) -> bool:
        """Whether the region and the closed box (a point: zero area) have a point in common."""

    @abstractmethod
    def covering_boxes(self, space: Space | str, limit: int | None = None) -> list[Box]:
        """At most `limit` boxes that together contain every point of the region (setting `max_covering_boxes`)."""

    @property
    @abstractmethod
    def __geo_interface__(self) -> dict[str, Any]: ...

    def bounding_box(self, space: Space | str) -> Box:
        """One box that contains the region."""
        return self.covering_boxes(space, 1)[0]


@dataclass(frozen=True, slots=True)
class Box(Region):
    """The closed rectangle x0 <= x <= x1, y0 <= y <= y1. Zero width and height are legal."""

    x0: float
    y0: float
    x1: float
    y1: float
    is_exact_box: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("x0", "y0", "x1", "y1"):
            object.__setattr__(self, name, finite_number(getattr(self, name), f"{name} of a box"))
        if self.x0 > self.x1:
            raise RegionError(
                f"{self!r} has x0 > x1; expected x0 <= x1; swap them, or give an area across the antimeridian "
                "to nearcast.region as a GeoJSON polygon"
            )
        if self.y0 > self.y1:
            raise RegionError(f"{self!r} has y0 > y1; expected y0 <= y1; swap them")

    @property
    def bounds(self) -> Bounds:
        return (self.x0, self.y0, self.x1, self.y1)

    @property
    def area(self) -> float:
        """In squared units of the coordinates."""
        return (self.x1 - self.x0) * (self.y1 - self.y0)

    def check(self, space: Space | str) -> None:
        space = space_of(space)
        space.check_point(self.x0, self.y0)
        space.check_point(self.x1, self.y1)

    def meets(self, box: Box, space: Space | str = Space.PLANE) -> bool:
        return self.x0 <= box.x1 and box.x0 <= self.x1 and self.y0 <= box.y1 and box.y0 <= self.y1

    def covers(self, x: float, y: float) -> bool:
        return self.x0 <= x <= self.x1 and self.y0 <= y <= self.y1

    def covering_boxes(self, space: Space | str = Space.PLANE, limit: int | None = None) -> list[Box]:
        return [self]

    @property
    def __geo_interface__(self) -> dict[str, Any]:
        x0, y0, x1, y1 = self.bounds
        ring = ((x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0))
        return {"type": "Polygon", "coordinates": (ring,), "bbox": self.bounds}


@dataclass(frozen=True, slots=True)
class Circle(Region):
    """Every point within `radius` of (x, y): metres in lonlat, plane units in the plane.

    It has no `bounds`, because they depend on the space: see `bounding_box(space)`.
    """

    x: float
    y: float
    radius: float

    def __post_init__(self) -> None:
        for name in ("x", "y", "radius"):
            object.__setattr__(self, name, finite_number(getattr(self, name), f"{name} of a circle"))
        if self.radius < 0:
            raise RegionError(f"{self!r} has a negative radius; expected a radius >= 0")

    def check(self, space: Space | str) -> None:
        space_of(space).check_point(self.x, self.y)

    def meets(self, box: Box, space: Space | str) -> bool:
        return space_of(space).distance_to_box(self.x, self.y, box.x0, box.y0, box.x1, box.y1) <= self.radius

    def covering_boxes(self, space: Space | str, limit: int | None = None) -> list[Box]:
        from nearcast.model.covering import cover_circle

        return cover_circle(self, space_of(space), _covering_limit(limit))

    @property
    def __geo_interface__(self) -> dict[str, Any]:
        """A Feature, since GeoJSON has no circles; `region` reads it back."""
        return {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": (self.x, self.y)},
            "properties": {"shape": "Circle", "radius": self.radius},
        }


class _Polygonal(Region):
    """The common part of polygon and multipolygon. `geometry` is the shapely geometry; do not change it."""

    __slots__ = ()

    geometry: Any

    @property
    def bounds(self) -> Bounds:
        x0, y0, x1, y1 = self.geometry.bounds
        return (x0, y0, x1, y1)

    def check(self, space: Space | str) -> None:
        x0, y0, x1, y1 = self.bounds
        space = space_of(space)
        space.check_point(x0, y0)
        space.check_point(x1, y1)

    def meets(self, box: Box, space: Space | str = Space.PLANE) -> bool:
        from nearcast.model.shapes import geometry_meets_box

        return geometry_meets_box(self.geometry, box)

    def covering_boxes(self, space: Space | str = Space.PLANE, limit: int | None = None) -> list[Box]:
        from nearcast.model.covering import cover_geometry

        return cover_geometry(self.geometry, _covering_limit(limit))


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Polygon(_Polygonal):
    """The inside and the border of the first ring, minus the inside of the other rings (holes).

    `rings` are GeoJSON rings: lists of (x, y); any winding, closed or not, a third coordinate is dropped.
    """

    rings: Rings
    geometry: Any = field(init=False, compare=False)

    def __init__(self, rings: Iterable[Iterable[Sequence[float]]]) -> None:
        from nearcast.model.shapes import build_polygon, clean_rings

        cleaned = clean_rings(rings)
        object.__setattr__(self, "rings", cleaned)
        object.__setattr__(self, "geometry", build_polygon(cleaned))

    def __repr__(self) -> str:
        n_vertices = sum(map(len, self.rings))
        if n_vertices <= _REPR_VERTICES:
            return f"Polygon({[list(ring) for ring in self.rings]!r})"
        return f"<Polygon of {n_vertices} vertices in {len(self.rings)} rings, bounds {self.bounds}>"

    @property
    def __geo_interface__(self) -> dict[str, Any]:
        return {"type": "Polygon", "coordinates": self.rings}


@dataclass(frozen=True, slots=True, init=False, repr=False)
class MultiPolygon(_Polygonal):
    """Several polygons as one region; each is a list of rings as `Polygon` takes them."""

    polygons: tuple[Rings, ...]
    geometry: Any = field(init=False, compare=False)

    def __init__(self, polygons: Iterable[Iterable[Iterable[Sequence[float]]]]) -> None:
        from nearcast.model.shapes import build_multipolygon, clean_polygons

        cleaned = clean_polygons(polygons)
        object.__setattr__(self, "polygons", cleaned)
        object.__setattr__(self, "geometry", build_multipolygon(cleaned))

    def __repr__(self) -> str:
        n_vertices = sum(len(ring) for rings in self.polygons for ring in rings)
        if n_vertices <= _REPR_VERTICES:
            return f"MultiPolygon({[[list(ring) for ring in rings] for rings in self.polygons]!r})"
        return f"<MultiPolygon of {n_vertices} vertices in {len(self.polygons)} polygons, bounds {self.bounds}>"

    @property
    def __geo_interface__(self) -> dict[str, Any]:
        return {"type": "MultiPolygon", "coordinates": self.polygons}


def region(geometry: object, space: Space | str = "lonlat", repair: bool = False) -> Region:
    """The region a geometry describes, checked to lie in `space`.

    Parameters
    ----------
    geometry
        A GeoJSON dict or string (Polygon, MultiPolygon, a Feature or collection of them), WKT, a shapely geometry,
        anything with `__geo_interface__`, or a region.
    space
        In "lonlat" a ring that jumps more than 180 degrees of longitude, or goes beyond 180, is split at the antimeridian.
    repair
        Make self-crossing and other invalid polygons valid, instead of refusing them.
    """
    if isinstance(geometry, Region):
        geometry.check(space)
        return geometry
    from nearcast.model.geojson import read_region

    return read_region(geometry, space_of(space), repair)


def _covering_limit(limit: int | None) -> int:
    if limit is None:
        return settings.limit("max_covering_boxes")
    if limit < 1:
        raise RegionError(f"a covering of at most {limit!r} boxes was asked for; expected 1 or more")
    return limit
