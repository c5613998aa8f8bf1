"""The workload over a pool of numbered messages: stream, history and subscriptions follow from the numbers.

A concrete workload only says which pool and how subscriptions are sampled.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.errors import WorkloadError
from nearcast.workloads.base import HISTORY_SHARE, Workload
from nearcast.workloads.randomness import integers, stream_key
from nearcast.workloads.sampling import MessageSource, SubscriptionSampling
from nearcast.workloads.tables import Boxes, KeywordLists, message_table, subscription_table

LONLAT = (-180.0, -90.0, 180.0, 90.0)


class PooledWorkload(Workload):
    """Messages are numbered 0 ... size - 1; the number is the `id`."""

    @property
    @abstractmethod
    def source(self) -> MessageSource:
        """The numbered messages."""

    @property
    @abstractmethod
    def sampling(self) -> SubscriptionSampling:
        """How subscriptions are made from them."""

    @property
    def sampled(self) -> MessageSource:
        """The messages that subscriptions are made from: all of them, unless a workload says otherwise."""
        return self.source

    @property
    def n_history(self) -> int:
        """How many messages come before the stream."""
        return int(self.source.size * HISTORY_SHARE)

    def numbered(self, numbers: NDArray[np.int64]) -> pa.Table:
        """The messages with these numbers, in this order."""
        numbers = np.ascontiguousarray(numbers, np.int64)
        if numbers.size and (int(numbers.min()) < 0 or int(numbers.max()) >= self.source.size):
            asked = f"{numbers.min()} to {numbers.max()}"
            raise WorkloadError(f"asked for messages {asked}; {self.name} has 0 to {self.source.size - 1}; ask for those")
        return message_table(numbers, self.source.keywords(numbers), self._extent(numbers), self.source.times(numbers))

    def messages(self, n: int, seed: int = 1) -> pa.Table:
        streamed = self.source.size - self.n_history
        if not 0 <= n <= streamed:
            raise WorkloadError(
                f"n={n} messages asked for; the stream of {self.name} has {streamed}; ask for fewer or for a larger pool"
            )
        start = integers(stream_key(seed, "stream"), np.zeros(1, np.int64), 0, streamed - n)[0]
        return self.numbered(self.n_history + start + np.arange(n))

    def history(self, n: int) -> pa.Table:
        if not 0 <= n <= self.n_history:
            raise WorkloadError(f"n={n} messages asked for; the history of {self.name} has {self.n_history}; ask for fewer")
        return self.numbered(np.arange(n))

    def subscriptions(self, n: int, seed: int = 1) -> pa.Table:
        keywords, boxes = self.sample_subscriptions(n, seed)
        return subscription_table(np.arange(n), keywords, boxes)

    def sample_subscriptions(self, n: int, seed: int) -> tuple[KeywordLists, Boxes]:
        """Keywords and boxes as arrays, clipped to what the space allows."""
        if n < 0:
            raise WorkloadError(f"n={n} subscriptions cannot be made; give 0 or more")
        keywords, boxes = self.sampling.sample(self.sampled, n, seed)
        return keywords, clipped(boxes) if self.space == "lonlat" else boxes

    def _extent(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]] | Boxes:
        """A point for each message; range messages override it."""
        return self.source.locations(numbers)


def clipped(boxes: Boxes) -> Boxes:
    """Boxes cut at the edge of the lon/lat plane."""
    lows = [np.maximum(column, edge) for column, edge in zip(boxes[:2], LONLAT[:2], strict=True)]
    highs = [np.minimum(column, edge) for column, edge in zip(boxes[2:], LONLAT[2:], strict=True)]
    return Boxes(*lows, *highs)
