"""Polygons as shapely geometries: clean, validate, repair, split at the antimeridian, intersect with boxes.

Only this module calls the constructors of shapely and antimeridian.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import shapely  # type: ignore[import-untyped, unused-ignore]

from nearcast import settings
from nearcast.errors import RegionError
from nearcast.model.inputs import finite_number
from nearcast.model.regions import Box, Position, Ring, Rings

_REPAIR_HINT = "correct it, or let nearcast.region(..., repair=True) repair it"


def clean_rings(rings: Iterable[Iterable[Sequence[float]]]) -> Rings:
    """The rings as pairs of floats, closed, without a third coordinate and without repeated neighbours."""
    cleaned = tuple(_clean_ring(ring) for ring in _as_list(rings, "the rings of a polygon"))
    if not cleaned:
        raise RegionError("a polygon without rings was given; expected at least the outer ring")
    _check_size(sum(map(len, cleaned)))
    return cleaned


def clean_polygons(polygons: Iterable[Iterable[Iterable[Sequence[float]]]]) -> tuple[Rings, ...]:
    """`clean_rings` of each polygon; at least one."""
    cleaned = tuple(clean_rings(rings) for rings in _as_list(polygons, "the polygons of a multipolygon"))
    if not cleaned:
        raise RegionError("a multipolygon without polygons was given; expected at least one")
    _check_size(sum(len(ring) for rings in cleaned for ring in rings))
    return cleaned


def build_polygon(rings: Rings) -> Any:
    """The valid shapely polygon of cleaned rings."""
    return _check_valid(_assemble(rings), "the polygon")


def build_multipolygon(polygons: tuple[Rings, ...]) -> Any:
    """The valid shapely multipolygon of cleaned polygons."""
    return _check_valid(shapely.MultiPolygon([_assemble(rings) for rings in polygons]), "the multipolygon")


def rings_of(geometry: Any) -> list[Rings]:
    """The rings of every polygon in a shapely geometry, without its lines and points."""
    return [
        tuple(tuple((x, y) for x, y, *_ in ring.coords) for ring in (part.exterior, *part.interiors))
        for part in shapely.get_parts(_flatten(geometry))
        if part.geom_type == "Polygon" and not part.is_empty
    ]


def repair_polygons(polygons: Iterable[Rings]) -> list[Rings]:
    """Valid polygons that cover the same area, by `shapely.make_valid`."""
    parts = [shapely.make_valid(_assemble(rings)) for rings in polygons]
    repaired = rings_of(shapely.union_all([_polygonal(part) for part in parts]))
    if not repaired:
        raise RegionError("nothing with an area is left of the geometry after repair; give a polygon that has an inside")
    return repaired


def join_polygons(polygons: Iterable[Rings]) -> list[Rings]:
    """The union of polygons that may overlap (members of a collection may, those of a multipolygon may not)."""
    return rings_of(shapely.union_all([build_polygon(rings) for rings in polygons]))


def crosses_antimeridian(rings: Rings) -> bool:
    """Whether a ring jumps more than half a turn between neighbours, or leaves -180..180."""
    return any(abs(x) > 180.0 for ring in rings for x, _ in ring) or any(
        abs(b[0] - a[0]) > 180.0 for ring in rings for a, b in pairwise(ring)
    )


def split_at_antimeridian(rings: Rings) -> list[Rings]:
    """The parts on either side of longitude 180, with straight edges.

    Shell and holes are split one by one and subtracted, because `antimeridian` loses holes that cross the line with
    longitudes beyond 180. It rounds the latitude of a crossing to 1e-7 degrees (a centimetre).
    """
    shell, *holes = (_split_ring(ring) for ring in rings)
    for hole in holes:
        shell = shapely.difference(shell, hole)
    parts = rings_of(shell)
    if not parts:
        raise RegionError("nothing is left of the polygon after splitting it at the antimeridian; check its holes")
    return parts


def geometry_meets_box(geometry: Any, box: Box) -> bool:
    """shapely's `intersects`; a box without area becomes the point or line that it is."""
    if box.x0 == box.x1 and box.y0 == box.y1:
        return bool(shapely.intersects_xy(geometry, box.x0, box.y0))
    if box.x0 == box.x1 or box.y0 == box.y1:
        return bool(shapely.intersects(geometry, shapely.LineString([(box.x0, box.y0), (box.x1, box.y1)])))
    return bool(shapely.intersects(geometry, shapely.box(*box.bounds)))


