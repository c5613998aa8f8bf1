"""Space in columns and rows: one monotone function for clauses and messages alike.

If two intervals share a point, the columns of their ends enclose the column of that point: they share a column. So borders,
points outside the frame and sides without bounds need no case of their own; the outermost columns reach to infinity.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nearcast.papers.boolean.pivot_quadtree.layout import MessageCells

# Sides beyond are taken for "no bound" and do not stretch the frame.
_UNBOUNDED = 1e300
_NARROWEST = 1e-290


def frame_around(boxes: NDArray[np.float64], n_columns: int) -> NDArray[np.float64]:
    """The frame of a quadtree over `boxes` (rows of x0, y0, x1, y1): around all of their bounded sides."""
    return np.array([*_axis(boxes[:, 0::2].ravel(), n_columns), *_axis(boxes[:, 1::2].ravel(), n_columns)])


def _axis(sides: NDArray[np.float64], n_columns: int) -> tuple[float, float, float]:
    bounded = sides[np.abs(sides) < _UNBOUNDED]
    low, high = (float(bounded.min()), float(bounded.max())) if len(bounded) else (0.0, 0.0)
    # Half the width: the whole one may overflow.
    half = high * 0.5 - low * 0.5
    return low, high, n_columns / half if half > _NARROWEST else 0.0


def cells_of(frame: NDArray[np.float64], n_columns: int, sides: Sequence[NDArray[np.float64]]) -> MessageCells:
    """The columns and rows of the ends of boxes with the sides x0, y0, x1, y1."""
    axes = (frame[:3].tolist(), frame[3:].tolist()) * 2
    return MessageCells(*(_columns(axis, n_columns, side) for axis, side in zip(axes, sides, strict=True)))


def _columns(axis: list[float], n_columns: int, value: NDArray[np.float64]) -> NDArray[np.int32]:
    low, high, per_half_unit = axis
    column = ((np.clip(value, low, high) * 0.5 - low * 0.5) * per_half_unit).astype(np.int32)
    return np.minimum(column, n_columns - 1)
