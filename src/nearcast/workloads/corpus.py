"""Real texts with places as numbered messages: keyword ids of every row, from the analysis that engines use.

Reads `*.parquet` of a folder the caller names; nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearcast.errors import WorkloadError
from nearcast.model.analysis import Analysis
from nearcast.workloads.arrivals import Arrivals
from nearcast.workloads.randomness import draws, integers, normal_pairs, stream_key
from nearcast.workloads.tables import KeywordLists, starts_of

DAY_S = 86_400.0


@dataclass(frozen=True)
class Corpus:
    """Analysed rows; `words[i]` is the word of keyword id i, numbered by first appearance."""

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
        """The box around every row: what a range of 1 % is measured by."""
        return float(self.x.min()), float(self.y.min()), float(self.x.max()), float(self.y.max())

    def in_time_order(self) -> Corpus:
        """The same rows, earliest first."""
        order = np.argsort(self.time, kind="stable")
        return Corpus(self.lists.take(order), self.words, self.x[order], self.y[order], self.time[order])


def read_corpus(file: Path, text: str = "text", time: str | None = "ts") -> Corpus:
    """Analyse a file with columns `lon`, `lat`, a text and perhaps a time; rows without a word are left out."""
    if not file.is_file():
        raise WorkloadError(f"there is no file {str(file)!r}; give folder= the folder that holds {file.name}")
    columns = ["lon", "lat", text] + ([time] if time else [])
    known = pq.read_schema(file).names
    if missing := [column for column in columns if column not in known]:
        raise WorkloadError(f"{str(file)!r} has no column {', '.join(missing)}; it has {', '.join(known)}")
    table = pq.read_table(file, columns=columns)
    lists, words = analysed(table.column(text).to_pylist())
    rows = np.flatnonzero(np.diff(lists.start) > 0)
    if rows.size == 0:
        raise WorkloadError(f"{str(file)!r} has no row with a word in {text!r}; choose another file")
    x, y = (table.column(name).to_numpy().astype(np.float64)[rows] for name in ("lon", "lat"))
    seconds = table.column(time).to_numpy().astype(np.float64)[rows] if time else np.zeros(rows.size)
    return Corpus(lists.take(rows), words, x, y, seconds)


def analysed(texts: Iterable[str | None]) -> tuple[KeywordLists, pa.Array]:
    """The distinct words of each text as ids, in order of appearance, and the words."""
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
    """The rows in order of time, over and over: each lap starts a day after the one before has ended."""

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
class SampledPlaces:
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
        """The row behind each number."""
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
