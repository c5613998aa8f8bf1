"""The tree with keyword sets: exact sets however it grew, and less work with one representative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.papers.boolean.kernels.keyword_lists import NO_KEYWORD
from nearcast.papers.boolean.kernels.rtree import NO_NODE, ROOT, WIDTH
from nearcast.papers.boolean.textual_rtree.layout import SELECTIONS, TextualRTreeParameters
from nearcast.papers.boolean.textual_rtree.set_tree import SetTree

FORMS = [("all", "idf"), *(("one", selection) for selection in SELECTIONS)]


def listed(index: Any, store: ClauseStore, clause: int) -> set[int]:
    layout = store.layout()
    words = layout.keyword[layout.keyword_start[clause] : layout.keyword_start[clause + 1]].tolist() or [NO_KEYWORD]
    if index.parameters.representatives == "all":
        return set(words)
    assert index._index.representative[clause] in words
    return {int(index._index.representative[clause])}


def check_sets(index: Any, store: ClauseStore) -> list[int]:
    """Every node's set is the union of what lies below; returns the clauses in the tree."""
    tree, sets = index._index.tree, index._index.sets
    found: list[int] = []

    def below(node: int) -> set[int]:
        first = node * int(tree.head[WIDTH])
        union: set[int] = set()
        for child in tree.child[first : first + tree.n_entries[node]].tolist():
            if tree.level[node] == 0:
                found.append(child)
                union |= listed(index, store, child)
            else:
                assert tree.parent[child] == node
                union |= below(child)
        kept = sets.item[sets.start[node] : sets.start[node] + sets.size[node]].tolist()
        assert kept == sorted(union)
        assert sets.size[node] <= sets.capacity[node]
        return union

    root = int(tree.head[ROOT])
    assert tree.parent[root] == NO_NODE
    below(root)
    return sorted(found)


@pytest.mark.parametrize(("representatives", "selection"), FORMS)
@pytest.mark.parametrize("n_built", [0, 1, 90, 300])
def test_sets_are_exact_after_building_and_after_every_insertion(
    representatives: str, selection: str, n_built: int, add_clauses: Callable[..., Any]
) -> None:
    store = ClauseStore()
    add_clauses(store, n_built)
    index = SetTree(TextualRTreeParameters(representatives, selection, node_capacity=4))
    index.build(store)
    assert check_sets(index, store) == list(range(n_built))
    n_before = index.stats()["nodes"]
    for seed in range(1, 7):
        index.insert(store, add_clauses(store, 10, seed, n_keywords=30 + 10 * seed))
        assert check_sets(index, store) == list(range(store.n))
    assert index.stats()["nodes"] > n_before


def test_the_tree_is_built_anew_when_most_of_it_was_inserted(add_clauses: Callable[..., Any]) -> None:
    store = ClauseStore()
    add_clauses(store, 100)
    index = SetTree(TextualRTreeParameters("one", node_capacity=4))
    index.build(store)
    weight = index.arrays()["weight"].sum()
    index.insert(store, add_clauses(store, 100, 1))
    assert index.arrays()["weight"].sum() == weight
    index.insert(store, add_clauses(store, 1, 2))
    assert index.arrays()["counts"].tolist() == [201, 0]
    assert check_sets(index, store) == list(range(201))


@pytest.mark.parametrize("selection", SELECTIONS)
def test_one_representative_never_takes_more_nodes_or_candidates_than_all_keywords(
    selection: str, add_clauses: Callable[..., Any], make_messages: Callable[..., MessageBatch]
) -> None:
    """Paper: Lemma 2."""
    store = ClauseStore()
    add_clauses(store, 400)
    messages = make_messages(100)
    all_keywords, one = (SetTree(TextualRTreeParameters(r, selection, node_capacity=8)) for r in ("all", "one"))
    for index in (all_keywords, one):
        index.build(store)
    groups, work = all_keywords.match(store, messages)
    groups_of_one, work_of_one = one.match(store, messages)
    assert work_of_one.nodes < work.nodes
    assert work_of_one.candidates < work.candidates
    assert sorted(zip(*groups.pairs(), strict=True)) == sorted(zip(*groups_of_one.pairs(), strict=True))
    assert groups.n_pairs > 50


def test_a_message_without_a_keyword_of_the_root_visits_nothing(make_messages: Callable[..., MessageBatch]) -> None:
    index = SetTree(TextualRTreeParameters("all"))
    assert index.match(ClauseStore(), make_messages(5))[1].nodes == 0


def test_an_explanation_follows_the_path_of_the_clause(
    add_clauses: Callable[..., Any], make_messages: Callable[..., MessageBatch]
) -> None:
    store = ClauseStore()
    add_clauses(store, 100)
    index = SetTree(TextualRTreeParameters("all", node_capacity=4))
    index.build(store)
    told = index.explain(store, make_messages(1), 42)
    assert len(told) == index.stats()["depth"] == 4
    assert told[0].startswith("level 3, node ")
    assert all("keywords are in the message; next box" in line for line in told)


def test_arrays_open_as_the_same_tree(add_clauses: Callable[..., Any], make_messages: Callable[..., MessageBatch]) -> None:
    store = ClauseStore()
    add_clauses(store, 100)
    index, opened = (SetTree(TextualRTreeParameters("one", node_capacity=4)) for _ in range(2))
    index.build(store)
    opened.restore(index.arrays())
    opened.insert(store, add_clauses(store, 20, 1))
    assert check_sets(opened, store) == list(range(120))
    assert np.array_equal(opened.arrays()["counts"], [100, 20])
