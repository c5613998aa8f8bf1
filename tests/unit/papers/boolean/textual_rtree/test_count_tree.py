"""The tree that counts: where each keyword of a clause stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.papers.boolean.kernels.keyword_lists import NO_KEYWORD
from nearcast.papers.boolean.kernels.rtree import N_NODES, NO_NODE, ROOT, path_to_item
from nearcast.papers.boolean.textual_rtree.count_tree import CountTree
from nearcast.papers.boolean.textual_rtree.layout import SELECTIONS, TextualRTreeParameters


def standings(index: Any) -> dict[int, list[tuple[int, int]]]:
    """For each clause the groups and keywords it is listed under."""
    lists = index._index.lists
    found: dict[int, list[tuple[int, int]]] = {int(clause): [] for clause in index._index.slot}
    for group in range(len(lists.group_start) - 1):
        words = lists.keyword[lists.group_start[group] : lists.group_start[group + 1]]
        assert (np.diff(words) > 0).all()
        for at in range(lists.group_start[group], lists.group_start[group + 1]):
            for rank in lists.item[lists.list_start[at] : lists.list_start[at + 1]]:
                found[int(index._index.slot[rank])].append((group, int(lists.keyword[at])))
    return found


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize(("n", "capacity", "depth"), [(0, 4, 1), (4, 4, 1), (60, 4, 3), (300, 4, 5), (300, 50, 2)])
def test_a_clause_stands_once_under_each_keyword_on_its_path(
    selection: str, n: int, capacity: int, depth: int, add_clauses: Callable[..., Any]
) -> None:
    """Paper: Property 1. At each depth above the leaves there is one keyword, in the leaf are all others."""
    store = ClauseStore()
    add_clauses(store, n)
    index = CountTree(TextualRTreeParameters("many", selection, capacity))
    index.build(store)
    assert index.stats()["depth"] == depth
    layout, tree = store.layout(), index._index.tree
    n_nodes = int(tree.head[N_NODES])
    for clause, places in standings(index).items():
        words = layout.keyword[layout.keyword_start[clause] : layout.keyword_start[clause + 1]].tolist() or [NO_KEYWORD]
        assert sorted(word for _, word in places) == words
        nodes = [node for node, _ in path_to_item(tree, clause)]
        expected = [*nodes[1:], *[n_nodes + nodes[-1]] * len(words)][: len(words)]
        assert sorted(group for group, _ in places) == sorted(expected)


def test_a_root_of_few_children_takes_their_entries(
    add_clauses: Callable[..., Any], make_messages: Callable[..., MessageBatch]
) -> None:
    store = ClauseStore()
    add_clauses(store, 70)
    index = CountTree(TextualRTreeParameters("many", node_capacity=8))
    index.build(store)
    tree = index._index.tree
    root = int(tree.head[ROOT])
    # 70 clauses make 9 leaves under 2 nodes; those leaves now stand in the root.
    assert (index.stats()["depth"], int(tree.n_entries[root]), root) == (2, 9, 9)
    assert tree.parent[root] == NO_NODE
    messages = make_messages(200)
    groups, _ = index.match(store, messages)
    layout, arrays = store.layout(), messages.arrays
    expected = set()
    for m in range(200):
        words = set(arrays.keyword[arrays.keyword_start[m] : arrays.keyword_start[m + 1]].tolist())
        for c in range(70):
            is_met = layout.x0[c] <= arrays.x1[m] and arrays.x0[m] <= layout.x1[c]
            is_met = is_met and layout.y0[c] <= arrays.y1[m] and arrays.y0[m] <= layout.y1[c]
            if is_met and words.issuperset(layout.keyword[layout.keyword_start[c] : layout.keyword_start[c + 1]].tolist()):
                expected.add((m, c))
    pairs = list(zip(*(column.tolist() for column in groups.pairs()), strict=True))
    assert len(pairs) == len(set(pairs)) > 50
    assert set(pairs) == expected


def test_an_explanation_tells_how_many_keywords_are_on_each_level(
    add_clauses: Callable[..., Any], make_messages: Callable[..., MessageBatch]
) -> None:
    store = ClauseStore()
    add_clauses(store, 100)
    index = CountTree(TextualRTreeParameters("many", node_capacity=4))
    index.build(store)
    told = index.explain(store, make_messages(1), 42)
    assert len(told) == index.stats()["depth"] == 4
    assert told[0].startswith("depth 1, node ")
    assert "listed under 1 of its " in told[0]
