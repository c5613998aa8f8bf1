"""Variants of short messages: interests with operators, bursts of equal messages, long messages and ranges.

Each takes words, locations and sampling from `tweets` or `poi` and changes the messages or the subscriptions.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast.errors import WorkloadError
from nearcast.workloads.base import Space, Workload
from nearcast.workloads.pool import MessagePool, even_counts
from nearcast.workloads.randomness import draws, integers, stream_key, uniforms
from nearcast.workloads.sampling import MessageSource, RangeReading, SubscriptionSampling
from nearcast.workloads.short_messages import PointsOfInterest, Tweets
from nearcast.workloads.tables import Boxes, KeywordLists
from nearcast.workloads.words import Frequencies

OPERATORS = (" AND ", " OR ")


@dataclass(frozen=True)
class BooleanExpressions(Workload):
    """Subscriptions whose interest mixes AND and OR, over the messages of `tweets`.

    Paper: Wang et al. 2017 (AP-Tree), §5.1.1: the keywords of a sampled message are cut in two runs joined by AND or OR, each
    run is all AND or all OR. NOT is an addition of ours.

    Keywords of messages are words (list<string>); subscriptions have an `interest` and no `keywords`. `n_keywords` is 3 to
    7 in the paper (5 when the number of subscriptions varies); `negated` is the share of subscriptions that also exclude one
    word of the vocabulary.
    """

    name: ClassVar[str] = "boolean_expressions"
    description: ClassVar[str] = "interests with AND and OR over the messages of tweets, as words (AP-Tree)"
    space: ClassVar[Space] = "plane"

    range: RangeReading = "side"
    stop_words: Literal["kept", "removed"] = "kept"
    vocabulary_size: int = 1_700_000
    pool: int = 12_700_000
    seed: int = 7
    range_low: float = 0.01
    range_high: float = 1.0
    n_keywords: int | tuple[int, int] = 5
    negated: float = 0.0
    frequencies: Frequencies = "auto"

    def __post_init__(self) -> None:
        if not 0 <= self.negated <= 1:
            raise WorkloadError(f"negated={self.negated!r} is not a share; give a number from 0 to 1")

    @cached_property
    def base(self) -> Tweets:
        """The workload without operators: the same messages and locations."""
        return Tweets(**{field.name: getattr(self, field.name) for field in fields(self) if field.name != "negated"})

    @property
    def source(self) -> MessagePool:
        return self.base.source

    @property
    def sampling(self) -> SubscriptionSampling:
        return self.base.sampling

    @property
    def words(self) -> pa.Array:
        return self.base.words

    def messages_at(self, numbers: NDArray[np.int64]) -> pa.Table:
        return self.with_words(super().messages_at(numbers))

    def subscriptions(self, n: int, seed: int = 1) -> pa.Table:
        keywords, boxes = self.sample_subscriptions(n, seed)
        ids = np.arange(n)
        spelling = quote_operators(self.words)
        interest = write_interests(keywords, ids, spelling, seed)
        if self.negated:
            excluded = self.base.chooser.lists(ids, np.ones(n, np.int64), seed, "excluded keyword").keyword
            is_negated = uniforms(stream_key(seed, "is negated"), ids) < self.negated
            # A word that is also required would make the interest impossible.
            is_negated &= ~np.isin(
                _pair_codes(ids, excluded), _pair_codes(np.repeat(ids, np.diff(keywords.start)), keywords.keyword)
            )
            with_not = pc.binary_join_element_wise("(", interest, ") AND NOT ", spelling.take(pa.array(excluded)), "")
            interest = pc.if_else(pa.array(is_negated), with_not, interest)
        return pa.table({"id": ids, "interest": interest, **boxes._asdict()})

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "frequencies": self.base.describe()["frequencies"]}


def quote_operators(words: pa.Array) -> pa.Array:
    """The words as an interest spells them: in quotes if they would read as an operator."""
    is_operator = pc.is_in(words, value_set=pa.array(["and", "or", "not"]))
    return pc.if_else(is_operator, pc.binary_join_element_wise('"', words, '"', ""), words)


def write_interests(keywords: KeywordLists, ids: NDArray[np.int64], words: pa.Array, seed: int) -> pa.Array:
    """One interest for each list of keywords. Rows with the same operators and lengths are written together."""
    length = np.diff(keywords.start).astype(np.int64)
    cut = 1 + ((draws(stream_key(seed, "cut"), ids) * np.maximum(length - 1, 1)) >> 32)
    operators = integers(stream_key(seed, "operators"), ids, 0, 7)
    forms, form = np.unique((length * 64 + cut) * 8 + operators, return_inverse=True)
    texts, order = [], []
    for position, code in enumerate(forms.tolist()):
        rows = np.flatnonzero(form == position)
        n_words, left = divmod(code // 8, 64)
        word_columns = [words.take(pa.array(keywords.keyword[keywords.start[rows] + offset])) for offset in range(n_words)]
        texts.append(_join_runs(word_columns, left, code % 8))
        order.append(rows)
    if not texts:
        return pa.array([], pa.string())
    rank = np.empty(ids.size, np.int64)
    rank[np.concatenate(order)] = np.arange(ids.size)
    return pa.concat_arrays(texts).take(pa.array(rank))


def _join_runs(word_columns: list[pa.Array], left: int, operators: int) -> pa.Array:
    """Bit 0 of `operators` joins the runs, bits 1 and 2 join the words of the left and the right one."""
    between, first, second = (OPERATORS[(operators >> bit) & 1] for bit in range(3))
    runs = [_run(word_columns[:left], first), _run(word_columns[left:], second)]
    return pc.binary_join_element_wise(*(run for run in runs if run is not None), between)


def _run(word_columns: list[pa.Array], operator: str) -> pa.Array | None:
    if not word_columns:
        return None
    joined = pc.binary_join_element_wise(*word_columns, operator)
    return joined if len(word_columns) == 1 else pc.binary_join_element_wise("(", joined, ")", "")


def _pair_codes(ids: NDArray[np.int64], keyword: NDArray[np.int32]) -> NDArray[np.int64]:
    paired: NDArray[np.int64] = (ids << 32) | keyword
    return paired


# The largest distance from the first message of a burst on each axis, as a share of the side.
_BURST_RADIUS = 1e-4


@dataclass(frozen=True)
class Bursts(Workload):
    """An event that everybody writes about: runs of nearly equal messages in the stream of `tweets`.

    Of every `every` messages the first `burst` have the keywords of the first one and lie near it. Subscriptions are those of
    `tweets`.
    """

    name: ClassVar[str] = "bursts"
    description: ClassVar[str] = "the stream of tweets with runs of nearly equal messages in one place"
    space: ClassVar[Space] = "plane"

    burst: int = 10_000
    every: int = 100_000
    stop_words: Literal["kept", "removed"] = "kept"
    vocabulary_size: int = 1_700_000
    pool: int = 12_700_000
    seed: int = 7
    range_low: float = 0.01
    range_high: float = 1.0
    frequencies: Frequencies = "auto"

    def __post_init__(self) -> None:
        if not 1 <= self.burst <= self.every:
            raise WorkloadError(f"burst={self.burst}, every={self.every}: give 1 <= burst <= every")

    @cached_property
    def base(self) -> Tweets:
        """The workload without bursts."""
        return Tweets(
            stop_words=self.stop_words,
            vocabulary_size=self.vocabulary_size,
            pool=self.pool,
            seed=self.seed,
            range_low=self.range_low,
            range_high=self.range_high,
            frequencies=self.frequencies,
        )

    @cached_property
    def source(self) -> MessageSource:
        return _BurstSource(self.base.source, self.burst, self.every, self.seed)

    @property
    def sampling_source(self) -> MessageSource:
        return self.base.source

    @property
    def sampling(self) -> SubscriptionSampling:
        return self.base.sampling

    @property
    def words(self) -> pa.Array:
        return self.base.words


@dataclass(frozen=True)
class _BurstSource:
    """The messages of another source; in a burst they repeat the first one."""

    source: MessageSource
    burst: int
    every: int
    seed: int

    @property
    def size(self) -> int:
        return self.source.size

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        return self.source.bounds

    def keywords(self, numbers: NDArray[np.int64]) -> KeywordLists:
        return self.source.keywords(self._first_of_run(numbers))

    def locations(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        first = self._first_of_run(numbers)
        low_x, low_y, high_x, high_y = self.bounds
        shifted = []
        for axis, coordinate, low, high in zip(
            "xy", self.source.locations(first), (low_x, low_y), (high_x, high_y), strict=True
        ):
            offset = (2 * uniforms(stream_key(self.seed, f"burst {axis}"), numbers) - 1) * _BURST_RADIUS * (high - low)
            shifted.append(np.where(first == numbers, coordinate, np.clip(coordinate + offset, low, high)))
        return shifted[0], shifted[1]

    def times(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.source.times(numbers)

    def _first_of_run(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        within = numbers % self.every
        return np.where(within < self.burst, numbers - within, numbers)


LENGTHS = {"short": (6, 20), "long": (100, 1000)}


@dataclass(frozen=True)
class PaperGroups(Workload):
    """The four message groups of the R^t-tree and LFilter papers: short or long, at a point or over a range.

    Paper: Li et al. 2013 (R^t-tree), §6; LFilter, §6: short 6-20 keywords, long 100-1000, 10,000 messages each, 10M
    subscriptions.

    Subscriptions are those of `over`; only the messages differ between the groups. `vocabulary_size` 0 means that of `over`.
    `message_range_low` and `message_range_high` are percent of the side of the unit square, for width and height
    independently.
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
        """The workload whose words, locations and subscriptions are used."""
        kind = Tweets if self.over == "tweets" else PointsOfInterest
        size: dict[str, Any] = {"vocabulary_size": self.vocabulary_size, "pool": self.pool, "seed": self.seed}
        return kind(**size, range_low=self.range_low, range_high=self.range_high)

    @cached_property
    def source(self) -> MessagePool:
        base = self.base.source
        return MessagePool(self.pool, self.seed, base.words, even_counts(*LENGTHS[self.length]), base.mixture)

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