def _split_ring(ring: Ring) -> Any:
    import antimeridian

    # A ring around the world encloses a pole. Its winding does not reliably say which one.
    turn = sum((b[0] - a[0] + 180.0) % 360.0 - 180.0 for a, b in pairwise(ring))
    is_around_pole = abs(turn) > 180.0
    is_north = sum(y for _, y in ring) > 0
    try:
        parts = antimeridian.fix_polygon(
            shapely.Polygon(ring),
            force_north_pole=is_around_pole and is_north,
            force_south_pole=is_around_pole and not is_north,
            fix_winding=True,
            great_circle=False,
        )
    except (AssertionError, ValueError, shapely.errors.GEOSException) as error:
        raise RegionError(
            f"the ring starting at {ring[0]!r} could not be split at the antimeridian ({error}); "
            "split it yourself into a MultiPolygon within -180..180"
        ) from None
    if not parts.is_valid:
        raise _invalid_error(parts, "the polygon, split at the antimeridian,")
    return parts


def _clean_ring(ring: Iterable[Sequence[float]]) -> Ring:
    positions: list[Position] = []
    for position in _as_list(ring, "a ring of a polygon"):
        pair = _position(position)
        if not positions or pair != positions[-1]:
            positions.append(pair)
    if positions and positions[0] != positions[-1]:
        positions.append(positions[0])
    if len(positions) < 4:
        raise RegionError(
            f"the ring {positions!r} has too few points; "
            "expected at least 3 different positions (the first may be repeated last)"
        )
    return tuple(positions)


def _position(position: Any) -> Position:
    if isinstance(position, str):
        raise RegionError(f"the position {position!r} is text; expected (x, y)")
    try:
        x, y = position[0], position[1]
    except (TypeError, IndexError, KeyError):
        raise RegionError(f"the position {position!r} is not a pair; expected (x, y)") from None
    if type(x) is float and type(y) is float and math.isfinite(x) and math.isfinite(y):
        # The common case, without building labels that only an error would show.
        return x, y
    return finite_number(x, f"x of the position {position!r}"), finite_number(y, f"y of the position {position!r}")


def _as_list(items: Any, what: str) -> list[Any]:
    if isinstance(items, (str, bytes, dict)):
        raise RegionError(f"{what}: given as {type(items).__name__}; expected a list")
    try:
        return list(items)
    except TypeError:
        raise RegionError(f"{what}: given {items!r}; expected a list") from None


def _check_size(n_vertices: int) -> None:
    limit = settings.limit("max_region_vertices")
    if n_vertices > limit:
        raise RegionError(
            f"the region has {n_vertices} vertices; at most {limit} are allowed; "
            "simplify it or raise NEARCAST_MAX_REGION_VERTICES"
        )


def _assemble(rings: Rings) -> Any:
    return shapely.Polygon(rings[0], rings[1:])


def _check_valid(geometry: Any, what: str) -> Any:
    if not geometry.is_valid:
        raise _invalid_error(geometry, what)
    return geometry


def _invalid_error(geometry: Any, what: str) -> RegionError:
    return RegionError(f"{what} is not valid: {shapely.is_valid_reason(geometry)} (position in brackets); {_REPAIR_HINT}")


def _polygonal(geometry: Any) -> Any:
    parts = shapely.get_parts(_flatten(geometry))
    return shapely.MultiPolygon([part for part in parts if part.geom_type == "Polygon"])


def _flatten(geometry: Any) -> Any:
    """The geometry with the multipolygons inside a collection taken apart; `get_parts` would leave them whole."""
    if geometry.geom_type != "GeometryCollection":
        return geometry
    return shapely.GeometryCollection([p for part in geometry.geoms for p in shapely.get_parts(_flatten(part))])
