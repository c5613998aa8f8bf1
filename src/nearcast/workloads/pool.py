"""A pool of messages that takes no memory: message i is made from its number whenever it is needed.

A pool combines a word distribution, a distribution of keyword counts, a mixture of locations and arrival times.
Paper: Wang et al. 2017 (AP-Tree), §5.1.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.errors import WorkloadError
from nearcast.kernels.compile import inline_kernel, kernel
from nearcast.workloads.locations import LocationMixture, locations_of
from nearcast.workloads.randomness import (
    UNIT,
    AliasTable,
    alias_table,
    choose_entry,
    draw,
    draws,
    high_key,
    low_key,
    stream_key,
    uniforms,
)
from nearcast.workloads.tables import KeywordLists, starts_of

DAY_S = 86_400.0
BLOCK = 256
# 2012-05-01 to 2012-08-31: the months in which the papers' tweets were collected.
MAY_2012 = 1_335_830_400.0
MONTHS_S = 123 * DAY_S


@dataclass(frozen=True)
class Arrivals:
    """When messages arrive: a Poisson stream over months with a daily rhythm, the time of any message from its number alone.

    `n` arrivals within `length_s` from `start_s`. The rate swings by `rhythm` around its mean and is highest at `peak_hour`.
    Numbers are grouped in blocks that share the stream evenly. Inside a block the arrivals are those of a Poisson process
    with that many arrivals (normalised exponential gaps). So times grow with the number, and no earlier message is needed.
    """

    n: int
    seed: int
    start_s: float = MAY_2012
    length_s: float = MONTHS_S
    rhythm: float = 0.7
    peak_hour: float = 20.0

    def times(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """The arrival time of each number, in seconds since 1970."""
        blocks, row = np.unique(numbers // BLOCK, return_inverse=True)
        shares = np.empty(numbers.size)
        order = np.argsort(row, kind="stable")
        # Blocks are made whole, 1024 at a time: scattered numbers do not need much memory.
        edges = np.searchsorted(row[order], np.arange(0, blocks.size + 1024, 1024))
        for chunk in range(edges.size - 1):
            rows = order[edges[chunk] : edges[chunk + 1]]
            within = self._block_shares(blocks[chunk * 1024 : (chunk + 1) * 1024])
            shares[rows] = within[row[rows] - chunk * 1024, numbers[rows] % BLOCK]
        position = (numbers // BLOCK + shares) * (BLOCK / max(self.n, BLOCK))
        return self.start_s + self._clock(position * self.length_s)

    def _block_shares(self, blocks: NDArray[np.int64]) -> NDArray[np.float64]:
        """The position of each arrival in its block: (blocks, BLOCK) growing values in (0, 1)."""
        slots = blocks[:, None] * (BLOCK + 1) + np.arange(BLOCK + 1)
        gaps = -np.log((draws(stream_key(self.seed, "arrivals"), slots) + 1) * UNIT) + 1e-12
        elapsed = np.cumsum(gaps, axis=1)
        shares: NDArray[np.float64] = elapsed[:, :BLOCK] / elapsed[:, BLOCK:]
        return shares

    def _clock(self, even_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map evenly spaced seconds to clock seconds that follow the daily rhythm."""
        clock = np.linspace(0.0, DAY_S, 1441)
        phase = 2 * np.pi * (clock / DAY_S - self.peak_hour / 24)
        flow = clock + self.rhythm * DAY_S / (2 * np.pi) * (np.sin(phase) - np.sin(phase[0]))
        day, rest = np.divmod(even_s, DAY_S)
        seconds: NDArray[np.float64] = day * DAY_S + np.interp(rest, flow, clock)
        return seconds


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
    """Counts around `middle`, wider than Poisson: its probabilities to the power 0.6."""
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
    """Draws keyword ids: a rank from an alias table, then the id with that rank."""

    table: AliasTable
    keyword_of_rank: NDArray[np.int32]

    @classmethod
    def shuffled(cls, share: NDArray[np.float64], seed: int) -> WordChooser:
        """Ids in random order, so that an index cannot rely on ids sorted by frequency."""
        return cls(alias_table(share), np.random.default_rng(seed).permutation(share.size).astype(np.int32))

    @property
    def rank_of_keyword(self) -> NDArray[np.int32]:
        rank = np.empty_like(self.keyword_of_rank)
        rank[self.keyword_of_rank] = np.arange(rank.size, dtype=np.int32)
        return rank

    def lists(
        self, numbers: NDArray[np.int64], length: NDArray[np.int64], seed: int, purpose: str, repeats: bool = False
    ) -> KeywordLists:
        """For each number, `length` distinct keywords. With `repeats`, each as often as it was drawn."""
        if length.size and int(length.max()) * 2 > self.keyword_of_rank.size:
            raise WorkloadError(
                f"{int(length.max())} distinct keywords out of {self.keyword_of_rank.size} are too many to draw; "
                "give a vocabulary_size at least twice as large as the longest list"
            )
        key, last_row = stream_key(seed, purpose), np.zeros(self.keyword_of_rank.size, np.int32)
        if repeats:
            n_drawn = np.empty(length.size, np.int64)
            count_draws(self.table, self.keyword_of_rank, key, numbers, length, (n_drawn, last_row))
            start = starts_of(n_drawn)
            keyword = np.empty(int(start[-1]), np.int32)
            fill_repeated_keywords(self.table, self.keyword_of_rank, key, numbers, start, keyword)
            return KeywordLists(start, keyword)
        start = starts_of(length)
        keyword = np.empty(int(start[-1]), np.int32)
        fill_keywords(self.table, self.keyword_of_rank, key, numbers, start, (keyword, last_row))
        return KeywordLists(start, keyword)


