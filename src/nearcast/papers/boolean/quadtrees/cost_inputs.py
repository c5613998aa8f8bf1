"""Where messages are expected: counted in a history, or guessed from the clauses themselves.

Paper: AP §5.1.1 counts in the first 5 % of the messages; §3.3.1 has a fallback by area and frequency when there is none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.messages import MessageBatch
from nearcast.kernels.layouts import ClauseArrays
from nearcast.papers.boolean.quadtrees.kernels.lists import place_points
from nearcast.papers.boolean.quadtrees.layout import PlaceArrays

_LARGEST = float(np.finfo(np.float64).max)


def no_places(max_depth: int) -> PlaceArrays:
    """Nothing is known: a region of one point, and every cell as likely as its area."""
    none = np.empty(0, np.int32)
    return PlaceArrays(np.zeros(6), none, np.zeros(1, np.int64), none, np.array([max_depth, 0.0, 0.0]))


def places_of_history(history: MessageBatch, n_owners: int, max_depth: int) -> PlaceArrays:
    """Count messages; a message with a box counts at its centre."""
    arrays = history.arrays
    x, y = arrays.x0 * 0.5 + arrays.x1 * 0.5, arrays.y0 * 0.5 + arrays.y1 * 0.5
    frame = _frame([x, y, x, y], max_depth)
    place = _placed(frame, x, y, max_depth)
    lengths = np.diff(arrays.keyword_start)
    owner = arrays.keyword.astype(np.int64) + 1
    n = len(history)
    mean = len(owner) / max(1, n)
    return _sorted(frame, place, owner, np.repeat(place, lengths), n_owners, [max_depth, n, mean])


def places_of_clauses(
    clauses: ClauseArrays, slots: NDArray[np.int32], owner: NDArray[np.int32], n_owners: int, max_depth: int, is_guessing: bool
) -> PlaceArrays:
    """Take clauses for messages: who asks about a place sends from there. Without `is_guessing` only the region is taken."""
    is_bounded, (x0, y0, x1, y1) = _bounded_boxes(clauses, slots)
    frame = _frame([x0, y0, x1, y1], max_depth)
    if not is_guessing:
        x0, y0, x1, y1 = (side[:0] for side in (x0, y0, x1, y1))
    place = _placed(frame, x0 * 0.5 + x1 * 0.5, y0 * 0.5 + y1 * 0.5, max_depth)
    own = owner[is_bounded][: len(place)].astype(np.int64)
    return _sorted(frame, place, own, place, n_owners, [max_depth, 0, 0])


def frame_of_clauses(clauses: ClauseArrays, slots: NDArray[np.int32], max_depth: int) -> NDArray[np.float64]:
    """The region of the clauses that have bounds, for grids of up to 2^max_depth columns: low, high and scale of both axes."""
    return _frame(_bounded_boxes(clauses, slots)[1], max_depth)


def _bounded_boxes(clauses: ClauseArrays, slots: NDArray[np.int32]) -> tuple[NDArray[np.bool_], list[NDArray[np.float64]]]:
    """Which clauses have bounds, and the sides of those."""
    boxes = [clauses.x0[slots], clauses.y0[slots], clauses.x1[slots], clauses.y1[slots]]
    is_bounded = np.all([np.abs(side) < _LARGEST for side in boxes], axis=0)
    return is_bounded, [side[is_bounded] for side in boxes]


def _frame(sides: list[NDArray[np.float64]], max_depth: int) -> NDArray[np.float64]:
    """Low, high and columns per half of a unit of both axes; an axis too narrow to divide has scale 0."""
    values: list[float] = []
    for low_side, high_side in ((sides[0], sides[2]), (sides[1], sides[3])):
        low, high = (float(low_side.min()), float(high_side.max())) if len(low_side) else (0.0, 0.0)
        half = high * 0.5 - low * 0.5
        scale = (1 << max_depth) / half if half > 0.0 else 0.0
        values += [low, high, scale if scale < _LARGEST else 0.0]
    return np.array(values)


def _placed(frame: NDArray[np.float64], x: NDArray[np.float64], y: NDArray[np.float64], max_depth: int) -> NDArray[np.int32]:
    place = np.empty(len(x), np.int32)
    place_points(frame, max_depth, x, y, place)
    return place


def _sorted(
    frame: NDArray[np.float64],
    place: NDArray[np.int32],
    owner: NDArray[np.int64],
    own: NDArray[np.int32],
    n_owners: int,
    facts: list[Any],
) -> PlaceArrays:
    is_known = owner < n_owners
    keys = (owner[is_known] << 32) | own[is_known]
    keys.sort()
    start = np.searchsorted(keys, np.arange(n_owners + 1, dtype=np.int64) << 32)
    own_place = (keys & 0xFFFFFFFF).astype(np.int32)
    return PlaceArrays(frame, np.sort(place), start.astype(np.int64), own_place, np.array(facts, np.float64))
