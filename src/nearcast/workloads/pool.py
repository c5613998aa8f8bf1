"""A pool of messages that takes no memory: message i is made again from its number whenever it is asked for.

Reads a word distribution, a distribution of keyword counts and a mixture of places. Paper: Wang et al. 2017 (AP-Tree), §5.1.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.errors import WorkloadError
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.workloads.alias import AliasTable, alias_table, choose
from nearcast.workloads.arrivals import Arrivals
from nearcast.workloads.places import Places, place_of_numbers
from nearcast.workloads.randomness import draw, lane_of, stream_key, twist_of, uniforms
from nearcast.workloads.tables import KeywordLists, starts_of


@dataclass(frozen=True)
class KeywordCounts:
    """How many keywords a message has: `low + i` with probability `share[i]`."""

    low: int
    share: NDArray[np.float64]

    @property
    def high(self) -> int:
        return self.low + self.share.size - 1

    @property
    def mean(self) -> float:
        return float((self.share * np.arange(self.low, self.high + 1)).sum())


def bell_counts(low: int, high: int, middle: float) -> KeywordCounts:
    """Around `middle`, somewhat wider than Poisson: its probabilities to the power 0.6."""
    count = np.arange(low, high + 1, dtype=np.float64)
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, high + 1)))])[low:]
    share = np.exp(0.6 * (count * np.log(middle) - middle - log_factorial))
    return KeywordCounts(low, share / share.sum())


def even_counts(low: int, high: int) -> KeywordCounts:
    """Every count from `low` to `high` equally often."""
    return KeywordCounts(low, np.full(high - low + 1, 1.0 / (high - low + 1)))


def skewed_counts(low: int, high: int, median: float, sigma: float) -> KeywordCounts:
    """Log-normal: most messages short, a few very long."""
    count = np.arange(low, high + 1, dtype=np.float64)
    share = np.exp(-0.5 * ((np.log(count) - np.log(median)) / sigma) ** 2) / count
    return KeywordCounts(low, share / share.sum())


@dataclass(frozen=True)
class WordChooser:
    """Draws keyword ids: a rank from an alias table, then the id that the rank hides behind."""

    table: AliasTable
    keyword_of_rank: NDArray[np.int32]

    @classmethod
    def shuffled(cls, share: NDArray[np.float64], seed: int) -> WordChooser:
        """Ids in no order of frequency: an index has to find its own."""
        return cls(alias_table(share), np.random.default_rng(seed).permutation(share.size).astype(np.int32))

    @property
    def rank_of_keyword(self) -> NDArray[np.int32]:
        rank = np.empty_like(self.keyword_of_rank)
        rank[self.keyword_of_rank] = np.arange(rank.size, dtype=np.int32)
        return rank

    def lists(
        self, numbers: NDArray[np.int64], length: NDArray[np.int64], seed: int, purpose: str, repeats: bool = False
    ) -> KeywordLists:
        """For each number, `length` distinct keywords drawn independently; with `repeats` as often as they were drawn."""
        if length.size and int(length.max()) * 2 > self.keyword_of_rank.size:
            raise WorkloadError(
                f"{int(length.max())} distinct keywords out of {self.keyword_of_rank.size} are too many to draw; "
                "give a vocabulary_size at least twice as large as the longest list"
            )
        key, seen = stream_key(seed, purpose), np.zeros(self.keyword_of_rank.size, np.int32)
        if repeats:
            n_drawn = np.empty(length.size, np.int64)
            count_draws(self.table, self.keyword_of_rank, key, numbers, length, (n_drawn, seen))
            start = starts_of(n_drawn)
            keyword = np.empty(int(start[-1]), np.int32)
            fill_drawn(self.table, self.keyword_of_rank, key, numbers, start, keyword)
            return KeywordLists(start, keyword)
        start = starts_of(length)
        keyword = np.empty(int(start[-1]), np.int32)
        fill_keywords(self.table, self.keyword_of_rank, key, numbers, start, (keyword, seen))
        return KeywordLists(start, keyword)


@dataclass(frozen=True)
class MessagePool:
    """`size` messages under `seed`. With `repeats` words that are drawn again before there are enough are said again."""

    size: int
    seed: int
    words: WordChooser
    counts: KeywordCounts
    places: Places
    bounds: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0)
    repeats: bool = False

    def keywords(self, numbers: NDArray[np.int64]) -> KeywordLists:
        """The keywords of each message, distinct ones unless it repeats words."""
        reached = uniforms(stream_key(self.seed, "count"), numbers)
        length = self.counts.low + np.searchsorted(np.cumsum(self.counts.share)[:-1], reached, side="right")
        return self.words.lists(numbers, length, self.seed, "keyword", self.repeats)

    def locations(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Where each message lies."""
        return place_of_numbers(self.places, stream_key(self.seed, "place"), numbers)

    def times(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """When each message arrives."""
        return Arrivals(self.size, self.seed).times(numbers)


@inline_kernel
def drawn_at(table: Any, keyword_of_rank: Any, lane: Any, twist: Any, which: Any) -> Any:
    """The keyword of a draw."""
    return keyword_of_rank[choose(table, draw(lane, twist, 2 * which), draw(lane, twist, 2 * which + 1))]


@kernel
def count_draws(table: Any, keyword_of_rank: Any, key: Any, numbers: Any, length: Any, output: Any) -> None:
    """Write into `output[0]` after how many draws each number has `length` distinct keywords; `output[1]` as below."""
    n_drawn, seen = output
    for row in range(numbers.size):
        lane, twist = lane_of(key, numbers[row]), twist_of(key, numbers[row])
        n_distinct = 0
        n_drawn[row] = 0
        while n_distinct < length[row]:
            drawn = drawn_at(table, keyword_of_rank, lane, twist, n_drawn[row])
            n_drawn[row] += 1
            if seen[drawn] != row + 1:
                seen[drawn] = row + 1
                n_distinct += 1


@kernel
def fill_drawn(table: Any, keyword_of_rank: Any, key: Any, numbers: Any, start: Any, keyword: Any) -> None:
    """Write the keywords of each number as they are drawn."""
    for row in range(numbers.size):
        lane, twist = lane_of(key, numbers[row]), twist_of(key, numbers[row])
        for at in range(start[row], start[row + 1]):
            keyword[at] = drawn_at(table, keyword_of_rank, lane, twist, at - start[row])


@kernel
def fill_keywords(table: Any, keyword_of_rank: Any, key: Any, numbers: Any, start: Any, output: Any) -> None:
    """Write distinct keywords for each number into `output[0]`; `output[1]` (zeros, one per keyword) notes who has which."""
    keyword, seen = output
    for row in range(numbers.size):
        lane, twist = lane_of(key, numbers[row]), twist_of(key, numbers[row])
        n_drawn = 0
        filled = start[row]
        while filled < start[row + 1]:
            drawn = drawn_at(table, keyword_of_rank, lane, twist, n_drawn)
            n_drawn += 1
            if seen[drawn] != row + 1:
                seen[drawn] = row + 1
                keyword[filled] = drawn
                filled += 1
