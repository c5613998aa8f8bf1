"""Something happens, and everybody writes the same: runs of nearly equal messages in the stream of `tweets`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.errors import WorkloadError
from nearcast.workloads.base import Space
from nearcast.workloads.pooled import PooledWorkload
from nearcast.workloads.randomness import stream_key, uniforms
from nearcast.workloads.sampling import MessageSource, SubscriptionSampling
from nearcast.workloads.tables import KeywordLists
from nearcast.workloads.tweets import Tweets
from nearcast.workloads.words import Frequencies

# How far from the first message of a burst the others are, at most: a ten-thousandth of the side.
_NEAR = 1e-4


@dataclass(frozen=True)
class Bursts(PooledWorkload):
    """Of every `every` messages the first `burst` have the keywords of the first one and stand near it.

    Subscriptions are those of `tweets`.
    """

    name: ClassVar[str] = "bursts"
    description: ClassVar[str] = "the stream of tweets with runs of nearly equal messages in one place"
    space: ClassVar[Space] = "plane"

    burst: int = 10_000
    every: int = 100_000
    stop_words: Literal["kept", "removed"] = "kept"
    vocabulary_size: int = 1_700_000
    pool: int = 12_700_000
    seed: int = 7
    range_low: float = 0.01
    range_high: float = 1.0
    frequencies: Frequencies = "auto"

    def __post_init__(self) -> None:
        if not 1 <= self.burst <= self.every:
            raise WorkloadError(f"burst={self.burst}, every={self.every}: give 1 <= burst <= every")

    @cached_property
    def base(self) -> Tweets:
        """The workload without bursts."""
        return Tweets(
            stop_words=self.stop_words,
            vocabulary_size=self.vocabulary_size,
            pool=self.pool,
            seed=self.seed,
            range_low=self.range_low,
            range_high=self.range_high,
            frequencies=self.frequencies,
        )

    @cached_property
    def source(self) -> MessageSource:
        return _Repeated(self.base.source, self.burst, self.every, self.seed)

    @property
    def sampled(self) -> MessageSource:
        return self.base.source

    @property
    def sampling(self) -> SubscriptionSampling:
        return self.base.sampling

    @property
    def words(self) -> pa.Array:
        return self.base.words


@dataclass(frozen=True)
class _Repeated:
    """Messages of another source, some of which say again what the first of their run says."""

    source: MessageSource
    burst: int
    every: int
    seed: int

    @property
    def size(self) -> int:
        return self.source.size

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        return self.source.bounds

    def keywords(self, numbers: NDArray[np.int64]) -> KeywordLists:
        return self.source.keywords(self._first_of_run(numbers))

    def locations(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        first = self._first_of_run(numbers)
        low_x, low_y, high_x, high_y = self.bounds
        moved = []
        for axis, place, low, high in zip("xy", self.source.locations(first), (low_x, low_y), (high_x, high_y), strict=True):
            away = (2 * uniforms(stream_key(self.seed, f"burst {axis}"), numbers) - 1) * _NEAR * (high - low)
            moved.append(np.where(first == numbers, place, np.clip(place + away, low, high)))
        return moved[0], moved[1]

    def times(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.source.times(numbers)

    def _first_of_run(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        within = numbers % self.every
        return np.where(within < self.burst, numbers - within, numbers)
