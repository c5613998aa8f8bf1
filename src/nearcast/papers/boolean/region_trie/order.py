"""The order of keywords, and messages and clauses written in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import take_lists
from nearcast.kernels.layouts import ClauseArrays, MessageArrays
from nearcast.papers.boolean.region_trie.kernels.match import RADIX, rank_keywords
from nearcast.papers.boolean.region_trie.layout import NO_RANK, FiledArrays, RankedMessages

FREQUENT_FIRST, RARE_FIRST, BY_ID = "frequent_first", "rare_first", "id"
KEYWORD_ORDERS = (FREQUENT_FIRST, RARE_FIRST, BY_ID)

_LOW_HALF = (1 << 32) - 1


def file_clauses(
    clauses: ClauseArrays, slots: NDArray[np.int32], n_keywords: int, order: str
) -> tuple[FiledArrays, NDArray[np.int64]]:
    """The clauses at `slots`, as they stand (not yet in trie order), and how many of them name the keyword of each rank."""
    start, keyword = take_lists(clauses.keyword_start, clauses.keyword, slots)
    frequency = np.bincount(keyword, minlength=n_keywords)
    rank, by_rank = _rank_keywords(frequency, order)
    n_ranks = len(by_rank)
    n_words = np.diff(start)
    # Sorted as numbers (clause, rank): each clause's ranks ascend.
    word = _sorted_runs(n_words, rank[keyword])
    by_rarity = np.lexsort((np.arange(n_ranks), by_rank))
    rarity = np.empty(n_ranks + 1, np.int64)
    rarity[by_rarity] = np.arange(n_ranks)
    rarest = np.full(len(slots), n_ranks, np.int32)
    has_words = n_words > 0
    if has_words.any():
        rarest[has_words] = by_rarity[np.minimum.reduceat(rarity[word], start[:-1][has_words])]
    box = np.stack([clauses.x0[slots], clauses.y0[slots], clauses.x1[slots], clauses.y1[slots]], axis=1).ravel()
    return FiledArrays(rank, np.array([n_ranks], np.int64), slots, box, start, word, rarest), by_rank


def in_order(filed: FiledArrays, order: NDArray[np.int64]) -> FiledArrays:
    """The same clauses, the one at `order[i]` at position `i`."""
    word_start, word = take_lists(filed.word_start, filed.word, order)
    box = np.ascontiguousarray(filed.box.reshape(-1, 4)[order]).ravel()
    return filed._replace(clause=filed.clause[order], box=box, word_start=word_start, word=word, rarest=filed.rarest[order])


def rank_messages(filed: FiledArrays, messages: MessageArrays) -> RankedMessages:
    """The keywords of each message as ascending ranks, those no filed clause names left out."""
    start, keyword = messages.keyword_start, messages.keyword
    ranks = np.empty(len(keyword) + len(start) - 1, np.int32)
    ranked_start, spare = np.empty(len(start), np.int64), np.empty(int(np.diff(start).max(initial=0)), np.int32)
    every = int(filed.n_ranks[0])
    n = rank_keywords(filed.rank, every, start, keyword, ranked_start, ranks, spare, np.empty(RADIX, np.int64))
    return RankedMessages(ranked_start, ranks[:n])


def _rank_keywords(frequency: NDArray[np.int64], order: str) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The rank of each keyword in use, and the frequencies by rank."""
    used = np.flatnonzero(frequency)
    if order == FREQUENT_FIRST:
        used = used[np.argsort(-frequency[used], kind="stable")]
    elif order == RARE_FIRST:
        used = used[np.argsort(frequency[used], kind="stable")]
    rank = np.full(len(frequency), NO_RANK, np.int32)
    rank[used] = np.arange(len(used), dtype=np.int32)
    return rank, frequency[used]


def _sorted_runs(lengths: NDArray[np.int64], values: NDArray[np.int32]) -> NDArray[np.int32]:
    """Each run of `values` sorted; runs have these lengths."""
    numbers = np.repeat(np.arange(len(lengths)), lengths) << 32 | values
    numbers.sort()
    return (numbers & _LOW_HALF).astype(np.int32)
