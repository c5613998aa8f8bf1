"""How much of what was counted lies in a box: running sums over a grid, taken as evenly spread within its cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.compile import inline_kernel, kernel


class DensityArrays(NamedTuple):
    """`mass[row * (side + 1) + column]` is what lies left of the column and below the row."""

    mass: np.ndarray  # float64[(side + 1)^2]
    frame: np.ndarray  # float64[7]: low, high, cells per half unit of x, then of y; then the side


@inline_kernel
def grid_position(value, low, high, scale, side):
    """Where a coordinate lies among `side` cells, with the part of the cell; clamped."""
    if value <= low:
        return 0.0
    if value >= high:
        return float(side)
    # Halved first: the difference of two finite numbers may not be finite.
    return min((value * 0.5 - low * 0.5) * scale, float(side))


@inline_kernel
def mass_below(mass, frame, x, y):
    """What lies left of `x` and below `y`."""
    side = int(frame[6])
    column = grid_position(x, frame[0], frame[1], frame[2], side)
    row = grid_position(y, frame[3], frame[4], frame[5], side)
    i, j = min(int(column), side - 1), min(int(row), side - 1)
    right, up = column - i, row - j
    at = j * (side + 1) + i
    low = mass[at] + right * (mass[at + 1] - mass[at])
    at += side + 1
    high = mass[at] + right * (mass[at + 1] - mass[at])
    return low + up * (high - low)


@kernel
def count_places(frame, x, y, mass):
    """Add points to a grid, one in the cell to the lower left of each running sum."""
    side = int(frame[6])
    for i in range(x.size):
        column = min(int(grid_position(x[i], frame[0], frame[1], frame[2], side)), side - 1)
        row = min(int(grid_position(y[i], frame[3], frame[4], frame[5], side)), side - 1)
        mass[(row + 1) * (side + 1) + column + 1] += 1.0
