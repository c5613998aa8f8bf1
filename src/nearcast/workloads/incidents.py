"""Real streams of reports in time order: emergency calls, police reports, storms, animals.

Reads `messages_<source>*.parquet` of a folder the caller names. Some sources describe real incidents: leave them out of demos.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.errors import WorkloadError
from nearcast.workloads.base import Space
from nearcast.workloads.corpus import Corpus, RepeatedStream, read_corpus
from nearcast.workloads.pooled import PooledWorkload
from nearcast.workloads.sampling import RangeReading, SubscriptionSampling

SOURCES = {
    "montco911": "messages_montco911",
    "houston": "messages_houston",
    "mpls": "messages_mpls",
    "storms": "messages_noaa_storms",
    "nyc311": "messages_nyc311",
    "london": "messages_london",
}


@dataclass(frozen=True)
class Incidents(PooledWorkload):
    """Keywords are words (list<string>). The stream repeats itself `laps` times; subscriptions are sampled from its history.

    Ranges are percent of the side (or area) of the data's own box.
    """

    name: ClassVar[str] = "incidents"
    description: ClassVar[str] = "real reports in time order from a folder: montco911, houston, mpls, storms, nyc311, london"
    space: ClassVar[Space] = "lonlat"

    folder: str | Path
    source_name: str = "montco911"
    laps: int = 10
    range: RangeReading = "side"
    range_low: float = 0.1
    range_high: float = 5.0
    n_keywords: int | tuple[int, int] = (1, 3)

    def __post_init__(self) -> None:
        if self.source_name not in SOURCES:
            raise WorkloadError(f"source_name={self.source_name!r} is unknown; give one of {', '.join(SOURCES)}")
        if self.laps < 1:
            raise WorkloadError(f"laps={self.laps!r} is not usable; give 1 or more")

    @cached_property
    def corpus(self) -> Corpus:
        """The analysed file, in order of time."""
        prefix = SOURCES[self.source_name]
        files = sorted(Path(self.folder).glob(f"{prefix}*.parquet"))
        return read_corpus(files[0] if files else Path(self.folder) / f"{prefix}.parquet").in_time_order()

    @cached_property
    def source(self) -> RepeatedStream:
        return RepeatedStream(self.corpus, self.corpus.n_rows * self.laps)

    @cached_property
    def sampled(self) -> RepeatedStream:
        return RepeatedStream(self.corpus, max(self.n_history, 1))

    @cached_property
    def sampling(self) -> SubscriptionSampling:
        return SubscriptionSampling(self.n_keywords, self.range, self.range_low, self.range_high)

    @property
    def vocabulary_size(self) -> int:
        return len(self.corpus.words)

    @property
    def words(self) -> pa.Array:
        return self.corpus.words

    def numbered(self, numbers: NDArray[np.int64]) -> pa.Table:
        return self.with_words(super().numbered(numbers))

    def subscriptions(self, n: int, seed: int = 1) -> pa.Table:
        return self.with_words(super().subscriptions(n, seed))

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "folder": str(self.folder), "rows": self.corpus.n_rows}
