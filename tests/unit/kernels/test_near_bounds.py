"""A bound of how near two points can be is never below how near they are."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.kernels.near_bounds import coordinates, frame_of, nearest_possible
from nearcast.kernels.relevance import proximity


@pytest.mark.parametrize(("is_lonlat", "reach"), [(True, 2e7), (True, 1e4), (True, 1e-300), (False, 1.0), (False, 1e-5)])
def test_no_point_is_nearer_than_its_bound(is_lonlat: bool, reach: float) -> None:
    rng = np.random.default_rng(3)
    n = 300
    x, y = rng.uniform(-1, 1, (2, n)) * ([[180.0], [90.0]] if is_lonlat else [[3.0], [2.0]])
    # The poles, the antimeridian, or what is far beyond everything; and near neighbours.
    x[:4], y[:4] = (-180.0, 180.0, 0.0, 90.0) if is_lonlat else (1e300, -1e300, 5.0, 0.0), (0.0, 0.0, 90.0, -90.0)
    other_x, other_y = x[rng.permutation(n)], y[rng.permutation(n)]
    other_x[100:] = (
        np.clip(x[100:] + rng.normal(0, 1e-4, n - 100), -180, 180) if is_lonlat else x[100:] + rng.normal(0, 1e-5, n - 100)
    )
    other_y[100:] = y[100:]
    frame = frame_of(is_lonlat, reach, 0.5, 0.5)
    for i in range(n):
        here = np.array(coordinates(frame, x[i], y[i]))
        there = np.array(coordinates(frame, other_x[i], other_y[i])).astype(np.float32).astype(float)
        bound = nearest_possible(frame, float(((here - there) ** 2).sum()))
        near = proximity(is_lonlat, reach, x[i], y[i], other_x[i], other_y[i])
        assert near <= bound <= 1.0


def test_a_bound_tells_near_from_far() -> None:
    for is_lonlat, far in ((True, (90.0, 0.0)), (False, (0.9, 0.0))):
        frame = frame_of(is_lonlat, 1.5e7 if is_lonlat else 1.0, 0.0, 0.0)
        squared = sum((a - b) ** 2 for a, b in zip(coordinates(frame, 0.0, 0.0), coordinates(frame, *far), strict=True))
        assert nearest_possible(frame, squared) < 0.45
        assert nearest_possible(frame, 0.0) == 1.0
