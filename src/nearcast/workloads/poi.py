"""Points of interest with words of publications: every word equally frequent, the opposite of tweets.

Paper: Li et al. 2013 (R^t-tree), §6 and LFilter, §6: 17M places of the USA, words of 1.5M DBLP records, rectangles of random
width and height, 1 to 6 keywords (3.5 on average).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa

from nearcast.workloads.base import Space
from nearcast.workloads.places import towns
from nearcast.workloads.pool import MessagePool, WordChooser, even_counts
from nearcast.workloads.pooled import PooledWorkload
from nearcast.workloads.sampling import RangeReading, SubscriptionSampling
from nearcast.workloads.words import made_up_words


@dataclass(frozen=True)
class PointsOfInterest(PooledWorkload):
    """6 to 20 keywords a message; places and words of a subscription are drawn apart from each other."""

    name: ClassVar[str] = "poi"
    description: ClassVar[str] = "places with uniformly frequent words, 1-6 keywords a subscription (R^t-tree, LFilter)"
    space: ClassVar[Space] = "plane"

    range: RangeReading = "side"
    vocabulary_size: int = 100_000
    n_cities: int = 2_000
    pool: int = 17_000_000
    seed: int = 7
    range_low: float = 0.01
    range_high: float = 1.0
    n_keywords: int | tuple[int, int] = (1, 6)

    @cached_property
    def source(self) -> MessagePool:
        return MessagePool(self.pool, self.seed, self.chooser, even_counts(6, 20), towns(self.n_cities, self.seed, 0.6, 0.2))

    @cached_property
    def sampling(self) -> SubscriptionSampling:
        return SubscriptionSampling(
            self.n_keywords, self.range, self.range_low, self.range_high, square=False, chooser=self.chooser
        )

    @cached_property
    def chooser(self) -> WordChooser:
        return WordChooser.shuffled(np.full(self.vocabulary_size, 1.0 / self.vocabulary_size), self.seed)

    @cached_property
    def words(self) -> pa.Array:
        return made_up_words(1, self.vocabulary_size)
