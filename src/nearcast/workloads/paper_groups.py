"""The four message groups of the R^t-tree and LFilter papers: short or long, at a point or over a range.

Paper: Li et al. 2013 (R^t-tree), §6; LFilter, §6: short 6-20 keywords, long 100-1000, 10,000 messages each, 10M subscriptions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.errors import WorkloadError
from nearcast.workloads.base import Space
from nearcast.workloads.poi import PointsOfInterest
from nearcast.workloads.pool import MessagePool, even_counts
from nearcast.workloads.pooled import PooledWorkload
from nearcast.workloads.sampling import SubscriptionSampling
from nearcast.workloads.tables import Boxes
from nearcast.workloads.tweets import Tweets

LENGTHS = {"short": (6, 20), "long": (100, 1000)}


@dataclass(frozen=True)
class PaperGroups(PooledWorkload):
    """Subscriptions are those of `over`; only messages differ between the groups.

    `vocabulary_size` 0 is that of `over`. `message_range_low` and `message_range_high` are percent of the side of the unit
    square, width and height apart.
    """

    name: ClassVar[str] = "paper_groups"
    description: ClassVar[str] = "short or long messages, at points or over ranges (R^t-tree, LFilter)"
    space: ClassVar[Space] = "plane"

    length: Literal["short", "long"] = "short"
    shape: Literal["point", "range"] = "point"
    over: Literal["tweets", "poi"] = "tweets"
    vocabulary_size: int = 0
    pool: int = 13_000_000
    seed: int = 7
    range_low: float = 0.01
    range_high: float = 1.0
    message_range_low: float = 0.01
    message_range_high: float = 1.0

    def __post_init__(self) -> None:
        kind = PointsOfInterest if self.over == "poi" else Tweets
        object.__setattr__(self, "vocabulary_size", self.vocabulary_size or kind.vocabulary_size)
        for field, allowed in (("length", LENGTHS), ("shape", ("point", "range")), ("over", ("tweets", "poi"))):
            if getattr(self, field) not in allowed:
                raise WorkloadError(f"{field}={getattr(self, field)!r} is unknown; give one of {', '.join(map(repr, allowed))}")

    @cached_property
    def base(self) -> Tweets | PointsOfInterest:
        """The workload whose words, places and subscriptions are used."""
        kind = Tweets if self.over == "tweets" else PointsOfInterest
        size: dict[str, Any] = {"vocabulary_size": self.vocabulary_size, "pool": self.pool, "seed": self.seed}
        return kind(**size, range_low=self.range_low, range_high=self.range_high)

    @cached_property
    def source(self) -> MessagePool:
        base = self.base.source
        return MessagePool(self.pool, self.seed, base.words, even_counts(*LENGTHS[self.length]), base.places)

    @property
    def sampling(self) -> SubscriptionSampling:
        return self.base.sampling

    @property
    def words(self) -> pa.Array:
        return self.base.words

    def subscriptions(self, n: int, seed: int = 1) -> pa.Table:
        return self.base.subscriptions(n, seed)

    def _extent(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]] | Boxes:
        centre = self.source.locations(numbers)
        if self.shape == "point":
            return centre
        extent = SubscriptionSampling(range_low=self.message_range_low, range_high=self.message_range_high, square=False)
        return extent.boxes_around(centre, self.source.bounds, numbers, self.seed)
