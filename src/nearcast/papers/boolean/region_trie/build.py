"""Sort the clauses by their keywords and cut them into nodes, level by level."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.layouts import ClauseArrays
from nearcast.papers.boolean.region_trie.layout import NO_RANK, FiledArrays, TrieArrays
from nearcast.papers.boolean.region_trie.order import file_clauses, in_order


def build_trie(
    clauses: ClauseArrays, slots: NDArray[np.int32], n_keywords: int, keyword_order: str
) -> tuple[FiledArrays, TrieArrays, NDArray[np.int64]]:
    """The clauses in trie order, the trie over them, and the number of clauses that name the keyword of each rank.

    On each level only the clauses that go on below it are sorted, by node and next keyword; one that has no next keyword
    comes first (Paper: the order of a token set and its prefix is not defined; ids of a node would not be a range).
    """
    filed, frequency = file_clauses(clauses, slots, n_keywords, keyword_order)
    order = np.arange(len(slots))
    n_words = np.diff(filed.word_start)
    n_keys = int(filed.n_ranks[0]) + 1
    boxes = filed.box.reshape(-1, 4)
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
        key[goes_on] += 1 + filed.word[filed.word_start[member[goes_on]] + depth]
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
    return in_order(filed, order), _assembled(levels, level_boxes), frequency


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
