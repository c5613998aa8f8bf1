"""What messages are expected: counted in a history, or guessed from the clauses themselves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.boolean.frequency_grid.layout import ExpectationArrays
from nearcast.columns.messages import MessageBatch
from nearcast.kernels.layouts import ClauseArrays

_LARGEST = float(np.finfo(np.float64).max)
_SAMPLE = 100_000
# One in this many places lies beyond the frame on each side: a stray place must not make all cells too wide.
_STRAY = 1000
_FINEST_COUNTS = 10
# A keyword the history never showed may still come: it counts as this much of one message.
_UNSEEN = 0.3
# Messages have more keywords than subscriptions name.
_KEYWORDS_PER_NAMED = 3.0


def expect_history(history: MessageBatch, n_owners: int, max_level: int) -> ExpectationArrays:
    """Count messages; a message with a box counts at its centre."""
    arrays, n = history.arrays, len(history)
    keyword = arrays.keyword[arrays.keyword < n_owners - 1]
    hit = np.concatenate([[float(n)], np.bincount(keyword, minlength=n_owners - 1)])
    x, y = arrays.x0 * 0.5 + arrays.x1 * 0.5, arrays.y0 * 0.5 + arrays.y1 * 0.5
    return _expectation(np.maximum(hit, _UNSEEN) / n, x, y, max_level)


def expect_clauses(
    clauses: ClauseArrays, slots: NDArray[np.int32], frequency: NDArray[np.int32], max_level: int
) -> ExpectationArrays:
    """Take clauses for messages: who asks about a place sends from there."""
    sampled = slots[:: max(1, len(slots) // _SAMPLE)]
    sides = [side[sampled] for side in (clauses.x0, clauses.y0, clauses.x1, clauses.y1)]
    is_bounded = np.all([np.abs(side) < _LARGEST for side in sides], axis=0)
    x0, y0, x1, y1 = (side[is_bounded] for side in sides)
    hit = np.minimum(1.0, np.maximum(frequency * _KEYWORDS_PER_NAMED, _UNSEEN) / max(1, len(slots)))
    return _expectation(np.concatenate([[1.0], hit]), x0 * 0.5 + x1 * 0.5, y0 * 0.5 + y1 * 0.5, max_level)


def widened(expected: ExpectationArrays, n_owners: int) -> ExpectationArrays:
    """The same with room for keywords that came later: each as likely as the least likely before."""
    missing = n_owners - len(expected.hit)
    if missing <= 0:
        return expected
    return expected._replace(hit=np.concatenate([expected.hit, np.full(missing, expected.hit.min(), np.float32)]))


def _expectation(hit: NDArray[np.float64], x: NDArray[np.float64], y: NDArray[np.float64], max_level: int) -> ExpectationArrays:
    frame = np.array([*_axis(x, max_level), *_axis(y, max_level)])
    # About one place in each cell is as fine as it is worth counting.
    n_levels = min(_FINEST_COUNTS, max_level, (max(1, len(x)).bit_length() + 1) // 2)
    n = 1 << n_levels
    shift = max_level - n_levels
    cell = (_columns(x, frame[:3], max_level) >> shift) * n + (_columns(y, frame[3:], max_level) >> shift)
    counts = np.bincount(cell, minlength=n * n).reshape(n, n) / max(1, len(x))
    below = np.zeros((n + 1, n + 1))
    below[1:, 1:] = counts.cumsum(axis=0).cumsum(axis=1)
    return ExpectationArrays(hit.astype(np.float32), below.astype(np.float32).ravel(), frame)


def _axis(values: NDArray[np.float64], max_level: int) -> tuple[float, float, float]:
    """Low, high, and columns per half of a unit; an axis too narrow to divide has scale 0."""
    sample = np.sort(values[:: max(1, len(values) // _SAMPLE)])
    if len(sample) == 0:
        return 0.0, 0.0, 0.0
    cut = len(sample) // _STRAY
    low, high = float(sample[cut]), float(sample[len(sample) - 1 - cut])
    half = high * 0.5 - low * 0.5
    scale = (1 << max_level) / half if half > 0.0 else 0.0
    return low, high, scale if scale < _LARGEST else 0.0


def _columns(values: NDArray[np.float64], axis: NDArray[np.float64], max_level: int) -> NDArray[np.int64]:
    low, high, scale = axis
    inner = (np.clip(values, low, high) * 0.5 - low * 0.5) * scale
    columns: NDArray[np.int64] = np.minimum(inner, (1 << max_level) - 1).astype(np.int64)
    return columns
