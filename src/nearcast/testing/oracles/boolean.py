"""The definition of the boolean answer, in plain Python: every subscription is tested against every message.

Written from the contract and not from the code. It uses no clauses, no covering boxes and no formula of an index.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import shapely  # type: ignore[import-untyped, unused-ignore]

from nearcast.errors import NearcastError
from nearcast.model.analysis import Analysis
from nearcast.model.inputs import Id
from nearcast.model.message import Message
from nearcast.model.regions import Box, Circle, MultiPolygon, Polygon, Region
from nearcast.model.regions import region as read_region
from nearcast.model.subscription import Subscription

_EARTH_RADIUS_M = 6_371_008.8


class Pair(NamedTuple):
    """A delivery: this message matches this subscription."""

    subscription_id: Id
    message_id: Id


class Oracle:
    """Holds subscriptions; matches a message by testing all of them.

    `rejected` lists the rows of the last call that were left out.
    """

    def __init__(self, space: str = "lonlat", analysis: Analysis | None = None) -> None:
        self.space = space
        self.analysis = analysis
        self.subscriptions: dict[Id, Subscription] = {}
        self.rejected: list[int] = []
        self._geometry: dict[Id, Any] = {}

    def subscribe(self, subscriptions: Iterable[Subscription]) -> None:
        """A known id is replaced; the second of two equal ids in one call is rejected."""
        self.rejected = []
        seen: set[Id] = set()
        for row, subscription in enumerate(subscriptions):
            if subscription.id in seen or not lies_in(subscription.region, self.space):
                self.rejected.append(row)
                continue
            seen.add(subscription.id)
            self.subscriptions[subscription.id] = subscription
            self._geometry[subscription.id] = _geometry_of(subscription.region)

    def unsubscribe(self, ids: Iterable[Id]) -> None:
        """Unknown ids are ignored."""
        self.rejected = []
        for id in ids:
            self.subscriptions.pop(id, None)
            self._geometry.pop(id, None)

    def publish(self, messages: Iterable[Message]) -> list[Pair]:
        """Every delivery, each once per message."""
        self.rejected = []
        pairs: list[Pair] = []
        for row, message in enumerate(messages):
            try:
                words = set(message.words(self.analysis))
            except NearcastError:
                self.rejected.append(row)
                continue
            if not lies_in(message.box, self.space):
                self.rejected.append(row)
                continue
            geometry = _box_geometry(message.box)
            for id, subscription in self.subscriptions.items():
                if self._has_keywords(subscription, words) and self._is_met(subscription, message.box, geometry):
                    pairs.append(Pair(id, message.id))
        return pairs

    def results(self) -> dict[Id, Any]:
        """Nothing: a boolean subscription keeps no result between calls."""
        return {}

    def matches(self, subscription_id: Id, message: Message) -> bool:
        """Whether this one subscription gets this one message."""
        subscription = self.subscriptions[subscription_id]
        words = set(message.words(self.analysis))
        return self._has_keywords(subscription, words) and self._is_met(subscription, message.box, _box_geometry(message.box))

    def _has_keywords(self, subscription: Subscription, words: set[Any]) -> bool:
        if subscription.interest is not None:
            return subscription.interest.holds(words, self.analysis)
        if self.analysis is None:
            return all(word in words for word in subscription.keywords)
        return all((self.analysis.keyword(word) if isinstance(word, str) else word) in words for word in subscription.keywords)

    def _is_met(self, subscription: Subscription, box: Box, geometry: Any) -> bool:
        region = subscription.region
        if region is None:
            return True
        if isinstance(region, Box):
            return boxes_meet(region, box)
        if isinstance(region, Circle):
            return circle_meets_box(region, box, self.space)
        return bool(self._geometry[subscription.id].intersects(geometry))


def boxes_meet(a: Box, b: Box) -> bool:
    """Closed boxes: a common point is enough."""
    is_apart = a.x1 < b.x0 or b.x1 < a.x0 or a.y1 < b.y0 or b.y1 < a.y0
    return not is_apart


def circle_meets_box(circle: Circle, box: Box, space: str) -> bool:
    """Whether the box's nearest point is within the radius; exact in the plane."""
    if space == "plane":
        dx = _gap(circle.x, box.x0, box.x1)
        dy = _gap(circle.y, box.y0, box.y1)
        return dx * dx + dy * dy <= Fraction(circle.radius) ** 2
    return distance_to_box_m(circle.x, circle.y, box) <= circle.radius


