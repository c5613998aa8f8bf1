"""Ranked subscriptions by their number: where they are, what they want, how many, and the weights of words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import take_lists
from nearcast.columns.growing import GrowingArray
from nearcast.kernels.ranked_layouts import SubscriberArrays
from nearcast.kernels.subscribers import weigh_subscribers

_BY_NUMBER = {
    "x": np.float64,
    "y": np.float64,
    "spatial_weight": np.float64,
    "k": np.int32,
    "length": np.float64,
    "first": np.int64,
    "n_words": np.int32,
    "is_alive": np.uint8,
}
# The keywords of replaced subscriptions are cleared away when they are the larger part, but not before there are this many.
_LEAST_WASTE = 4096


class SubscriberBatch(NamedTuple):
    """Subscriptions to put in place; keywords sorted and distinct in each."""

    number: NDArray[np.int32]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    spatial_weight: NDArray[np.float64]
    k: NDArray[np.int32]
    keyword_start: NDArray[np.int64]
    keyword: NDArray[np.int32]

    def take(self, rows: NDArray[np.int64]) -> SubscriberBatch:
        """Some of them, in this order."""
        start, keyword = take_lists(self.keyword_start, self.keyword, rows)
        number, x, y = self.number[rows], self.x[rows], self.y[rows]
        return SubscriberBatch(number, x, y, self.spatial_weight[rows], self.k[rows], start, keyword)


class Subscribers:
    """Rows by number, put and taken away; numbers are given out by the ids of the engine."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]] | None = None) -> None:
        given = arrays or {}
        self._columns = {name: GrowingArray(dtype, given.get(name)) for name, dtype in _BY_NUMBER.items()}
        self._keyword = GrowingArray(np.int32, given.get("keyword"))
        self._word_weight = GrowingArray(np.float64, given.get("word_weight"))
        self.n_alive = int(np.count_nonzero(self._columns["is_alive"].used))
        # The most words that one has, or had.
        self.most_words = int(self._columns["n_words"].used.max(initial=0))

    @property
    def n(self) -> int:
        """Numbers in use, of the dead too."""
        return self._columns["x"].n

    @property
    def n_bytes(self) -> int:
        return sum(column.room.nbytes for column in (*self._columns.values(), self._keyword, self._word_weight))

    def layout(self) -> SubscriberArrays:
        return SubscriberArrays(**self.arrays())

    def alive(self) -> NDArray[np.int32]:
        """The numbers of all living subscriptions."""
        return np.flatnonzero(self._columns["is_alive"].used).astype(np.int32)

    def is_alive(self, number: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which of these are numbers of living subscriptions."""
        known = (number >= 0) & (number < self.n)
        known[known] = self._columns["is_alive"].used[number[known]] != 0
        return known

    def put(self, batch: SubscriberBatch, weights: NDArray[np.float64]) -> None:
        """Write (distinct) subscriptions, over older ones of the same number."""
        if len(batch.number) == 0:
            return
        missing = int(batch.number.max()) + 1 - self.n
        if missing > 0:
            for column in self._columns.values():
                column.extend(0, missing)
        self.remove(batch.number)
        rows = {"x": batch.x, "y": batch.y, "spatial_weight": batch.spatial_weight, "k": batch.k}
        rows |= {"first": self._keyword.n + batch.keyword_start[:-1], "n_words": np.diff(batch.keyword_start)}
        for name, values in rows.items():
            self._columns[name].used[batch.number] = values
        self._columns["is_alive"].used[batch.number] = 1
        self.most_words = max(self.most_words, int(np.diff(batch.keyword_start).max()))
        self._keyword.extend(batch.keyword)
        self._word_weight.extend(0.0, len(batch.keyword))
        self.n_alive += len(batch.number)
        weigh_subscribers(self.layout(), batch.number, weights)
        self._clear_waste()

    def remove(self, number: NDArray[np.int32]) -> NDArray[np.int32]:
        """Mark subscriptions dead; returns those that were alive."""
        gone = number[self.is_alive(number)]
        self._columns["is_alive"].used[gone] = 0
        self.n_alive -= len(gone)
        return gone

    def weigh(self, weights: NDArray[np.float64]) -> None:
        """Take over new weights of words."""
        weigh_subscribers(self.layout(), self.alive(), weights)

    def _clear_waste(self) -> None:
        alive = self.alive()
        first, n_words = self._columns["first"].used, self._columns["n_words"].used
        n_used = int(n_words[alive].sum())
        if self._keyword.n - n_used <= max(_LEAST_WASTE, n_used):
            return
        starts = np.concatenate([[0], np.cumsum(n_words[alive])]).astype(np.int64)
        taken = np.repeat(first[alive] - starts[:-1], n_words[alive]) + np.arange(n_used)
        self._keyword = GrowingArray(np.int32, self._keyword.used[taken])
        self._word_weight = GrowingArray(np.float64, self._word_weight.used[taken])
        first[alive] = starts[:-1]

    def arrays(self) -> dict[str, NDArray[Any]]:
        words = {"keyword": self._keyword.used, "word_weight": self._word_weight.used}
        return {name: column.used for name, column in self._columns.items()} | words
