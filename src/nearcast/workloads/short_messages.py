"""Short synthetic messages in towns: tweets with English word frequencies, points of interest with uniform ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from nearcast.errors import WorkloadError
from nearcast.workloads.base import Space, Workload
from nearcast.workloads.locations import towns
from nearcast.workloads.pool import MessagePool, WordChooser, bell_counts, even_counts
from nearcast.workloads.sampling import RangeReading, SubscriptionSampling
from nearcast.workloads.words import (
    Frequencies,
    made_up_words,
    ranked_words,
    resolve_frequencies,
    word_frequencies,
    zipf_frequencies,
)

N_STOP_WORDS = 150


@dataclass(frozen=True)
class Tweets(Workload):
    """Short messages in towns: the stand-in for the tweets of the papers.

    Paper: Wang et al. 2017 (AP-Tree), §5.1.1, Table 2: 12.7M messages, 1.7M words, 9 keywords each on average (here 3 to 20).
    Words and locations are independent here; in real tweets they are not.

    `range_low` and `range_high` are percent of the side or of the area of the unit square. The two readings and the two
    treatments of stop words differ by a factor of 200 in matches: always state them.
    """

    name: ClassVar[str] = "tweets"
    description: ClassVar[str] = "short messages in 300 towns, 1.7M words with English frequencies (AP-Tree, Skype)"
    space: ClassVar[Space] = "plane"

    range: RangeReading = "side"
    stop_words: Literal["kept", "removed"] = "kept"
    vocabulary_size: int = 1_700_000
    n_cities: int = 300
    pool: int = 12_700_000
    seed: int = 7
    range_low: float = 0.01
    range_high: float = 1.0
    n_keywords: int | tuple[int, int] = (1, 5)
    keyword_choice: Literal["message", "zipf"] = "message"
    frequencies: Frequencies | Literal["zipf"] = "auto"

    def __post_init__(self) -> None:
        choices = {
            "stop_words": ("kept", "removed"),
            "keyword_choice": ("message", "zipf"),
            "frequencies": ("auto", "wordfreq", "curve", "zipf"),
        }
        for field, allowed in choices.items():
            if getattr(self, field) not in allowed:
                raise WorkloadError(f"{field}={getattr(self, field)!r} is unknown; give one of {', '.join(map(repr, allowed))}")
        if min(self.n_cities, self.pool) < 1 or self.vocabulary_size < 40:
            raise WorkloadError("n_cities and pool must be at least 1, vocabulary_size at least 40")

    @cached_property
    def source(self) -> MessagePool:
        return MessagePool(self.pool, self.seed, self.chooser, bell_counts(3, 20, 8.4), towns(self.n_cities, self.seed))

    @cached_property
    def sampling(self) -> SubscriptionSampling:
        chooser = self.chooser if self.keyword_choice == "zipf" else None
        return SubscriptionSampling(self.n_keywords, self.range, self.range_low, self.range_high, chooser=chooser)

    @cached_property
    def chooser(self) -> WordChooser:
        if self.frequencies == "zipf":
            share = zipf_frequencies(self.vocabulary_size + self._n_skipped)[self._n_skipped :]
        else:
            share = word_frequencies(self.vocabulary_size, resolve_frequencies(self.frequencies), self._n_skipped)
        return WordChooser.shuffled(share, self.seed)

    @cached_property
    def words(self) -> pa.Array:
        source = "curve" if self.frequencies == "zipf" else resolve_frequencies(self.frequencies)
        return ranked_words(self.vocabulary_size, source, self._n_skipped).take(pa.array(self.chooser.rank_of_keyword))

    @property
    def _n_skipped(self) -> int:
        return N_STOP_WORDS if self.stop_words == "removed" else 0

    def describe(self) -> dict[str, Any]:
        used = self.frequencies if self.frequencies == "zipf" else resolve_frequencies(self.frequencies)
        return {**super().describe(), "frequencies": used}


@dataclass(frozen=True)
class PointsOfInterest(Workload):
    """Points of interest with words of publications: every word equally frequent, the opposite of tweets.

    Paper: Li et al. 2013 (R^t-tree), §6 and LFilter, §6: 17M places of the USA, words of 1.5M DBLP records, rectangles of
    random width and height, 1 to 6 keywords (3.5 on average). Messages have 6 to 20 keywords. The location and the words of a
    subscription are drawn independently.
    """

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
