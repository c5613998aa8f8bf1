"""From where a subscription is reached: the circle around it, and the cells of the grid that the circle meets."""

from __future__ import annotations

import math

from nearcast.kernels.boxes import EARTH_RADIUS_M
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.ranked.impact_grid.layout import FINEST

NOWHERE, EVERYWHERE = -1.0, -2.0
# More than rounding adds to a bound of a score, and to a length in the plane or on the sphere, relatively.
SLACK = 1e-7
_WIDER = 1.0 + 1e-6
_N_FINEST = 1 << FINEST


@inline_kernel
def radius_of(grid, weight, text, floor):
    """How far a message may be that reaches the floor with this similarity; NOWHERE or EVERYWHERE."""
    left = (1.0 - weight) * text - (floor - weight) + SLACK
    if left < 0.0:
        return NOWHERE
    if left >= weight:
        return EVERYWHERE
    return grid.max_distance * (left / weight) * _WIDER


@inline_kernel
def finest_x(grid, x):
    """The column of finest cells of a coordinate, the outermost for what is outside."""
    return int(min(max((float(x) - grid.x) * grid.x_scale, 0.0), _N_FINEST - 1.0))


@inline_kernel
def finest_y(grid, y):
    return int(min(max((float(y) - grid.y) * grid.y_scale, 0.0), _N_FINEST - 1.0))


@kernel
def cells_around(grid, x, y, radius):
    """The columns and rows of finest cells that a circle meets: first and last column, first and last row."""
    x, y = float(x), float(y)
    if not grid.is_lonlat:
        wide = radius + (abs(x) + abs(y)) * 1e-9
        return finest_x(grid, x - wide), finest_x(grid, x + wide), finest_y(grid, y - wide), finest_y(grid, y + wide)
    arc = radius / EARTH_RADIUS_M * _WIDER + 1e-9
    high = math.degrees(arc) * _WIDER + 1e-9
    if y - high <= -90.0 or y + high >= 90.0:
        return 0, _N_FINEST - 1, finest_y(grid, y - high), finest_y(grid, y + high)
    wide = math.degrees(math.asin(min(1.0, math.sin(arc) / math.cos(math.radians(y))))) * _WIDER + 1e-9
    if x - wide <= -180.0 or x + wide >= 180.0:
        # Around the back of the map: all columns.
        return 0, _N_FINEST - 1, finest_y(grid, y - high), finest_y(grid, y + high)
    return finest_x(grid, x - wide), finest_x(grid, x + wide), finest_y(grid, y - high), finest_y(grid, y + high)


@inline_kernel
def is_met(grid, x, y, radius, column, row, bits):
    """Whether a circle of the plane may meet a cell with so many bits; one of the sphere meets all those around it."""
    if grid.is_lonlat:
        return True
    shift = FINEST - bits
    last = (1 << bits) - 1
    width, height = (1 << shift) / grid.x_scale, (1 << shift) / grid.y_scale
    dx = dy = 0.0
    # The outermost cells go on without end.
    if column > 0:
        dx = max(dx, grid.x + column * width - x)
    if column < last:
        dx = max(dx, x - (grid.x + (column + 1) * width))
    if row > 0:
        dy = max(dy, grid.y + row * height - y)
    if row < last:
        dy = max(dy, y - (grid.y + (row + 1) * height))
    wide = radius + (abs(x) + abs(y) + width + height) * 1e-9
    return dx * dx + dy * dy <= wide * wide
