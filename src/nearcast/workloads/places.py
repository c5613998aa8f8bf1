"""Where synthetic messages come from: a mixture of streets, towns and single spots, plus a share from anywhere.

Every part is a segment with a spread around it: a town is a segment of length zero, a spot has no spread either.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.compile import kernel
from nearcast.workloads.alias import AliasTable, alias_table, choose
from nearcast.workloads.randomness import MASK, UNIT, StreamKey, draw, lane_of, normal_pair, twist_of

# After so many misses of the unit square the last try is moved onto its border.
MAX_TRIES = 24
SLOTS_PER_TRY = 5
GOLDEN_RATIO = 0.6180339887498949
# Gives about 30 matches per message for 1M subscriptions of `tweets` at its defaults, the figure the index targets were set at.
FIRST_SPREAD_LEVEL = 0.62


class Places(NamedTuple):
    """A mixture of segments in the unit square."""

    x0: NDArray[np.float64]  # float64[n_parts], start of the segment
    y0: NDArray[np.float64]
    x1: NDArray[np.float64]  # float64[n_parts], its end
    y1: NDArray[np.float64]
    spread: NDArray[np.float64]  # float64[n_parts], standard deviation around it
    part: AliasTable  # how often each segment is chosen
    anywhere: int  # of 2**32 messages, how many come from a uniform place


def towns(n_towns: int, seed: int, decay: float = 0.9, anywhere: float = 0.05) -> Places:
    """Gaussian towns of Zipf-like size `rank ** -decay`, spread 0.2 % to 1.2 % of the side.

    The spreads are spaced evenly (steps of the golden ratio) rather than drawn: the few largest towns decide how many matches
    a message has, and independent draws moved that number by a factor of three from seed to seed.
    """
    rng = np.random.default_rng(seed)
    x, y = rng.random(n_towns), rng.random(n_towns)
    level = (FIRST_SPREAD_LEVEL + np.arange(n_towns) * GOLDEN_RATIO) % 1.0
    spread = np.asarray(0.002 * 6.0**level, np.float64)
    return _mixture(x, y, x, y, spread, np.arange(1, n_towns + 1, dtype=np.float64) ** -decay, anywhere)


def lanes(n_lanes: int, n_bends: int, seed: int, spread: float = 0.001) -> Places:
    """Routes between crowded ends, each a chain of straight pieces; busier routes come first."""
    rng = np.random.default_rng(seed)
    ends = 0.5 + 0.18 * rng.standard_normal((n_lanes, 2, 2))
    along = np.linspace(0.0, 1.0, n_bends + 2)[None, :, None]
    points = ends[:, :1] * (1 - along) + ends[:, 1:] * along
    points[:, 1:-1] += 0.03 * rng.standard_normal((n_lanes, n_bends, 2))
    points = np.clip(points, 0.0, 1.0)
    start, stop = points[:, :-1].reshape(-1, 2), points[:, 1:].reshape(-1, 2)
    busy = np.repeat(np.arange(1, n_lanes + 1, dtype=np.float64) ** -0.8, n_bends + 1)
    weight = busy * (np.hypot(*(stop - start).T) + 1e-9)
    x0, y0, x1, y1 = (np.ascontiguousarray(column) for column in (start[:, 0], start[:, 1], stop[:, 0], stop[:, 1]))
    return _mixture(x0, y0, x1, y1, np.full(weight.size, spread), weight, 0.01)


def spots(n_spots: int, n_towns: int, seed: int, decay: float = 0.75) -> Places:
    """Fixed addresses gathered in towns; address r is named with weight `r ** -decay`."""
    x, y = place_of_numbers(towns(n_towns, seed), StreamKey(seed & MASK, 0), np.arange(n_spots))
    return _mixture(x, y, x, y, np.zeros(n_spots), np.arange(1, n_spots + 1, dtype=np.float64) ** -decay, 0.0)


def place_of_numbers(
    places: Places, key: StreamKey, numbers: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The location of every number."""
    x, y = np.empty(numbers.size), np.empty(numbers.size)
    fill_locations(places, key, numbers, x, y)
    return x, y


def _mixture(
    x0: NDArray[np.float64],
    y0: NDArray[np.float64],
    x1: NDArray[np.float64],
    y1: NDArray[np.float64],
    spread: NDArray[np.float64],
    weight: NDArray[np.float64],
    anywhere: float,
) -> Places:
    return Places(x0, y0, x1, y1, spread, alias_table(weight), int(anywhere * MASK))


@kernel
def fill_locations(places: Any, key: Any, numbers: Any, x: Any, y: Any) -> None:
    """Write the location of each number: uniform, or around a point of a chosen segment."""
    for row in range(numbers.size):
        lane = lane_of(key, numbers[row])
        twist = twist_of(key, numbers[row])
        if draw(lane, twist, 0) < places.anywhere:
            x[row] = draw(lane, twist, 1) * UNIT
            y[row] = draw(lane, twist, 2) * UNIT
        else:
            part = choose(places.part, draw(lane, twist, 3), draw(lane, twist, 4))
            x[row], y[row] = place_near(places, part, lane, twist)


@kernel
def place_near(places: Any, part: Any, lane: Any, twist: Any) -> Any:
    """A point of the unit square around segment `part`."""
    x = 0.0
    y = 0.0
    for attempt in range(1, MAX_TRIES + 1):
        slot = attempt * SLOTS_PER_TRY
        along = draw(lane, twist, slot) * UNIT
        dx, dy = normal_pair(draw(lane, twist, slot + 1), draw(lane, twist, slot + 2))
        x = places.x0[part] + along * (places.x1[part] - places.x0[part]) + places.spread[part] * dx
        y = places.y0[part] + along * (places.y1[part] - places.y0[part]) + places.spread[part] * dy
        if 0.0 <= x <= 1.0 and 0.0 <= y <= 1.0:
            return x, y
    return min(max(x, 0.0), 1.0), min(max(y, 0.0), 1.0)
