"""The R-tree with inverted files: each node lists exactly what its entries have below them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import nearcast as nc
from nearcast.columns.clauses import ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.errors import IndexParameterError
from nearcast.papers.boolean.ir_tree.index import IRTree, IRTreeParameters
from nearcast.papers.boolean.kernels.keyword_lists import NO_KEYWORD
from nearcast.papers.boolean.kernels.rtree import N_NODES, WIDTH


def files_of(index: Any) -> list[dict[int, set[int]]]:
    """For each node, the places listed under each keyword."""
    lists = index._index.lists
    files = []
    for node in range(int(index._index.tree.head[N_NODES])):
        ends = range(lists.group_start[node], lists.group_start[node + 1])
        files.append(
            {int(lists.keyword[i]): set(lists.item[lists.list_start[i] : lists.list_start[i + 1]].tolist()) for i in ends}
        )
    return files


@pytest.mark.parametrize("n", [0, 1, 4, 5, 100])
def test_an_entry_is_listed_under_every_keyword_below_it(n: int, add_clauses: Callable[..., Any]) -> None:
    store = ClauseStore()
    add_clauses(store, n)
    index = IRTree(IRTreeParameters(node_capacity=4))
    index.build(store)
    tree, files, layout = index._index.tree, files_of(index), store.layout()
    for node, file in enumerate(files):
        first = node * int(tree.head[WIDTH])
        expected: dict[int, set[int]] = {}
        for place, child in enumerate(tree.child[first : first + tree.n_entries[node]].tolist()):
            words = (
                files[child] if tree.level[node] else layout.keyword[slice(*layout.keyword_start[child : child + 2])].tolist()
            )
            for word in words or [NO_KEYWORD]:
                expected.setdefault(word, set()).add(place)
        assert file == expected


def test_only_clauses_with_all_their_keywords_are_candidates(
    add_clauses: Callable[..., Any], make_messages: Callable[..., MessageBatch]
) -> None:
    store = ClauseStore()
    add_clauses(store, 200)
    index = IRTree(IRTreeParameters(node_capacity=4))
    index.build(store)
    messages = make_messages(100)
    layout, arrays = store.layout(), messages.arrays
    n_having = 0
    for m in range(100):
        words = set(arrays.keyword[arrays.keyword_start[m] : arrays.keyword_start[m + 1]].tolist())
        n_having += sum(words.issuperset(layout.keyword[slice(*layout.keyword_start[c : c + 2])].tolist()) for c in range(200))
    groups, work = index.match(store, messages)
    assert 0 < groups.n_pairs <= work.candidates <= n_having


def test_an_explanation_counts_lists_on_each_level(
    add_clauses: Callable[..., Any], make_messages: Callable[..., MessageBatch]
) -> None:
    store = ClauseStore()
    add_clauses(store, 100)
    index = IRTree(IRTreeParameters(node_capacity=4))
    index.build(store)
    told = index.explain(store, make_messages(1), 42)
    assert len(told) == index.stats()["depth"] == 4
    assert all("of them name the next entry" in line for line in told)


def test_an_impossible_capacity_is_refused() -> None:
    with pytest.raises(IndexParameterError, match="node_capacity=2 is not possible; expected 4 to 1024"):
        nc.Matcher(index="ir_tree", node_capacity=2)
