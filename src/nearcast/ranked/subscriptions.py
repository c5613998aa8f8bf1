"""Ranked subscriptions as columns by number: location, keywords, k, spatial weight; and as a table again."""

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
from nearcast.ranked.kernels.layouts import LENGTH, N_WORDS, RECORD, THRESHOLD, WEIGHT, RankedSubscriptionArrays, X, Y
from nearcast.ranked.kernels.scoring import weigh_subscriptions, write_record_words

if TYPE_CHECKING:
    from nearcast.ranked.tick_engine import RankedEngine

_BY_NUMBER = {"k": np.int32, "first": np.int64, "is_alive": np.uint8}
# The least number of records. With one record, Numba takes a column of it for a contiguous array and compiles everything again.
_FEWEST_RECORDS = 2
# The keywords of replaced subscriptions are dropped when they are the larger part and at least this many.
_LEAST_WASTE = 4096


class RankedSubscriptionBatch(NamedTuple):
    """Subscriptions to write; keywords are sorted and distinct in each."""

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
    """Rows by number. The engine gives out the numbers, by id."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]] | None = None) -> None:
        saved = arrays or {}
        self._columns = {name: GrowingArray(dtype, saved.get(name)) for name, dtype in _BY_NUMBER.items()}
        self._record = GrowingArray(np.float64, saved.get("record", np.zeros(_FEWEST_RECORDS * RECORD)))
        self._keyword = GrowingArray(np.int32, saved.get("keyword"))
        self._weights: NDArray[np.float64] = saved.get("weight_of", np.zeros(0))
        self.n_alive = int(np.count_nonzero(self._columns["is_alive"].used))
        # The largest number of words that a subscription has, or had.
        self.most_words = int(self.layout().n_words.max())

    @property
    def n(self) -> int:
        """Numbers in use, those of dead subscriptions included."""
        return self._columns["k"].n

    @property
    def n_bytes(self) -> int:
        growing = (*self._columns.values(), self._record, self._keyword)
        return sum(column.n_bytes for column in growing) + self._weights.nbytes

    def layout(self) -> RankedSubscriptionArrays:
        """The arrays for kernels; there may be more records than subscriptions."""
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
    def threshold(self) -> NDArray[np.float64]:
        """The copy of the threshold in the record, by number, for an index that finds ahead: it writes it.

        Its search reads the record anyway, so the copy costs no line of memory more. The engine uses `ResultLists.threshold`.
        """
        return self._record.used[THRESHOLD::RECORD]

    def clear_keywords(self, number: NDArray[np.int32]) -> None:
        """Remove the words of subscriptions that go, so that no message matches them: an index may still list them."""
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
        rows, numbers = self.layout(), batch.number
        rows.x[numbers], rows.y[numbers], rows.spatial_weight[numbers], rows.k[numbers] = (
            batch.x,
            batch.y,
            batch.spatial_weight,
            batch.k,
        )
        rows.first[numbers], rows.n_words[numbers], rows.is_alive[numbers] = first, n_words, 1
        write_record_words(rows, numbers)
        self.most_words = max(self.most_words, int(n_words.max()))
        self.n_alive += len(numbers)
        self._weights = weights
        weigh_subscriptions(rows, numbers, weights)
        self._clear_waste()

    def remove(self, number: NDArray[np.int32]) -> NDArray[np.int32]:
        """Mark subscriptions as dead; returns those that were alive."""
        gone = number[self.is_alive(number)]
        self._columns["is_alive"].used[gone] = 0
        self.n_alive -= len(gone)
        return gone

    def apply_word_weights(self, weights: NDArray[np.float64]) -> None:
        """Use new weights of words."""
        self._weights = weights
        weigh_subscriptions(self.layout(), self.alive(), weights)

    def _clear_waste(self) -> None:
        alive = self.alive()
        first, n_words = self._columns["first"].used, self.layout().n_words
        n_used = int(n_words[alive].sum())
        if self._keyword.n - n_used <= max(_LEAST_WASTE, n_used):
            return
        starts = np.concatenate([[0], np.cumsum(n_words[alive])]).astype(np.int64)
        kept_positions = np.repeat(first[alive] - starts[:-1], n_words[alive]) + np.arange(n_used)
        self._keyword = GrowingArray(np.int32, self._keyword.used[kept_positions])
        first[alive] = starts[:-1]

    def copy(self) -> RankedSubscriptions:
        return RankedSubscriptions({name: aligned_copy(array) for name, array in self.arrays().items()})

    def arrays(self) -> dict[str, NDArray[Any]]:
        rest = {"record": self._record.used, "keyword": self._keyword.used, "weight_of": self._weights}
        return {name: column.used for name, column in self._columns.items()} | rest


# --- as a table --------------------------------------------------------------------------------------------------


def table_of_shards(engines: Sequence[RankedEngine], ids: Identifiers, keywords: KeywordKind) -> pa.Table:
    """The living subscriptions of all shards of an engine: id, keywords, x, y, k, spatial_weight."""
    tables = []
    for at, engine in enumerate(engines):
        numbers = engine.alive()
        shard_ids = ids.take((numbers * len(engines) + at).astype(np.int32))
        tables.append(table_of_subscriptions(engine.subscriptions, numbers, shard_ids, keywords))
    return pa.concat_tables(tables)


def table_of_subscriptions(
    subscriptions: RankedSubscriptions, numbers: NDArray[np.int32], ids: pa.Array, keywords: KeywordKind
) -> pa.Table:
    """These subscriptions, by their numbers, as a table like the one they came from."""
    rows = subscriptions.layout()
    n_words = rows.n_words[numbers].astype(np.int64)
    start = np.concatenate([[0], np.cumsum(n_words)])
    word = rows.keyword[np.repeat(rows.first[numbers] - start[:-1], n_words) + np.arange(start[-1])]
    columns = {name: rows._asdict()[name][numbers] for name in ("x", "y", "k", "spatial_weight")}
    lists = pa.ListArray.from_arrays(pa.array(start, pa.int32()), _names_of(word, keywords))
    return pa.table({"id": ids, "keywords": lists, **columns})


def _names_of(word: NDArray[np.int32], keywords: KeywordKind) -> pa.Array:
    """The words or numbers of keyword ids; each distinct id is looked up once."""
    distinct, which = np.unique(word, return_inverse=True)
    names = [keywords.space.name(one) for one in distinct.tolist()]
    if keywords.name == "numbers":
        return pa.array([int(name) for name in names], pa.int32()).take(pa.array(which))
    return pa.array(names, pa.string()).take(pa.array(which))
