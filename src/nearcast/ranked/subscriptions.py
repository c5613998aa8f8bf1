"""Ranked subscriptions by their number: where they are, what they want, how many, and the weights of words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.clauses import take_lists
from nearcast.columns.growing import GrowingArray, aligned_copy
from nearcast.columns.identifiers import Identifiers
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.ranked.kernels.layouts import FLOOR, LENGTH, N_WORDS, RECORD, WEIGHT, RankedSubscriptionArrays, X, Y
from nearcast.ranked.kernels.scoring import note_words, weigh_subscribers

if TYPE_CHECKING:
    from nearcast.ranked.tick_engine import Ranking

_BY_NUMBER = {"k": np.int32, "first": np.int64, "is_alive": np.uint8}
# Records there are at least: of a single one Numba takes a column for a plain array, and compiles everything once more.
_FEWEST_RECORDS = 2
# The keywords of replaced subscriptions are cleared away when they are the larger part, but not before there are this many.
_LEAST_WASTE = 4096


class RankedSubscriptionBatch(NamedTuple):
    """Subscriptions to put in place; keywords sorted and distinct in each."""

    number: NDArray[np.int32]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    spatial_weight: NDArray[np.float64]
    k: NDArray[np.int32]
    keyword_start: NDArray[np.int64]
    keyword: NDArray[np.int32]

    def take(self, rows: NDArray[np.int64]) -> RankedSubscriptionBatch:
        """Some of them, in this order."""
        start, keyword = take_lists(self.keyword_start, self.keyword, rows)
        number, x, y = self.number[rows], self.x[rows], self.y[rows]
        return RankedSubscriptionBatch(number, x, y, self.spatial_weight[rows], self.k[rows], start, keyword)


class RankedSubscriptions:
    """Rows by number, put and taken away; numbers are given out by the ids of the engine."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]] | None = None) -> None:
        given = arrays or {}
        self._columns = {name: GrowingArray(dtype, given.get(name)) for name, dtype in _BY_NUMBER.items()}
        self._record = GrowingArray(np.float64, given.get("record", np.zeros(_FEWEST_RECORDS * RECORD)))
        self._keyword = GrowingArray(np.int32, given.get("keyword"))
        self._weights: NDArray[np.float64] = given.get("weight_of", np.zeros(0))
        self.n_alive = int(np.count_nonzero(self._columns["is_alive"].used))
        # The most words that one has, or had.
        self.most_words = int(self.layout().n_words.max())

    @property
    def n(self) -> int:
        """Numbers in use, of the dead too."""
        return self._columns["k"].n

    @property
    def n_bytes(self) -> int:
        growing = (*self._columns.values(), self._record, self._keyword)
        return sum(column.n_bytes for column in growing) + self._weights.nbytes

    def layout(self) -> RankedSubscriptionArrays:
        """What kernels read and write; there may be more records than subscriptions."""
        record = self._record.used
        words = record.view(np.int32)
        return RankedSubscriptionArrays(
            record=record,
            record_words=words,
            x=record[X::RECORD],
            y=record[Y::RECORD],
            spatial_weight=record[WEIGHT::RECORD],
            length=record[LENGTH::RECORD],
            n_words=words[N_WORDS :: 2 * RECORD],
            **{name: column.used for name, column in self._columns.items()},
            keyword=self._keyword.used,
            weight_of=self._weights,
        )

    @property
    def floor(self) -> NDArray[np.float64]:
        """The score below which a message is of no use, by number, for indexes that find ahead: they write it."""
        return self._record.used[FLOOR::RECORD]

    def forget_words(self, number: NDArray[np.int32]) -> None:
        """Let no message have a word in common with these, who go: an index may have them listed still."""
        self.layout().n_words[number] = 0

    def alive(self) -> NDArray[np.int32]:
        """The numbers of all living subscriptions."""
        return np.flatnonzero(self._columns["is_alive"].used).astype(np.int32)

    def is_alive(self, number: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which of these are numbers of living subscriptions."""
        known = (number >= 0) & (number < self.n)
        known[known] = self._columns["is_alive"].used[number[known]] != 0
        return known

    def put(self, batch: RankedSubscriptionBatch, weights: NDArray[np.float64]) -> None:
        """Write (distinct) subscriptions, over older ones of the same number."""
        if len(batch.number) == 0:
            return
        missing = int(batch.number.max()) + 1 - self.n
        if missing > 0:
            for column in self._columns.values():
                column.extend(0, missing)
            self._record.extend(0.0, max(0, RECORD * self.n - self._record.n))
        self.remove(batch.number)
        first, n_words = self._keyword.n + batch.keyword_start[:-1], np.diff(batch.keyword_start)
        self._keyword.extend(batch.keyword)
        rows, own = self.layout(), batch.number
        rows.x[own], rows.y[own], rows.spatial_weight[own], rows.k[own] = batch.x, batch.y, batch.spatial_weight, batch.k
        rows.first[own], rows.n_words[own], rows.is_alive[own] = first, n_words, 1
        note_words(rows, own)
        self.most_words = max(self.most_words, int(n_words.max()))
        self.n_alive += len(own)
        self._weights = weights
        weigh_subscribers(rows, own, weights)
        self._clear_waste()

    def remove(self, number: NDArray[np.int32]) -> NDArray[np.int32]:
        """Mark subscriptions dead; returns those that were alive."""
        gone = number[self.is_alive(number)]
        self._columns["is_alive"].used[gone] = 0
        self.n_alive -= len(gone)
        return gone

    def weigh(self, weights: NDArray[np.float64]) -> None:
        """Take over new weights of words."""
        self._weights = weights
        weigh_subscribers(self.layout(), self.alive(), weights)

    def _clear_waste(self) -> None:
        alive = self.alive()
        first, n_words = self._columns["first"].used, self.layout().n_words
        n_used = int(n_words[alive].sum())
        if self._keyword.n - n_used <= max(_LEAST_WASTE, n_used):
            return
        starts = np.concatenate([[0], np.cumsum(n_words[alive])]).astype(np.int64)
        taken = np.repeat(first[alive] - starts[:-1], n_words[alive]) + np.arange(n_used)
        self._keyword = GrowingArray(np.int32, self._keyword.used[taken])
        first[alive] = starts[:-1]

    def copy(self) -> RankedSubscriptions:
        return RankedSubscriptions({name: aligned_copy(array) for name, array in self.arrays().items()})

    def arrays(self) -> dict[str, NDArray[Any]]:
        rest = {"record": self._record.used, "keyword": self._keyword.used, "weight_of": self._weights}
        return {name: column.used for name, column in self._columns.items()} | rest


# -- Ranked subscriptions back as the table they came from.


def subscriber_table(rankings: Sequence[Ranking], ids: Identifiers, keywords: KeywordKind) -> pa.Table:
    """The living subscriptions of all shards of an engine: id, keywords, x, y, k, spatial_weight."""
    tables = []
    for at, ranking in enumerate(rankings):
        numbers = ranking.alive()
        own_ids = ids.take((numbers * len(rankings) + at).astype(np.int32))
        tables.append(table_of_subscribers(ranking.subscribers, numbers, own_ids, keywords))
    return pa.concat_tables(tables)


def table_of_subscribers(
    subscribers: RankedSubscriptions, numbers: NDArray[np.int32], ids: pa.Array, keywords: KeywordKind
) -> pa.Table:
    """Some subscriptions, by their numbers."""
    rows = subscribers.layout()
    n_words = rows.n_words[numbers].astype(np.int64)
    start = np.concatenate([[0], np.cumsum(n_words)])
    word = rows.keyword[np.repeat(rows.first[numbers] - start[:-1], n_words) + np.arange(start[-1])]
    columns = {name: rows._asdict()[name][numbers] for name in ("x", "y", "k", "spatial_weight")}
    lists = pa.ListArray.from_arrays(pa.array(start, pa.int32()), _names_of(word, keywords))
    return pa.table({"id": ids, "keywords": lists, **columns})


def _names_of(word: NDArray[np.int32], keywords: KeywordKind) -> pa.Array:
    """Keywords by their ids, as words or numbers; each distinct one is looked up once."""
    distinct, which = np.unique(word, return_inverse=True)
    names = [keywords.space.name(one) for one in distinct.tolist()]
    if keywords.name == "numbers":
        return pa.array([int(name) for name in names], pa.int32()).take(pa.array(which))
    return pa.array(names, pa.string()).take(pa.array(which))
