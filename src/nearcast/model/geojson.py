"""Geometries in other formats (GeoJSON, WKT, shapely) as regions: what `region` accepts.

`shapes` cleans, splits and repairs the rings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import shapely  # type: ignore[import-untyped, unused-ignore]

from nearcast.errors import RegionError
from nearcast.model import shapes
from nearcast.model.regions import Circle, MultiPolygon, Polygon, Region, Rings
from nearcast.model.spaces import Space

_EXPECTED = "expected a Polygon or MultiPolygon (GeoJSON or WKT), a Feature or collection of them, or a shapely geometry"
# Rings may cross the antimeridian, but not circle the world: larger numbers are metres or another projection.
_MAX_LONGITUDE = 360.0


def read_region(geometry: object, space: Space, repair: bool) -> Region:
    """The region of a geometry that is not one already."""
    document = _as_geojson(geometry)
    circle = _circle(document)
    if circle is not None:
        circle.check(space)
        return circle
    polygons, may_overlap = _collect_polygons(document)
    parts = list(shapes.clean_polygons(polygons))
    if space is Space.LONLAT:
        parts = _split(parts)
    if repair:
        parts = shapes.repair_polygons(parts)
    elif may_overlap and len(parts) > 1:
        parts = shapes.join_polygons(parts)
    result = Polygon(parts[0]) if len(parts) == 1 else MultiPolygon(parts)
    result.check(space)
    return result


def _as_geojson(geometry: object) -> Mapping[str, Any]:
    if isinstance(geometry, str):
        return _parse_text(geometry)
    if isinstance(geometry, Mapping):
        return geometry
    if isinstance(geometry, shapely.Geometry) and geometry.is_empty:
        raise RegionError(f"the geometry {geometry.wkt!r} is empty; {_EXPECTED}")
    interface = getattr(geometry, "__geo_interface__", None)
    if isinstance(interface, Mapping):
        return interface
    raise RegionError(f"{geometry!r} is not a geometry; {_EXPECTED}")


def _parse_text(text: str) -> Mapping[str, Any]:
    shown = text if len(text) <= 60 else text[:60] + "..."
    if text.lstrip().startswith("{"):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RegionError(f"the GeoJSON {shown!r} does not parse: {error}") from None
        return _mapping(document, "GeoJSON")
    try:
        geometry = shapely.from_wkt(text)
    except NotImplementedError:
        # How shapely refuses curves.
        raise RegionError(f"the WKT {shown!r} has curves; {_EXPECTED}, with straight edges") from None
    except shapely.errors.GEOSException as error:
        raise RegionError(f"the text {shown!r} is neither GeoJSON nor WKT ({str(error).strip()}); {_EXPECTED}") from None
    return _as_geojson(geometry)


def _circle(document: Mapping[str, Any]) -> Circle | None:
    """Reads back what `Circle.__geo_interface__` gives."""
    properties = document.get("properties")
    geometry = document.get("geometry")
    if document.get("type") != "Feature" or not isinstance(properties, Mapping) or not isinstance(geometry, Mapping):
        return None
    if geometry.get("type") != "Point" or properties.get("shape") != "Circle" or "radius" not in properties:
        return None
    coordinates = geometry.get("coordinates")
    if not isinstance(coordinates, (list, tuple)) or len(coordinates) < 2:
        raise RegionError(f"the centre of the circle is {coordinates!r}; expected [x, y]")
    return Circle(coordinates[0], coordinates[1], properties["radius"])


def _collect_polygons(document: Mapping[str, Any]) -> tuple[list[Any], bool]:
    """The rings of every polygon inside, and whether the polygons may overlap, as members of a collection may."""
    polygons: list[Any] = []
    pending: list[Mapping[str, Any]] = [document]
    may_overlap = False
    while pending:
        item = pending.pop()
        kind = item.get("type")
        if kind == "Polygon":
            polygons.append(_field(item, "coordinates"))
        elif kind == "MultiPolygon":
            polygons.extend(_field(item, "coordinates"))
        elif kind == "Feature":
            pending.append(_mapping(_field(item, "geometry", list_expected=False), "the geometry of the Feature"))
        elif kind in ("GeometryCollection", "FeatureCollection"):
            may_overlap = True
            members = _field(item, "geometries" if kind == "GeometryCollection" else "features")
            pending.extend(_mapping(member, f"a member of the {kind}") for member in reversed(members))
        elif kind in ("Point", "MultiPoint", "LineString", "MultiLineString", "LinearRing"):
            raise RegionError(
                f"a {kind} has no area and cannot be a region; {_EXPECTED}; for the surroundings of a point use nearcast.Circle"
            )
        else:
            raise RegionError(f"a geometry of type {kind!r} was given; {_EXPECTED}")
    if not polygons:
        raise RegionError(f"the {document.get('type')} is empty; {_EXPECTED}")
    return polygons, may_overlap


def _field(item: Mapping[str, Any], name: str, list_expected: bool = True) -> Any:
    value = item.get(name)
    if value is None or (list_expected and not isinstance(value, (list, tuple))):
        raise RegionError(
            f"the {item.get('type')} has {name}={value!r}; expected {'a list' if list_expected else 'a geometry'}"
        )
    return value


def _mapping(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise RegionError(f"{what} is {value!r}; expected an object with a 'type'")
    return value


def _split(parts: list[Rings]) -> list[Rings]:
    result: list[Rings] = []
    for rings in parts:
        if not shapes.crosses_antimeridian(rings):
            result.append(rings)
            continue
        for ring in rings:
            for x, y in ring:
                if abs(x) > _MAX_LONGITUDE or abs(y) > 90.0:
                    raise RegionError(
                        f"the position ({x!r}, {y!r}) is not longitude and latitude; expected |x| <= 180 and |y| <= 90 "
                        "(up to 360 for rings across the antimeridian); use region(..., space='plane') for other coordinates"
                    )
        result.extend(shapes.split_at_antimeridian(rings))
    return result
