"""Sorted keyword sets and lists by keyword: found with few and with many keywords, by stamp and by search."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from nearcast.papers.boolean.kernels import keyword_lists, rtree
from nearcast.papers.boolean.kernels.keyword_lists import NO_KEYWORD


def common_of(members: list[int], message: list[int]) -> tuple[bool, list[int]]:
    """What the two kernels say of a set that stands in the middle of an array, with the message in the middle of another."""
    values = np.array([0, *members, 0], np.int32)
    keyword = np.array([7, *message, 7], np.int32)
    stamp = np.zeros(1000, np.int32)
    stamp[np.array(message, np.int32)] = 3
    found = np.empty(len(message) + 1, np.int64)
    ends = (1, 1 + len(members), stamp, 3, keyword, 1, 1 + len(message))
    n_found = keyword_lists.find_common(values, *ends, found)
    return bool(keyword_lists.has_common(values, *ends)), values[found[:n_found]].tolist()


@pytest.mark.parametrize("seed", range(60))
def test_common_keywords_are_found_whichever_side_is_longer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    members = np.unique(rng.integers(0, 1000, rng.integers(0, 300))).tolist()
    message = np.unique(rng.integers(0, 1000, rng.integers(0, 40))).tolist()
    expected = sorted(set(members) & set(message))
    assert common_of(members, message) == (bool(expected), expected)
    assert common_of([NO_KEYWORD, *members], message) == (True, [NO_KEYWORD, *expected])


def test_nothing_is_common_with_nothing() -> None:
    assert common_of(list(range(100)), [500, 600]) == (False, [])
    assert common_of([], [1]) == common_of([], []) == common_of([1], []) == (False, [])


def test_items_are_filed_by_group_and_keyword_in_their_order() -> None:
    group = np.array([2, 0, 2, 2, 0])
    keyword = np.array([5, 1, NO_KEYWORD, 5, 1], np.int32)
    lists = keyword_lists.file_lists(group, keyword, np.array([10, 11, 12, 13, 14]), 4)
    assert lists.group_start.tolist() == [0, 1, 1, 3, 3]
    assert lists.keyword.tolist() == [1, NO_KEYWORD, 5]
    assert lists.list_start.tolist() == [0, 2, 3, 5]
    assert lists.item.tolist() == [11, 14, 12, 10, 13]


def test_pairs_are_given_once_in_order() -> None:
    group, keyword = keyword_lists.distinct_pairs(np.array([1, 0, 1, 1]), np.array([3, NO_KEYWORD, 3, 2], np.int32))
    assert (group.tolist(), keyword.tolist()) == ([0, 1, 1], [NO_KEYWORD, 2, 3])


@pytest.mark.parametrize(("n", "capacity", "n_children"), [(70, 8, 9), (600, 8, 10), (7, 4, 2), (600, 4, 3)])
def test_a_widened_root_leads_to_the_same_items(n: int, capacity: int, n_children: int) -> None:
    rng = np.random.default_rng(n)
    x0, y0 = rng.random(n), rng.random(n)
    tree = rtree.widen_root(rtree.pack([x0, y0, x0, y0], np.arange(n, dtype=np.int32), capacity))
    root = int(tree.head[rtree.ROOT])
    assert tree.n_entries[root] == n_children
    assert sorted(tree.child[rtree.entries_of_level(tree, 0)]) == list(range(n))
    for item in range(n):
        path = rtree.path_to_item(tree, item)
        assert path[0][0] == root
        assert tree.child[path[-1][1]] == item
        for (node, entry), (below, _) in pairwise(path):
            assert tree.child[entry] == below
            assert tree.parent[below] == node
        for _, entry in path:
            assert tree.x0[entry] <= x0[item] <= tree.x1[entry]
            assert tree.y0[entry] <= y0[item] <= tree.y1[entry]
