"""Estimate where messages are: count those of a history, or take the clauses in their stead.

Paper: AP §5.1.1 counts in the first 5 % of the messages; §3.3.1 has a fallback by area and frequency when there is none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.messages import MessageBatch
from nearcast.kernels.layouts import ClauseArrays
from nearcast.papers.boolean.quadtrees.kernels.lists import fill_point_cells
from nearcast.papers.boolean.quadtrees.layout import MessageLocations

_LARGEST = float(np.finfo(np.float64).max)


def no_locations(max_depth: int) -> MessageLocations:
    """Nothing is known: the region is one point, and every cell is as likely as its area."""
    none = np.empty(0, np.int32)
    return MessageLocations(np.zeros(6), none, np.zeros(1, np.int64), none, np.array([max_depth, 0.0, 0.0]))


def locations_of_history(history: MessageBatch, n_anchors: int, max_depth: int) -> MessageLocations:
    """Count messages; a message with a box counts at its centre."""
    arrays = history.arrays
    x, y = arrays.x0 * 0.5 + arrays.x1 * 0.5, arrays.y0 * 0.5 + arrays.y1 * 0.5
    frame = _frame([x, y, x, y], max_depth)
    cell = _cells_of(frame, x, y, max_depth)
    lengths = np.diff(arrays.keyword_start)
    anchor = arrays.keyword.astype(np.int64) + 1
    n = len(history)
    mean = len(anchor) / max(1, n)
    return _sorted(frame, cell, anchor, np.repeat(cell, lengths), n_anchors, [max_depth, n, mean])


def locations_of_clauses(
    clauses: ClauseArrays,
    slots: NDArray[np.int32],
    anchor: NDArray[np.int32],
    n_anchors: int,
    max_depth: int,
    is_guessing: bool,
) -> MessageLocations:
    """Take the clauses for messages, as if both came from the same locations; without `is_guessing` only their region."""
    is_bounded, (x0, y0, x1, y1) = _bounded_boxes(clauses, slots)
    frame = _frame([x0, y0, x1, y1], max_depth)
    if not is_guessing:
        x0, y0, x1, y1 = (bound[:0] for bound in (x0, y0, x1, y1))
    cell = _cells_of(frame, x0 * 0.5 + x1 * 0.5, y0 * 0.5 + y1 * 0.5, max_depth)
    anchors = anchor[is_bounded][: len(cell)].astype(np.int64)
    return _sorted(frame, cell, anchors, cell, n_anchors, [max_depth, 0, 0])


def frame_of_clauses(clauses: ClauseArrays, slots: NDArray[np.int32], max_depth: int) -> NDArray[np.float64]:
    """The region of the clauses that have bounds, for grids of up to 2^max_depth columns: low, high and scale of both axes."""
    return _frame(_bounded_boxes(clauses, slots)[1], max_depth)


def _bounded_boxes(clauses: ClauseArrays, slots: NDArray[np.int32]) -> tuple[NDArray[np.bool_], list[NDArray[np.float64]]]:
    """Which clauses are bounded, and the bounds of those."""
    boxes = [clauses.x0[slots], clauses.y0[slots], clauses.x1[slots], clauses.y1[slots]]
    is_bounded = np.all([np.abs(bound) < _LARGEST for bound in boxes], axis=0)
    return is_bounded, [bound[is_bounded] for bound in boxes]


def _frame(bounds: list[NDArray[np.float64]], max_depth: int) -> NDArray[np.float64]:
    """Low, high and columns per half of a unit of both axes; an axis too narrow to divide has scale 0."""
    values: list[float] = []
    for lows, highs in ((bounds[0], bounds[2]), (bounds[1], bounds[3])):
        low, high = (float(lows.min()), float(highs.max())) if len(lows) else (0.0, 0.0)
        half = high * 0.5 - low * 0.5
        scale = (1 << max_depth) / half if half > 0.0 else 0.0
        values += [low, high, scale if scale < _LARGEST else 0.0]
    return np.array(values)


def _cells_of(frame: NDArray[np.float64], x: NDArray[np.float64], y: NDArray[np.float64], max_depth: int) -> NDArray[np.int32]:
    cell = np.empty(len(x), np.int32)
    fill_point_cells(frame, max_depth, x, y, cell)
    return cell


def _sorted(
    frame: NDArray[np.float64],
    all_cells: NDArray[np.int32],
    anchor: NDArray[np.int64],
    anchor_cells: NDArray[np.int32],
    n_anchors: int,
    facts: list[Any],
) -> MessageLocations:
    is_known = anchor < n_anchors
    keys = (anchor[is_known] << 32) | anchor_cells[is_known]
    keys.sort()
    start = np.searchsorted(keys, np.arange(n_anchors + 1, dtype=np.int64) << 32)
    anchor_cell = (keys & 0xFFFFFFFF).astype(np.int32)
    return MessageLocations(frame, np.sort(all_cells), start.astype(np.int64), anchor_cell, np.array(facts, np.float64))