@dataclass(frozen=True)
class MessagePool:
    """`size` messages under `seed`. With `repeats`, words that are drawn again before the list is full are repeated."""

    size: int
    seed: int
    words: WordChooser
    counts: KeywordCounts
    mixture: LocationMixture
    bounds: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0)
    repeats: bool = False

    def keywords(self, numbers: NDArray[np.int64]) -> KeywordLists:
        """The keywords of each message; distinct, unless the pool has `repeats`."""
        uniform = uniforms(stream_key(self.seed, "count"), numbers)
        length = self.counts.low + np.searchsorted(np.cumsum(self.counts.share)[:-1], uniform, side="right")
        return self.words.lists(numbers, length, self.seed, "keyword", self.repeats)

    def locations(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The location of each message."""
        return locations_of(self.mixture, stream_key(self.seed, "place"), numbers)

    def times(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """The arrival time of each message."""
        return Arrivals(self.size, self.seed).times(numbers)


@inline_kernel
def draw_keyword(table: Any, keyword_of_rank: Any, low: Any, high: Any, attempt: Any) -> Any:
    """The keyword of a draw."""
    return keyword_of_rank[choose_entry(table, draw(low, high, 2 * attempt), draw(low, high, 2 * attempt + 1))]


@kernel
def count_draws(table: Any, keyword_of_rank: Any, key: Any, numbers: Any, length: Any, output: Any) -> None:
    """Write into `output[0]` how many draws give each number `length` distinct keywords. `output[1]`: see `fill_keywords`."""
    n_drawn, last_row = output
    for row in range(numbers.size):
        low, high = low_key(key, numbers[row]), high_key(key, numbers[row])
        n_distinct = 0
        n_drawn[row] = 0
        while n_distinct < length[row]:
            word = draw_keyword(table, keyword_of_rank, low, high, n_drawn[row])
            n_drawn[row] += 1
            if last_row[word] != row + 1:
                last_row[word] = row + 1
                n_distinct += 1


@kernel
def fill_repeated_keywords(table: Any, keyword_of_rank: Any, key: Any, numbers: Any, start: Any, keyword: Any) -> None:
    """Write the keywords of each number as they are drawn."""
    for row in range(numbers.size):
        low, high = low_key(key, numbers[row]), high_key(key, numbers[row])
        for at in range(start[row], start[row + 1]):
            keyword[at] = draw_keyword(table, keyword_of_rank, low, high, at - start[row])


@kernel
def fill_keywords(table: Any, keyword_of_rank: Any, key: Any, numbers: Any, start: Any, output: Any) -> None:
    """Write distinct keywords of each number into `output[0]`. `output[1]` is scratch: the last row of each keyword, plus 1."""
    keyword, last_row = output
    for row in range(numbers.size):
        low, high = low_key(key, numbers[row]), high_key(key, numbers[row])
        n_drawn = 0
        filled = start[row]
        while filled < start[row + 1]:
            word = draw_keyword(table, keyword_of_rank, low, high, n_drawn)
            n_drawn += 1
            if last_row[word] != row + 1:
                last_row[word] = row + 1
                keyword[filled] = word
                filled += 1
