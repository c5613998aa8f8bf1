"""Estimate the messages to come: count those of a history, or take the clauses in their stead."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.boolean.frequency_grid.layout import MessageEstimate
from nearcast.columns.messages import MessageBatch
from nearcast.kernels.layouts import ClauseArrays

_LARGEST = float(np.finfo(np.float64).max)
_SAMPLE = 100_000
# One in this many locations is left out of the frame on each side: an outlier must not make all cells too wide.
_OUTLIERS = 1000
_FINEST_COUNTS = 10
# A keyword that no message of the history has may still come: it counts as this much of one message.
_UNSEEN = 0.3
# Messages have more keywords than subscriptions ask for.
_KEYWORDS_PER_REQUIRED = 3.0


def estimate_from_history(history: MessageBatch, n_anchors: int, max_level: int) -> MessageEstimate:
    """Count the messages of a history; a message with a box counts at its centre."""
    arrays, n = history.arrays, len(history)
    keyword = arrays.keyword[arrays.keyword < n_anchors - 1]
    keyword_share = np.concatenate([[float(n)], np.bincount(keyword, minlength=n_anchors - 1)])
    x, y = arrays.x0 * 0.5 + arrays.x1 * 0.5, arrays.y0 * 0.5 + arrays.y1 * 0.5
    return _estimate(np.maximum(keyword_share, _UNSEEN) / n, x, y, max_level)


def estimate_from_clauses(
    clauses: ClauseArrays, slots: NDArray[np.int32], frequency: NDArray[np.int32], max_level: int
) -> MessageEstimate:
    """Take the clauses for messages: subscribers and publishers are assumed to be in the same locations."""
    sampled = slots[:: max(1, len(slots) // _SAMPLE)]
    bounds = [bound[sampled] for bound in (clauses.x0, clauses.y0, clauses.x1, clauses.y1)]
    is_bounded = np.all([np.abs(bound) < _LARGEST for bound in bounds], axis=0)
    x0, y0, x1, y1 = (bound[is_bounded] for bound in bounds)
    keyword_share = np.minimum(1.0, np.maximum(frequency * _KEYWORDS_PER_REQUIRED, _UNSEEN) / max(1, len(slots)))
    return _estimate(np.concatenate([[1.0], keyword_share]), x0 * 0.5 + x1 * 0.5, y0 * 0.5 + y1 * 0.5, max_level)


def resized_estimate(estimate: MessageEstimate, n_anchors: int) -> MessageEstimate:
    """The same for more keywords: later ones are as likely as the least likely before."""
    missing = n_anchors - len(estimate.keyword_share)
    if missing <= 0:
        return estimate
    return estimate._replace(
        keyword_share=np.concatenate([estimate.keyword_share, np.full(missing, estimate.keyword_share.min(), np.float32)])
    )


def _estimate(
    keyword_share: NDArray[np.float64], x: NDArray[np.float64], y: NDArray[np.float64], max_level: int
) -> MessageEstimate:
    frame = np.array([*_axis(x, max_level), *_axis(y, max_level)])
    # Counts finer than about one location per cell are of no use.
    n_levels = min(_FINEST_COUNTS, max_level, (max(1, len(x)).bit_length() + 1) // 2)
    n = 1 << n_levels
    shift = max_level - n_levels
    cell = (_columns(x, frame[:3], max_level) >> shift) * n + (_columns(y, frame[3:], max_level) >> shift)
    counts = np.bincount(cell, minlength=n * n).reshape(n, n) / max(1, len(x))
    share_below = np.zeros((n + 1, n + 1))
    share_below[1:, 1:] = counts.cumsum(axis=0).cumsum(axis=1)
    return MessageEstimate(keyword_share.astype(np.float32), share_below.astype(np.float32).ravel(), frame)


def _axis(values: NDArray[np.float64], max_level: int) -> tuple[float, float, float]:
    """Low, high, and columns per half of a unit; the scale of an axis too narrow to divide is 0."""
    sample = np.sort(values[:: max(1, len(values) // _SAMPLE)])
    if len(sample) == 0:
        return 0.0, 0.0, 0.0
    cut = len(sample) // _OUTLIERS
    low, high = float(sample[cut]), float(sample[len(sample) - 1 - cut])
    half = high * 0.5 - low * 0.5
    scale = (1 << max_level) / half if half > 0.0 else 0.0
    return low, high, scale if scale < _LARGEST else 0.0


def _columns(values: NDArray[np.float64], axis: NDArray[np.float64], max_level: int) -> NDArray[np.int64]:
    low, high, scale = axis
    inner = (np.clip(values, low, high) * 0.5 - low * 0.5) * scale
    columns: NDArray[np.int64] = np.minimum(inner, (1 << max_level) - 1).astype(np.int64)
    return columns
