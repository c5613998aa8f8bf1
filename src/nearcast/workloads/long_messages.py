"""Long synthetic messages: positions of cars and ships with many words, and reviews of the same places again and again.

Paper: Wang et al. 2017 (AP-Tree), Table 2 (CARS, AIS); Wang et al. 2016 (Skype), Table 3 (YELP). Sizes and means are from the
papers; the locations are generated along roads and sea lanes and in towns.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa

from nearcast.workloads.base import Space, Workload
from nearcast.workloads.locations import LocationMixture, lanes, spots
from nearcast.workloads.pool import KeywordCounts, MessagePool, WordChooser, bell_counts, skewed_counts
from nearcast.workloads.sampling import RangeReading, SubscriptionSampling
from nearcast.workloads.words import Frequencies, ranked_words, resolve_frequencies, word_frequencies


@dataclass(frozen=True)
class LongMessages(Workload):
    """The common part of cars, ships and reviews: English words, subscriptions as in the AP-Tree paper, the unit square."""

    space: ClassVar[Space] = "plane"

    range: RangeReading = "side"
    vocabulary_size: int = 81_000
    pool: int = 2_200_000
    seed: int = 7
    range_low: float = 0.01
    range_high: float = 1.0
    n_keywords: int | tuple[int, int] = (1, 5)
    frequencies: Frequencies = "auto"

    @property
    @abstractmethod
    def counts(self) -> KeywordCounts:
        """The distribution of the number of keywords of a message."""

    @property
    @abstractmethod
    def mixture(self) -> LocationMixture:
        """The locations of messages."""

    @cached_property
    def source(self) -> MessagePool:
        share = word_frequencies(self.vocabulary_size, resolve_frequencies(self.frequencies))
        return MessagePool(self.pool, self.seed, WordChooser.shuffled(share, self.seed), self.counts, self.mixture)

    @cached_property
    def sampling(self) -> SubscriptionSampling:
        return SubscriptionSampling(self.n_keywords, self.range, self.range_low, self.range_high)

    @cached_property
    def words(self) -> pa.Array:
        ranked = ranked_words(self.vocabulary_size, resolve_frequencies(self.frequencies))
        return ranked.take(pa.array(self.source.words.rank_of_keyword))

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "frequencies": resolve_frequencies(self.frequencies)}


@dataclass(frozen=True)
class Cars(LongMessages):
    """30 keywords on average, along 150 winding roads."""

    name: ClassVar[str] = "cars"
    description: ClassVar[str] = "positions of cars along roads, 30 of 81,000 words each (AP-Tree)"

    @property
    def counts(self) -> KeywordCounts:
        return bell_counts(10, 60, 30.0)

    @property
    def mixture(self) -> LocationMixture:
        return lanes(150, 12, self.seed, spread=0.0005)


@dataclass(frozen=True)
class Ships(LongMessages):
    """50 keywords on average, along 40 wide lanes with few bends."""

    name: ClassVar[str] = "ais"
    description: ClassVar[str] = "positions of ships along sea lanes, 50 of 81,000 words each (AP-Tree)"

    pool: int = 5_700_000

    @property
    def counts(self) -> KeywordCounts:
        return bell_counts(20, 90, 50.0)

    @property
    def mixture(self) -> LocationMixture:
        return lanes(40, 3, self.seed, spread=0.003)


@dataclass(frozen=True)
class Reviews(LongMessages):
    """37 keywords on average, at `n_places` addresses; popular ones are reviewed again and again.

    With `repeats`, frequent words occur several times in a message. Subscriptions are the same with and without.
    """

    name: ClassVar[str] = "reviews"
    description: ClassVar[str] = "reviews of repeated places, 37 of 85,000 words each (Skype)"

    vocabulary_size: int = 85_000
    pool: int = 1_600_000
    n_places: int = 60_000
    repeats: bool = False

    @cached_property
    def sampling_source(self) -> MessagePool:
        return super().source

    @cached_property
    def source(self) -> MessagePool:
        return replace(self.sampling_source, repeats=self.repeats)

    @property
    def counts(self) -> KeywordCounts:
        return skewed_counts(3, 300, 29.0, 0.7)

    @property
    def mixture(self) -> LocationMixture:
        return spots(self.n_places, 10, self.seed)
