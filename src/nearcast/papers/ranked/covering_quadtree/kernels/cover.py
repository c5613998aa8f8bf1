"""The cells that cover the plane for a subscription: the cell around it, cut so many times, and its sisters of every depth."""

from __future__ import annotations

import math

from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.kernels.quadtree import cell_code, column_of
from nearcast.papers.ranked.covering_quadtree.layout import QUARTERS
from nearcast.papers.ranked.kernels.score_bounds import distance_to_box, nearness, rounded_up

_KEYWORD_BITS = 32
# Cells are a little wider than they are, for what rounding may do to their borders: of their frame, and of its coordinates.
_OF_FRAME, _OF_COORDINATES = 1e-9, 2e-15


@inline_kernel
def column_at(value, low, high, levels):
    """The column of a coordinate at the greatest depth."""
    half = high * 0.5 - low * 0.5
    return column_of(value, low, high, (1 << levels) / half if half > 0.0 else 0.0, 1 << levels)


@inline_kernel
def list_key(depth, column, row, keyword):
    """The number that names a cell and a keyword."""
    return (cell_code(depth, column, row) << _KEYWORD_BITS) | keyword


@kernel
def border(low, high, column, depth, is_open):
    """Between a column and the one before it; without end before the first one and behind the last one."""
    if is_open and column == 0:
        return -math.inf
    if is_open and column == 1 << depth:
        return math.inf
    share = column / (1 << depth)
    return low * (1.0 - share) + high * share


@kernel
def margin(low, high):
    return _OF_FRAME * (high * 0.5 - low * 0.5) + _OF_COORDINATES * max(abs(low), abs(high))


@kernel
def nearness_of_cell(cover, x, y, depth, column, row):
    """At least the proximity of anything in a cell to a point."""
    is_open = not cover.is_lonlat
    wide, high = margin(cover.x0, cover.x1), margin(cover.y0, cover.y1)
    x0 = border(cover.x0, cover.x1, column, depth, is_open) - wide
    x1 = border(cover.x0, cover.x1, column + 1, depth, is_open) + wide
    y0 = border(cover.y0, cover.y1, row, depth, is_open) - high
    y1 = border(cover.y0, cover.y1, row + 1, depth, is_open) + high
    distance = distance_to_box(cover.is_lonlat, x, y, x0, y0, x1, y1)
    return nearness(distance, cover.max_distance)


@kernel
def write_keys(cover, subscribers, numbers, keys):
    """Write the keys of all lists that subscriptions belong to; returns how many."""
    n = 0
    for i in range(numbers.size):
        s = numbers[i]
        column = column_at(subscribers.x[s], cover.x0, cover.x1, cover.levels)
        row = column_at(subscribers.y[s], cover.y0, cover.y1, cover.levels)
        first = subscribers.first[s]
        for depth in range(1, cover.levels + 1):
            own_column, own_row = column >> (cover.levels - depth), row >> (cover.levels - depth)
            for quarter in range(QUARTERS):
                across, up = (own_column & ~1) | (quarter & 1), (own_row & ~1) | (quarter >> 1)
                if depth < cover.levels and across == own_column and up == own_row:
                    continue
                for at in range(first, first + subscribers.n_words[s]):
                    keys[n] = list_key(depth, across, up, int(subscribers.keyword[at]))
                    n += 1
    return n


@kernel
def write_nearness(cover, subscribers, numbers, near):
    """Write how much each cell around a subscription, and each of its sisters, can add to a score by its place."""
    per_subscription = cover.levels * QUARTERS
    for i in range(numbers.size):
        s = numbers[i]
        x, y, weight = subscribers.x[s], subscribers.y[s], subscribers.spatial_weight[s]
        column = column_at(x, cover.x0, cover.x1, cover.levels)
        row = column_at(y, cover.y0, cover.y1, cover.levels)
        for depth in range(1, cover.levels + 1):
            own_column, own_row = column >> (cover.levels - depth), row >> (cover.levels - depth)
            for quarter in range(QUARTERS):
                across, up = (own_column & ~1) | (quarter & 1), (own_row & ~1) | (quarter >> 1)
                at = s * per_subscription + (depth - 1) * QUARTERS + quarter
                near[at] = rounded_up(weight * nearness_of_cell(cover, x, y, depth, across, up))
