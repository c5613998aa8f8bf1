"""Workloads from real texts with locations: named places and streams of reports, from Parquet files of a folder.

The keywords of a row come from the analysis that engines use. Nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearcast.errors import WorkloadError
from nearcast.model.analysis import Analysis
from nearcast.workloads.base import Space, Workload
from nearcast.workloads.pool import Arrivals
from nearcast.workloads.randomness import draws, integers, normal_pairs, stream_key
from nearcast.workloads.sampling import RangeReading, SubscriptionSampling
from nearcast.workloads.tables import KeywordLists, starts_of

DAY_S = 86_400.0


@dataclass(frozen=True)
class Corpus:
    """Rows with their keyword ids. `words[i]` is the word of keyword id i, numbered by first appearance."""

    lists: KeywordLists
    words: pa.Array
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    time: NDArray[np.float64]

    @property
    def n_rows(self) -> int:
        return int(self.x.size)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """The box around all rows; ranges are relative to it."""
        return float(self.x.min()), float(self.y.min()), float(self.x.max()), float(self.y.max())

    def in_time_order(self) -> Corpus:
        """The same rows, earliest first."""
        order = np.argsort(self.time, kind="stable")
        return Corpus(self.lists.take(order), self.words, self.x[order], self.y[order], self.time[order])


def read_corpus(file: Path, text: str = "text", time: str | None = "ts") -> Corpus:
    """Analyse a file with the columns `lon`, `lat`, a text and perhaps a time. Rows without a word are left out."""
    if not file.is_file():
        raise WorkloadError(f"there is no file {str(file)!r}; give folder= the folder that holds {file.name}")
    columns = ["lon", "lat", text] + ([time] if time else [])
    present = pq.read_schema(file).names
    if missing := [column for column in columns if column not in present]:
        raise WorkloadError(f"{str(file)!r} has no column {', '.join(missing)}; it has {', '.join(present)}")
    table = pq.read_table(file, columns=columns)
    lists, words = analyse_texts(table.column(text).to_pylist())
    rows = np.flatnonzero(np.diff(lists.start) > 0)
    if rows.size == 0:
        raise WorkloadError(f"{str(file)!r} has no row with a word in {text!r}; choose another file")
    x, y = (table.column(name).to_numpy().astype(np.float64)[rows] for name in ("lon", "lat"))
    seconds = table.column(time).to_numpy().astype(np.float64)[rows] if time else np.zeros(rows.size)
    return Corpus(lists.take(rows), words, x, y, seconds)


def analyse_texts(texts: Iterable[str | None]) -> tuple[KeywordLists, pa.Array]:
    """The distinct words of each text as ids, in order of appearance, and the word of each id."""
    words = Analysis().words
    id_of_word: dict[str, int] = {}
    length: list[int] = []
    keyword: list[int] = []
    for text in texts:
        distinct = dict.fromkeys(words(text)) if text else {}
        length.append(len(distinct))
        keyword.extend(id_of_word.setdefault(word, len(id_of_word)) for word in distinct)
    lists = KeywordLists(starts_of(np.array(length, np.int64)), np.array(keyword, np.int32))
    return lists, pa.array(list(id_of_word), pa.string())


@dataclass(frozen=True)
class RepeatedStream:
    """The rows in order of time, again and again: each lap starts a day after the end of the lap before."""

    corpus: Corpus
    size: int

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        return self.corpus.bounds

    def keywords(self, numbers: NDArray[np.int64]) -> KeywordLists:
        return self.corpus.lists.take(numbers % self.corpus.n_rows)

    def locations(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        row = numbers % self.corpus.n_rows
        return self.corpus.x[row], self.corpus.y[row]

    def times(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        lap, row = np.divmod(numbers, self.corpus.n_rows)
        lap_s = self.corpus.time[-1] - self.corpus.time[0] + DAY_S
        times: NDArray[np.float64] = self.corpus.time[row] + lap * lap_s
        return times


@dataclass(frozen=True)
class SampledRows:
    """Rows drawn with replacement, each moved a little (`jitter`, standard deviation in degrees)."""

    corpus: Corpus
    size: int
    seed: int
    jitter: float
    arrivals: Arrivals

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        return self.corpus.bounds

    def rows(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row of each number."""
        return integers(stream_key(self.seed, "row"), numbers, 0, self.corpus.n_rows - 1)

    def keywords(self, numbers: NDArray[np.int64]) -> KeywordLists:
        return self.corpus.lists.take(self.rows(numbers))

    def locations(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        row, key = self.rows(numbers), stream_key(self.seed, "jitter")
        dx, dy = normal_pairs(draws(key, numbers), draws(key, numbers, slot=1))
        x = np.clip(self.corpus.x[row] + self.jitter * dx, -180.0, 180.0)
        return x, np.clip(self.corpus.y[row] + self.jitter * dy, -90.0, 90.0)

    def times(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.arrivals.times(numbers)


GAZETTEER_FILE = "gazetteer_places.parquet"


@dataclass(frozen=True)
class Gazetteer(Workload):
    """Named places of the world as messages: the stand-in for the GN data of the papers.

    Reads `gazetteer_places.parquet` (GeoNames.org, CC BY 4.0, and airports) of a folder. `pool` places are drawn with
    replacement and moved by about `jitter` degrees. Ranges are percent of the box around all rows.
    """

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
        return read_corpus(Path(self.folder) / GAZETTEER_FILE, time=None)

    @cached_property
    def source(self) -> SampledRows:
        return SampledRows(self.corpus, self.pool, self.seed, self.jitter, Arrivals(self.pool, self.seed))

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


SOURCES = {
    "montco911": "messages_montco911",
    "houston": "messages_houston",
    "mpls": "messages_mpls",
    "storms": "messages_noaa_storms",
    "nyc311": "messages_nyc311",
    "london": "messages_london",
}


@dataclass(frozen=True)
class Incidents(Workload):
    """Real streams of reports in time order, from a folder: emergency calls, police reports, storms, animals.

    Reads `messages_<source>*.parquet`. Some sources describe real incidents: leave them out of demos. Keywords are words
    (list<string>). The stream repeats itself `laps` times; subscriptions are sampled from its history. Ranges are percent of
    the side (or area) of the box around all rows.
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
    def sampling_source(self) -> RepeatedStream:
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

    def messages_at(self, numbers: NDArray[np.int64]) -> pa.Table:
        return self.with_words(super().messages_at(numbers))

    def subscriptions(self, n: int, seed: int = 1) -> pa.Table:
        return self.with_words(super().subscriptions(n, seed))

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "folder": str(self.folder), "rows": self.corpus.n_rows}
