"""The frame of a grid: around most of what there is, for a few things far away must not make its cells large."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.frames import frame_of
from nearcast.moving.index import Boxes
from nearcast.moving.moving_grid.layout import FINE

_LARGEST = float(np.finfo(np.float64).max)
_SAMPLE = 100_000
# This part may lie outside on each side, if there are many.
_OUTSIDE = 0.002


def frame_around(boxes: Boxes) -> NDArray[np.float64]:
    """See `column_of`: low, high and scale of x, then of y."""
    is_bounded = np.all([np.abs(edge) < _LARGEST for edge in boxes], axis=0)
    step = max(1, len(is_bounded) // _SAMPLE)
    x0, y0, x1, y1 = (edge[is_bounded][::step] for edge in boxes)
    if len(x0) == 0:
        return np.zeros(6)
    n_out = int(_OUTSIDE * len(x0))
    low = [np.partition(edge, n_out)[n_out : n_out + 1] for edge in (x0, y0)]
    high = [np.partition(edge, len(edge) - 1 - n_out)[len(edge) - 1 - n_out :][:1] for edge in (x1, y1)]
    frame: NDArray[np.float64] = frame_of(low[0], low[1], high[0], high[1], 1 << FINE)
    return frame