def distance_m(x0: float, y0: float, x1: float, y1: float) -> float:
    """Great-circle metres: the angle between two vectors from the centre of the sphere."""
    a, b = _vector(x0, y0), _vector(x1, y1)
    cross = (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
    dot = a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
    return _EARTH_RADIUS_M * math.atan2(math.hypot(*cross), dot)


def distance_to_box_m(x: float, y: float, box: Box) -> float:
    """Great-circle metres to the nearest point of a closed box of longitudes and latitudes."""
    # At one latitude the distance grows with the difference of longitude up to half a turn, so the nearest meridian of the
    # box counts: that of the point if the box has it, else the western or the eastern one of the box.
    is_across = any(box.x0 <= turned <= box.x1 for turned in (x, x - 360.0, x + 360.0))
    meridians = [x] if is_across else [box.x0, box.x1]
    return min(_distance_to_meridian_m(x, y, meridian, box.y0, box.y1) for meridian in meridians)


def _distance_to_meridian_m(x: float, y: float, meridian: float, y0: float, y1: float) -> float:
    latitudes = [y0, y1]
    # The foot of the perpendicular: the vector without its part across the plane of the meridian.
    vector = _vector(x, y)
    outward = (math.cos(math.radians(meridian)), math.sin(math.radians(meridian)))
    along = vector[0] * outward[0] + vector[1] * outward[1]
    if along >= 0.0:
        foot = math.degrees(math.atan2(vector[2], along))
        latitudes.append(min(max(foot, y0), y1))
    if meridian == x and y0 <= y <= y1:
        latitudes.append(y)
    return min(distance_m(x, y, meridian, latitude) for latitude in latitudes)


def _vector(x: float, y: float) -> tuple[float, float, float]:
    lon, lat = math.radians(x), math.radians(y)
    return math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)


def _gap(value: float, low: float, high: float) -> Fraction:
    """How far `value` is from the closed interval, without rounding."""
    if value < low:
        return Fraction(low) - Fraction(value)
    if value > high:
        return Fraction(value) - Fraction(high)
    return Fraction(0)


def lies_in(region: Region | None, space: str) -> bool:
    """Whether a region is within the space."""
    if region is None or space == "plane":
        return True
    if isinstance(region, Circle):
        corners = [(region.x, region.y)]
    elif isinstance(region, Box):
        corners = [(region.x0, region.y0), (region.x1, region.y1)]
    else:
        corners = [position for rings in _polygons(region) for ring in rings for position in ring]
    return all(abs(x) <= 180.0 and abs(y) <= 90.0 for x, y in corners)


def _polygons(region: Region) -> Iterable[Any]:
    if isinstance(region, Polygon):
        return (region.rings,)
    assert isinstance(region, MultiPolygon)
    return region.polygons


def _geometry_of(region: Region | None) -> Any:
    if region is None or isinstance(region, (Box, Circle)):
        return None
    return shapely.MultiPolygon([shapely.Polygon(rings[0], rings[1:]) for rings in _polygons(region)])


def _box_geometry(box: Box) -> Any:
    """The box for shapely, which needs a line or a point where a box has no area."""
    corners = list(dict.fromkeys([(box.x0, box.y0), (box.x1, box.y0), (box.x1, box.y1), (box.x0, box.y1)]))
    if len(corners) == 1:
        return shapely.Point(corners[0])
    return shapely.LineString(corners) if len(corners) == 2 else shapely.Polygon(corners)


def subscriptions_from_table(table: Any, space: str = "lonlat") -> list[Subscription]:
    """The rows of a subscription table as objects; every row must be a good one."""
    return [_subscription_of(row, space) for row in table.to_pylist()]


def messages_from_table(table: Any) -> list[Message]:
    """The rows of a message table as objects; every row must be a good one."""
    return [Message(row["id"], keywords=row["keywords"], location=_location_of(row)) for row in table.to_pylist()]


def _subscription_of(row: Mapping[str, Any], space: str) -> Subscription:
    region: Region | None = None
    if row.get("region") is not None:
        region = read_region(row["region"], space)
    elif row.get("x0") is not None:
        region = Box(row["x0"], row["y0"], row["x1"], row["y1"])
    if row.get("interest") is not None:
        return Subscription(row["id"], interest=row["interest"], region=region)
    return Subscription(row["id"], keywords=row.get("keywords"), region=region)


def _location_of(row: Mapping[str, Any]) -> tuple[float, float] | Box:
    if "x" in row:
        return row["x"], row["y"]
    return Box(row["x0"], row["y0"], row["x1"], row["y1"])
