"""Estimate which keywords messages have and where they are, from a history, or else from the clauses.

Paper: §3.3.1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.messages import MessageBatch
from nearcast.kernels.keyword_sets import count_keywords
from nearcast.kernels.layouts import ClauseArrays
from nearcast.papers.boolean.adaptive_tree.kernels.by_space import count_points
from nearcast.papers.boolean.adaptive_tree.layout import NO_RANK, DensityArrays

_LARGEST = float(np.finfo(np.float64).max)
# How many messages the frequency among the clauses is worth against those counted in the history.
_PRIOR_MESSAGES = 16.0
_LEAST_LIKELIHOOD = 1e-9
_LARGEST_SIDE = 512
_POINTS_PER_CELL = 8
# Share of the messages that may come from anywhere in the region, so that no cell is free.
_ANYWHERE = 0.05


class HistoryArrays(NamedTuple):
    """Counts of past messages; `n` = messages, and their keywords in all; zeros if there was no history."""

    n_with: NDArray[np.int64]  # int64[n_keywords]: messages that had the keyword
    n: NDArray[np.int64]  # int64[2]


def no_history() -> HistoryArrays:
    return HistoryArrays(np.zeros(0, np.int64), np.zeros(2, np.int64))


def count_history(history: MessageBatch) -> HistoryArrays:
    count = np.zeros(history.n_keywords, np.int64)
    count_keywords(history.arrays.keyword, count)
    return HistoryArrays(count, np.array([len(history), len(history.arrays.keyword)], np.int64))


def likelihoods(
    rank: NDArray[np.int32], frequency: NDArray[np.int64], history: HistoryArrays, message_length: float
) -> NDArray[np.float32]:
    """The share of messages that have a keyword, by rank; the last element is for keywords that come later.

    Without a history it is the keyword's share among all keywords of the clauses, times the keywords of a message: each is a
    chance to have it. Paper: only the share, as if a message had one keyword.
    """
    n_messages, n_words = history.n.tolist()
    mean = n_words / n_messages if n_messages else message_length
    likely = np.minimum(1.0, frequency / max(1, int(frequency.sum())) * mean)
    if n_messages:
        n_with = np.zeros(len(frequency))
        n_known = min(len(frequency), len(history.n_with))
        n_with[:n_known] = history.n_with[:n_known]
        likely = (n_with + _PRIOR_MESSAGES * likely) / (n_messages + _PRIOR_MESSAGES)
    is_ranked = rank != NO_RANK
    by_rank = np.empty(int(is_ranked.sum()) + 1, np.float32)
    by_rank[rank[is_ranked]] = np.maximum(likely[is_ranked], _LEAST_LIKELIHOOD)
    by_rank[-1] = by_rank[:-1].min(initial=1.0)
    return by_rank


def density_of_history(history: MessageBatch) -> DensityArrays:
    """A message with a box counts at its centre."""
    arrays = history.arrays
    return _density(arrays.x0 * 0.5 + arrays.x1 * 0.5, arrays.y0 * 0.5 + arrays.y1 * 0.5)


def density_of_clauses(clauses: ClauseArrays, slots: NDArray[np.int32], is_guessing: bool) -> DensityArrays:
    """Take the clauses for messages, as if both came from the same locations. Without `is_guessing` all locations are alike."""
    bounds = bounded_boxes(clauses, slots)
    x, y = bounds[0] * 0.5 + bounds[2] * 0.5, bounds[1] * 0.5 + bounds[3] * 0.5
    if is_guessing or len(x) == 0:
        return _density(x, y)
    corners = [np.array([width.min(), width.max()]) for width in (x, y)]
    return _density(*corners)


def bounded_boxes(clauses: ClauseArrays, slots: NDArray[np.int32]) -> list[NDArray[np.float64]]:
    """The bounds of the boxes that do not reach to the end of the plane."""
    bounds = [clauses.x0[slots], clauses.y0[slots], clauses.x1[slots], clauses.y1[slots]]
    is_bounded = np.all([np.abs(width) < _LARGEST for width in bounds], axis=0)
    return [width[is_bounded] for width in bounds]


def _density(x: NDArray[np.float64], y: NDArray[np.float64]) -> DensityArrays:
    width = 1
    while width < _LARGEST_SIDE and (2 * width) ** 2 * _POINTS_PER_CELL <= len(x):
        width *= 2
    frame = np.array([*_axis(x, width), *_axis(y, width), width])
    count = np.zeros((width + 1, width + 1))
    count_points(frame, x, y, count.reshape(-1))
    count[1:, 1:] += _ANYWHERE * max(1, len(x)) / width**2
    return DensityArrays(count.cumsum(axis=0).cumsum(axis=1).reshape(-1), frame)


def _axis(values: NDArray[np.float64], width: int) -> tuple[float, float, float]:
    """Low, high and cells per half of a unit; an axis too narrow to divide has scale 0."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    half = high * 0.5 - low * 0.5
    scale = width / half if half * _LARGEST > width else 0.0
    return low, high, scale
