"""Named places of the world as messages: the stand-in for the GN data of the papers.

Reads `gazetteer_places.parquet` (GeoNames.org, CC BY 4.0, and airports) of a folder the caller names.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from nearcast.errors import WorkloadError
from nearcast.workloads.arrivals import Arrivals
from nearcast.workloads.base import Space
from nearcast.workloads.corpus import Corpus, SampledPlaces, read_corpus
from nearcast.workloads.pooled import PooledWorkload
from nearcast.workloads.sampling import RangeReading, SubscriptionSampling

FILE = "gazetteer_places.parquet"


@dataclass(frozen=True)
class Gazetteer(PooledWorkload):
    """`pool` places drawn with replacement, moved by about `jitter` degrees; ranges are percent of the data's own box."""

    name: ClassVar[str] = "gazetteer"
    description: ClassVar[str] = "named places of the world with descriptive words, from a folder (AP-Tree, Skype: GN)"
    space: ClassVar[Space] = "lonlat"

    folder: str | Path
    range: RangeReading = "side"
    pool: int = 2_200_000
    jitter: float = 0.01
    seed: int = 7
    range_low: float = 0.01
    range_high: float = 1.0
    n_keywords: int | tuple[int, int] = (1, 5)

    def __post_init__(self) -> None:
        if self.pool < 1 or self.jitter < 0:
            raise WorkloadError(f"pool={self.pool!r}, jitter={self.jitter!r} is not usable; give pool >= 1 and jitter >= 0")

    @cached_property
    def corpus(self) -> Corpus:
        """The analysed file; takes some seconds the first time."""
        return read_corpus(Path(self.folder) / FILE, time=None)

    @cached_property
    def source(self) -> SampledPlaces:
        return SampledPlaces(self.corpus, self.pool, self.seed, self.jitter, Arrivals(self.pool, self.seed))

    @cached_property
    def sampling(self) -> SubscriptionSampling:
        return SubscriptionSampling(self.n_keywords, self.range, self.range_low, self.range_high)

    @property
    def vocabulary_size(self) -> int:
        return len(self.corpus.words)

    @property
    def words(self) -> pa.Array:
        return self.corpus.words

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "folder": str(self.folder), "rows": self.corpus.n_rows}
