"""The frame of a grid: low, high and scale of x, then of y, as `kernels/quadtree.py:column_of` reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_LARGEST = float(np.finfo(np.float64).max)


def enclosing_frame(
    x0: NDArray[np.float64], y0: NDArray[np.float64], x1: NDArray[np.float64], y1: NDArray[np.float64], width: int
) -> Any:
    """The frame of a grid around boxes, except those that extend to the end of the plane."""
    is_bounded = np.all([np.abs(edge) < _LARGEST for edge in (x0, y0, x1, y1)], axis=0)
    values: list[float] = []
    for low_edge, high_edge in ((x0[is_bounded], x1[is_bounded]), (y0[is_bounded], y1[is_bounded])):
        low, high = (float(low_edge.min()), float(high_edge.max())) if len(low_edge) else (0.0, 0.0)
        half = high * 0.5 - low * 0.5
        scale = width / half if half * _LARGEST > width else 0.0
        values += [low, high, scale]
    return np.array(values)
