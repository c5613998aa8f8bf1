"""Order keywords, sort the clauses by them and cut them into nodes, level by level; write messages in that order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.clauses import take_lists
from nearcast.kernels.layouts import ClauseArrays, MessageArrays
from nearcast.papers.boolean.region_trie.kernels import NO_RANK, RADIX, RankedMessages, TrieArrays, TrieEntries, rank_keywords


def build_trie(
    clauses: ClauseArrays, slots: NDArray[np.int32], n_keywords: int, keyword_order: str
) -> tuple[TrieEntries, TrieArrays, NDArray[np.int64]]:
    """The clauses in trie order, the trie over them, and the number of clauses that have the keyword of each rank.

    On each level only the clauses that go on below it are sorted, by node and next keyword; one that has no next keyword
    comes first (Paper: the order of a token set and its prefix is not defined; ids of a node would not be a range).
    """
    entries, frequency = file_clauses(clauses, slots, n_keywords, keyword_order)
    order = np.arange(len(slots))
    n_words = np.diff(entries.word_start)
    n_keys = int(entries.n_ranks[0]) + 1
    boxes = entries.box.reshape(-1, 4)
    levels: list[tuple[NDArray[np.int64], ...]] = []
    level_boxes = []
    # Of the current level: for each node its keyword, first position and size; for each clause in it position and node.
    word, first, size = np.array([NO_RANK]), np.zeros(1, np.int64), np.array([len(slots)])
    position, node = np.arange(len(slots)), np.zeros(len(slots), np.int64)
    while len(word):
        depth = len(levels)
        member = order[position]
        level_boxes.append(_boxes_around(boxes[member], np.cumsum(size) - size))
        key = node * n_keys
        goes_on = n_words[member] > depth
        key[goes_on] += 1 + entries.word[entries.word_start[member[goes_on]] + depth]
        by_key = np.argsort(key, kind="stable")
        order[position] = member[by_key]
        key = key[by_key]
        node, next_word = key // n_keys, key % n_keys - 1
        goes_on = next_word != NO_RANK
        n_ending = np.bincount(node[~goes_on], minlength=len(word))
        position, node, next_word = position[goes_on], node[goes_on], next_word[goes_on]
        begins = np.ones(len(position), np.bool_)
        begins[1:] = (node[1:] != node[:-1]) | (next_word[1:] != next_word[:-1])
        n_children = np.bincount(node[begins], minlength=len(word))
        levels.append((word, first, first + n_ending, first + size, n_children))
        word, first = next_word[begins], position[begins]
        size = np.diff(np.append(np.flatnonzero(begins), len(position)))
        node = np.cumsum(begins) - 1
    return in_order(entries, order), _assembled(levels, level_boxes), frequency


def _boxes_around(boxes: NDArray[np.float64], starts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The box around each run of boxes; of no boxes at all, one that nothing meets."""
    if len(boxes) == 0:
        return np.array([[np.inf, np.inf, -np.inf, -np.inf]])
    low = np.minimum.reduceat(boxes[:, :2], starts, axis=0)
    high = np.maximum.reduceat(boxes[:, 2:], starts, axis=0)
    return np.concatenate([low, high], axis=1)


def _assembled(levels: list[tuple[NDArray[np.int64], ...]], boxes: list[NDArray[np.float64]]) -> TrieArrays:
    word, first, ending_stop, stop, n_children = (np.concatenate(column) for column in zip(*levels, strict=True))
    # The root is node 0; the children of all nodes follow in order.
    child_start = 1 + np.concatenate([[0], np.cumsum(n_children)])
    level_start = np.concatenate([[0], np.cumsum([len(level[0]) for level in levels])])
    word, child_start, first, ending_stop, stop = (
        column.astype(np.int32) for column in (word, child_start, first, ending_stop, stop)
    )
    return TrieArrays(
        word, child_start, first, ending_stop, stop, np.concatenate(boxes).ravel(), level_start, np.array([n_children.max()])
    )


FREQUENT_FIRST, RARE_FIRST, BY_ID = "frequent_first", "rare_first", "id"
KEYWORD_ORDERS = (FREQUENT_FIRST, RARE_FIRST, BY_ID)

_LOW_HALF = (1 << 32) - 1


def file_clauses(
    clauses: ClauseArrays, slots: NDArray[np.int32], n_keywords: int, order: str
) -> tuple[TrieEntries, NDArray[np.int64]]:
    """The clauses at `slots`, not yet in trie order, and how many of them have the keyword of each rank."""
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
    return TrieEntries(rank, np.array([n_ranks], np.int64), slots, box, start, word, rarest), by_rank


def in_order(entries: TrieEntries, order: NDArray[np.int64]) -> TrieEntries:
    """The same clauses, the one at `order[i]` at position `i`."""
    word_start, word = take_lists(entries.word_start, entries.word, order)
    box = np.ascontiguousarray(entries.box.reshape(-1, 4)[order]).ravel()
    return entries._replace(
        clause=entries.clause[order], box=box, word_start=word_start, word=word, rarest=entries.rarest[order]
    )


def rank_messages(entries: TrieEntries, messages: MessageArrays) -> RankedMessages:
    """The keywords of each message as ascending ranks, without those that no clause has."""
    start, keyword = messages.keyword_start, messages.keyword
    ranks = np.empty(len(keyword) + len(start) - 1, np.int32)
    ranked_start, spare = np.empty(len(start), np.int64), np.empty(int(np.diff(start).max(initial=0)), np.int32)
    common_rank = int(entries.n_ranks[0])
    n = rank_keywords(entries.rank, common_rank, start, keyword, ranked_start, ranks, spare, np.empty(RADIX, np.int64))
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
