"""Locations of synthetic messages: a mixture of streets, towns and single spots, plus a uniform share.

Every part is a segment with a spread around it. A town is a segment of length zero; a spot has no spread either.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.compile import kernel
from nearcast.workloads.randomness import (
    MASK,
    UNIT,
    AliasTable,
    StreamKey,
    alias_table,
    choose_entry,
    draw,
    high_key,
    low_key,
    normal_pair,
)

# After this many misses of the unit square the last point is moved onto its border.
MAX_TRIES = 24
SLOTS_PER_TRY = 5
GOLDEN_RATIO = 0.6180339887498949
# Gives about 30 matches per message for 1M subscriptions of `tweets` at its defaults, the figure the index targets were set at.
FIRST_SPREAD_LEVEL = 0.62


class LocationMixture(NamedTuple):
    """A mixture of segments in the unit square."""

    x0: NDArray[np.float64]  # float64[n_parts], start of the segment
    y0: NDArray[np.float64]
    x1: NDArray[np.float64]  # float64[n_parts], its end
    y1: NDArray[np.float64]
    spread: NDArray[np.float64]  # float64[n_parts], standard deviation around it
    part: AliasTable  # how often each segment is chosen
    uniform_bound: int  # a 32-bit draw below it gives a uniform location


def towns(n_towns: int, seed: int, decay: float = 0.9, uniform_share: float = 0.05) -> LocationMixture:
    """Gaussian towns of Zipf-like size `rank ** -decay`, with spreads of 0.2 % to 1.2 % of the side.

    The spreads are spaced evenly (steps of the golden ratio) and not drawn: the few largest towns decide how many matches a
    message has, and independent draws changed that number by a factor of three from seed to seed.
    """
    rng = np.random.default_rng(seed)
    x, y = rng.random(n_towns), rng.random(n_towns)
    level = (FIRST_SPREAD_LEVEL + np.arange(n_towns) * GOLDEN_RATIO) % 1.0
    spread = np.asarray(0.002 * 6.0**level, np.float64)
    return _mixture(x, y, x, y, spread, np.arange(1, n_towns + 1, dtype=np.float64) ** -decay, uniform_share)


def lanes(n_lanes: int, n_bends: int, seed: int, spread: float = 0.001) -> LocationMixture:
    """Routes between crowded ends, each a chain of straight segments. Busier routes come first."""
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


def spots(n_spots: int, n_towns: int, seed: int, decay: float = 0.75) -> LocationMixture:
    """Fixed addresses in towns. Address r has the weight `r ** -decay`."""
    x, y = locations_of(towns(n_towns, seed), StreamKey(seed & MASK, 0), np.arange(n_spots))
    return _mixture(x, y, x, y, np.zeros(n_spots), np.arange(1, n_spots + 1, dtype=np.float64) ** -decay, 0.0)


def locations_of(
    mixture: LocationMixture, key: StreamKey, numbers: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The location of every number."""
    x, y = np.empty(numbers.size), np.empty(numbers.size)
    fill_locations(mixture, key, numbers, x, y)
    return x, y


def _mixture(
    x0: NDArray[np.float64],
    y0: NDArray[np.float64],
    x1: NDArray[np.float64],
    y1: NDArray[np.float64],
    spread: NDArray[np.float64],
    weight: NDArray[np.float64],
    uniform_share: float,
) -> LocationMixture:
    return LocationMixture(x0, y0, x1, y1, spread, alias_table(weight), int(uniform_share * MASK))


@kernel
def fill_locations(mixture: Any, key: Any, numbers: Any, x: Any, y: Any) -> None:
    """Write the location of each number: uniform, or near a random point of a random segment."""
    for row in range(numbers.size):
        low = low_key(key, numbers[row])
        high = high_key(key, numbers[row])
        if draw(low, high, 0) < mixture.uniform_bound:
            x[row] = draw(low, high, 1) * UNIT
            y[row] = draw(low, high, 2) * UNIT
        else:
            part = choose_entry(mixture.part, draw(low, high, 3), draw(low, high, 4))
            x[row], y[row] = draw_location(mixture, part, low, high)


@kernel
def draw_location(mixture: Any, part: Any, low: Any, high: Any) -> Any:
    """A random point of the unit square near segment `part`."""
    x = 0.0
    y = 0.0
    for attempt in range(1, MAX_TRIES + 1):
        slot = attempt * SLOTS_PER_TRY
        along = draw(low, high, slot) * UNIT
        dx, dy = normal_pair(draw(low, high, slot + 1), draw(low, high, slot + 2))
        x = mixture.x0[part] + along * (mixture.x1[part] - mixture.x0[part]) + mixture.spread[part] * dx
        y = mixture.y0[part] + along * (mixture.y1[part] - mixture.y0[part]) + mixture.spread[part] * dy
        if 0.0 <= x <= 1.0 and 0.0 <= y <= 1.0:
            return x, y
    return min(max(x, 0.0), 1.0), min(max(y, 0.0), 1.0)
