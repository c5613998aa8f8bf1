"""Small seeded worlds of subscriptions and messages on a coarse grid, thousands in seconds; and rows of them as tables.

Coordinates and words are few, so that borders touch, boxes repeat, and keyword sets are prefixes of each other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.model.inputs import Id
from nearcast.model.message import Message
from nearcast.model.normalise import Keyword
from nearcast.model.regions import Box, Circle, MultiPolygon, Polygon, Region
from nearcast.model.subscription import RankedSubscription, Subscription

SPACES = ("plane", "lonlat")
WORDS = ("coffee", "sale", "jazz", "straße", "東京", "c++")
NUMBERS = (0, 7, -3, 2**31 - 1, 1_000_000, -(2**31))
_UNKNOWN_WORDS = ("zebra", "Ünknown", "zzz")
_UNKNOWN_NUMBERS = (5, -99, 123_456)
# A word is about half as likely as the one before it.
_SKEW = np.array([0.45, 0.25, 0.13, 0.08, 0.06, 0.03])

# Where the grid may lie: in the middle, at the antimeridian, at both poles; far out in the plane.
_LONLAT_CORNERS = ((0.0, 0.0), (-7.0, -4.0), (168.0, 78.0), (-180.0, -90.0), (-180.0, 40.0), (100.0, -90.0))
_PLANE_CORNERS = ((0.0, 0.0), (-6.0, -6.0), (1e9, -1e9), (250.0, 95.0))
_PLANE_STEPS = (1.0, 1.0, 0.25, 2.0**60, 2.0**-40)
_MAX_SPAN = 12


class World(NamedTuple):
    """Subscriptions and messages that fit each other: one kind of ids, one kind of keywords, one space."""

    subscriptions: list[Subscription]
    messages: list[Message]


def random_world(seed: int | Sequence[int], size: int = 30, space: str = "lonlat") -> World:
    """About `size` subscriptions and half as many messages; the same for the same seed."""
    return WorldMaker(np.random.default_rng(seed), space).world(size)


class WorldMaker:
    """Draws from one generator: first the traits of the world, then any number of subscriptions and messages."""

    def __init__(self, rng: np.random.Generator, space: str) -> None:
        self.rng = rng
        self.space = space
        corners = _LONLAT_CORNERS if space == "lonlat" else _PLANE_CORNERS
        self.step = 1.0 if space == "lonlat" else _PLANE_STEPS[self.below(len(_PLANE_STEPS))]
        x, y = corners[self.below(len(corners))]
        # Steps are powers of two, so that every grid point is an exact float.
        self.corner = (x * self.step, y * self.step)
        self.span = 1 + self.below(_MAX_SPAN)
        self.has_numbers = self.chance(0.15)
        self.has_text_ids = self.chance(0.4)
        # An engine has a shorter code path for worlds of boxes and keywords only.
        self.is_plain = self.has_numbers or self.chance(0.4)
        # Covering a polygon takes a hundred times as long as a box: not in every world.
        self.has_polygons = self.chance(0.2)
        self.n_ids = 0

    def world(self, size: int) -> World:
        return World(self.subscriptions(size), self.messages(max(size // 2, 1)))

    def subscriptions(self, n: int) -> list[Subscription]:
        return [self.subscription(self.new_id("s")) for _ in range(n)]

    def messages(self, n: int) -> list[Message]:
        return [self.message(self.new_id("m")) for _ in range(n)]

    def new_id(self, prefix: str) -> Id:
        self.n_ids += 1
        if self.has_text_ids:
            return f"{prefix}é{self.n_ids}" if self.n_ids % 7 == 0 else f"{prefix}{self.n_ids}"
        return (self.n_ids - 5) * (10**15 if self.n_ids % 11 == 0 else 1)

    def subscription(self, id: Id) -> Subscription:
        if not self.is_plain and self.chance(0.35):
            return Subscription(id, interest=self._interest(), region=self.region())
        return Subscription(
            id, keywords=self.keywords(self.below(6) if self.chance(0.5) else self.below(3)), region=self.region()
        )

    def message(self, id: Id) -> Message:
        words = self.keywords(self.below(9))
        if words and self.chance(0.2):
            words.append(words[0])
        if self.chance(0.25):
            unknown: Sequence[Keyword] = _UNKNOWN_NUMBERS if self.has_numbers else _UNKNOWN_WORDS
            words.append(unknown[self.below(3)])
        return Message(id, keywords=words, location=self._location())

    def region(self) -> Region | None:
        kind = self.below(12)
        if kind == 0:
            return None
        if self.is_plain or kind < 6:
            return self._box()
        if kind < 9 or not self.has_polygons:
            return self._circle()
        if kind == 9:
            return self._triangle()
        return self._framed() if kind == 10 else self._pair_of_boxes()

    def _location(self) -> tuple[float, float] | Box:
        if self.chance(0.3):
            return self._box()
        if self.chance(0.08):
            return self._far_point()
        return self.point()

    def _far_point(self) -> tuple[float, float]:
        if self.space == "lonlat":
            return (-self.corner[0] / 2 - 60.0, -self.corner[1] / 2 + 30.0)
        return (self.corner[0] + 1e6 * self.step, self.corner[1] - 1e6 * self.step)

    def point(self) -> tuple[float, float]:
        x, y = self.rng.integers(0, self.span + 1, 2).tolist()
        return self._at(x, y)

    def _at(self, x: float, y: float) -> tuple[float, float]:
        return self.corner[0] + x * self.step, self.corner[1] + y * self.step

    def _box(self) -> Box:
        xa, ya, xb, yb = self.rng.integers(0, self.span + 1, 4).tolist()
        if self.chance(0.15):
            xb = xa
        if self.chance(0.15):
            yb = ya
        return Box(*self._at(min(xa, xb), min(ya, yb)), *self._at(max(xa, xb), max(ya, yb)))

    def _circle(self) -> Circle:
        x, y = self.point()
        if self.space == "lonlat":
            # Never the distance of two grid points, where the last bit would decide.
            return Circle(x, y, 1.0 + 30_011.7 * self.below(60))
        return Circle(x, y, self.step * self.below(2 * _MAX_SPAN) / 2)

    def _triangle(self) -> Region:
        xa, ya, xb, yb, xc, yc = self.rng.integers(0, self.span + 1, 6).tolist()
        if (xb - xa) * (yc - ya) == (xc - xa) * (yb - ya):
            return self._box()
        return Polygon([[self._at(xa, ya), self._at(xb, yb), self._at(xc, yc)]])

    def _framed(self) -> Region:
        """A rectangle with one or two holes; the holes meet in a corner."""
        if self.span < 4:
            return self._triangle()
        x0, y0 = self.rng.integers(0, self.span - 3, 2).tolist()
        x1 = x0 + 4 + self.below(self.span - 3 - x0)
        y1 = y0 + 4 + self.below(self.span - 3 - y0)
        holes = [self._ring(x0 + 1, y0 + 1, x0 + 2, y0 + 2)]
        if self.chance(0.5):
            holes.append(self._ring(x0 + 2, y0 + 2, x1 - 1, y1 - 1))
        return Polygon([self._ring(x0, y0, x1, y1), *holes])

    def _pair_of_boxes(self) -> Region:
        """Two rectangles that are apart or meet in a corner."""
        if self.span < 2:
            return self._box()
        x = 1 + self.below(self.span - 1)
        y = 1 + self.below(self.span - 1)
        gap = 0 if self.chance(0.5) else 0.5
        return MultiPolygon([[self._ring(0, 0, x - gap, y)], [self._ring(x, y, self.span, self.span)]])

    def _ring(self, x0: float, y0: float, x1: float, y1: float) -> list[tuple[float, float]]:
        return [self._at(x0, y0), self._at(x1, y0), self._at(x1, y1), self._at(x0, y1)]

    def keywords(self, n: int) -> list[Any]:
        choices: Sequence[Keyword] = NUMBERS if self.has_numbers else WORDS
        n = min(n, len(choices))
        return [choices[i] for i in self.rng.choice(len(choices), n, replace=False, p=_SKEW).tolist()]

    def _interest(self) -> str:
        words = self.keywords(1 + self.below(4))
        literals = [f"NOT {word}" if self.chance(0.3) else word for word in words]
        if len(literals) > 2 and self.chance(0.5):
            return f"({literals[0]} OR {literals[1]}) AND NOT ({' AND '.join(literals[2:])})"
        return (" OR " if self.chance(0.5) else " AND ").join(literals)

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""
        return int(self.rng.integers(n))

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def some(self, ids: Sequence[Id], share: float) -> list[Id]:
        """Each id with this probability."""
        return [id for id, drawn in zip(ids, self.rng.random(len(ids)).tolist(), strict=True) if drawn < share]


def subscription_table(subscriptions: Sequence[Subscription]) -> pa.Table:
    """The same subscriptions as a table; the columns `interest` and `region` only where some row needs them."""
    boxes = [s.region.bounds if isinstance(s.region, Box) else (None,) * 4 for s in subscriptions]
    columns: dict[str, Any] = {"id": _ids(subscriptions), "keywords": _keyword_lists([s.keywords for s in subscriptions])}
    for position, name in enumerate(("x0", "y0", "x1", "y1")):
        columns[name] = pa.array([bounds[position] for bounds in boxes], pa.float64())
    if any(s.interest is not None for s in subscriptions):
        texts = [None if s.interest is None else s.interest.text for s in subscriptions]
        columns["interest"] = pa.array(texts, pa.string())
    if any(not isinstance(s.region, (Box, type(None))) for s in subscriptions):
        columns["region"] = pa.array([_geojson(s.region) for s in subscriptions], pa.string())
    return pa.table(columns)


def message_table(messages: Sequence[Message], as_points: bool = False, times: Sequence[str] = ()) -> pa.Table:
    """The same messages as a table of boxes, or of points if they all are; `times` of "time" and "expires"."""
    columns = {"id": _ids(messages), "keywords": _keyword_lists([m.keywords or () for m in messages])}
    for name in ("x0", "y0") if as_points else ("x0", "y0", "x1", "y1"):
        columns[name[0] if as_points else name] = pa.array([getattr(m.box, name) for m in messages], pa.float64())
    for name in times:
        columns[name] = pa.array([getattr(m, name) for m in messages], pa.float64())
    return pa.table(columns)


def move_table(moves: Mapping[Id, Region | None]) -> pa.Table:
    """The same moves as a table; all are to boxes."""
    boxes = [region for region in moves.values() if isinstance(region, Box)]
    ids = pa.array(list(moves), pa.string() if isinstance(next(iter(moves)), str) else pa.int64())
    return pa.table({"id": ids, **{name: [getattr(box, name) for box in boxes] for name in ("x0", "y0", "x1", "y1")}})


def ranked_subscription_table(subscriptions: Sequence[RankedSubscription]) -> pa.Table:
    """The same ranked subscriptions as a table."""
    columns: dict[str, Any] = {
        "id": [s.id for s in subscriptions],
        "keywords": _keyword_lists([s.keywords for s in subscriptions]),
        "x": [s.location[0] for s in subscriptions],
        "y": [s.location[1] for s in subscriptions],
        "k": [s.k for s in subscriptions],
        "spatial_weight": [s.spatial_weight for s in subscriptions],
    }
    return pa.table(columns)


def _ids(rows: Sequence[Subscription | Message]) -> pa.Array:
    has_text = any(isinstance(row.id, str) for row in rows)
    return pa.array([row.id for row in rows], pa.string() if has_text else pa.int64())


def _keyword_lists(lists: Sequence[Sequence[Keyword]]) -> pa.Array:
    has_numbers = any(isinstance(word, int) for words in lists for word in words)
    return pa.array([list(words) for words in lists], pa.list_(pa.int32() if has_numbers else pa.string()))


def _geojson(region: Region | None) -> str | None:
    return None if region is None or isinstance(region, Box) else json.dumps(region.__geo_interface__)
