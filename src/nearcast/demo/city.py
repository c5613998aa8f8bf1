"""A simulated city: reports of the bundled sample, and neighbours, cars and desks that subscribe to them.

All bodies are those of the API, as plain dicts. Equal seeds give equal cities.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import msgspec
import numpy as np

from nearcast.workloads.moving import MovingSubscribers
from nearcast.workloads.roads import RoadNetwork
from nearcast.workloads.sample import sample_messages, sample_subscriptions

# New York: west, south, east, north.
CITY = (-74.05, 40.57, -73.75, 40.90)
LIFETIME_S = 300.0
CAR_RADIUS_M = 1500.0
# Standard deviation of a repeated report from its location, in degrees.
_SPREAD = 0.004
_CAR_INTERESTS = (
    "dog OR dogs",
    "cat OR cats",
    "dead AND animal",
    "wildlife OR squirrel OR raccoon",
    "abuse",
    "park AND NOT dead",
)
_RANKED_KEYWORDS = (["dog", "park"], ["cat", "street"], ["dead", "animal", "brooklyn"], ["bird", "pigeon"], ["abuse", "queens"])


class City:
    """The subscriptions, moves and reports that the demo sends to a server."""

    def __init__(self, n_cars: int = 60, n_ranked: int = 12, seed: int = 7) -> None:
        self._seed, self._rng = seed, np.random.default_rng(seed)
        self._cars = MovingSubscribers(RoadNetwork.generate(seed, n_across=40), n_cars, seed, speed=0.25)
        self._n_ranked = n_ranked

    def neighbours(self) -> Iterator[dict[str, Any]]:
        """Boolean subscriptions: those of the sample."""
        for row in sample_subscriptions().to_pylist():
            box = {"type": "Box", "bbox": [row["x0"], row["y0"], row["x1"], row["y1"]]}
            region = msgspec.json.decode(row["region"]) if row["region"] else box
            yield {"kind": "boolean", "id": row["id"], "interest": row["interest"], "region": region}

    def cars(self) -> Iterator[dict[str, Any]]:
        """Moving subscriptions: circles around cars."""
        for number, (lon, lat) in enumerate(self._car_positions()):
            interest = _CAR_INTERESTS[number % len(_CAR_INTERESTS)]
            region = {"type": "Circle", "coordinates": [lon, lat], "radius": CAR_RADIUS_M}
            yield {"kind": "moving", "id": f"car-{number}", "interest": interest, "region": region}

    def ranked_subscribers(self) -> Iterator[dict[str, Any]]:
        """Ranked subscriptions: the best few reports around a point."""
        west, south, east, north = CITY
        for number in range(self._n_ranked):
            location = [self._rng.uniform(west, east), self._rng.uniform(south, north)]
            words = _RANKED_KEYWORDS[number % len(_RANKED_KEYWORDS)]
            yield {"kind": "ranked", "id": f"desk-{number}", "keywords": words, "location": _point(*location), "k": 8}

    def moves(self) -> list[dict[str, Any]]:
        """Advance the cars by one time stamp; returns their new positions."""
        self._cars.advance()
        return [
            {"subscription": f"car-{number}", "location": _point(*position)}
            for number, position in enumerate(self._car_positions())
        ]

    def reports(self) -> Iterator[dict[str, Any]]:
        """Endless messages: reports of the sample in the city, again and again, each time near its location."""
        west, south, east, north = CITY
        rows = [row for row in sample_messages().to_pylist() if west <= row["x"] <= east and south <= row["y"] <= north]
        for number in count():
            row = rows[int(self._rng.integers(len(rows)))]
            lon, lat = (row[axis] + self._rng.normal(0.0, _SPREAD) for axis in ("x", "y"))
            yield {
                "id": f"report-{self._seed}-{number}",
                "text": row["text"],
                "location": _point(lon, lat),
                "lifetime": LIFETIME_S,
            }

    def _car_positions(self) -> Iterator[tuple[float, float]]:
        """The cars' positions, scaled from the unit square of their roads to the city."""
        west, south, east, north = CITY
        table = self._cars.positions()
        for x, y in zip(table["x"].to_pylist(), table["y"].to_pylist(), strict=True):
            yield west + x * (east - west), south + y * (north - south)


def _point(lon: float, lat: float) -> dict[str, Any]:
    return {"type": "Point", "coordinates": [round(float(lon), 6), round(float(lat), 6)]}
