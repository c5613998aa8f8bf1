"""The trie with quadtrees: where clauses stand, how often, and what an explanation says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nearcast as nc
from nearcast.errors import IndexParameterError
from nearcast.papers.boolean.trie_quadtree.index import TrieQuadtree
from nearcast.papers.boolean.trie_quadtree.kernels import NO_TREE
from nearcast.testing.scenarios.worlds import WorldMaker


def built(n: int = 300, seed: int = 0, **options: Any) -> tuple[nc.Matcher, TrieQuadtree]:
    matcher = nc.Matcher("trie_quadtree", "plane", **{"leaf_size": 2, "max_depth": 4, **options})
    matcher.subscribe(WorldMaker(np.random.default_rng(seed), "plane").subscriptions(n))
    index = matcher._index
    assert isinstance(index, TrieQuadtree)
    return matcher, index


def items_below(forest: Any, node: int) -> list[int]:
    own: list[int] = forest.item[forest.item_start[node] : forest.item_start[node + 1]].tolist()
    children = range(forest.child_start[node], forest.child_start[node + 1])
    return own + [item for child in children for item in items_below(forest, child)]


@pytest.mark.parametrize("storage", ["leaves", "mx_cif"])
def test_each_tree_holds_what_ends_in_its_node_of_the_trie(storage: str) -> None:
    _, index = built(storage=storage)
    trie, forest = index._trie, index._forest
    n_trees = 0
    for node in range(len(trie.word)):
        ending = list(range(trie.first[node], trie.ending_stop[node]))
        if forest.root[node] == NO_TREE:
            assert not ending
            continue
        n_trees += 1
        held = items_below(forest, int(forest.root[node]))
        assert sorted(set(held)) == ending
        assert storage == "leaves" or len(held) == len(ending)
    assert n_trees > 20
    assert len(forest.level_start) > 2


def test_a_clause_without_keywords_ends_in_the_root() -> None:
    matcher = nc.Matcher("trie_quadtree", "plane")
    matcher.subscribe([nc.Subscription("all", region=nc.Box(0, 0, 2, 2)), nc.Subscription("a", keywords=["a"])])
    index = matcher._index
    assert isinstance(index, TrieQuadtree)
    assert index._forest.root[0] != NO_TREE
    assert [d.subscription_id for d in matcher.publish([nc.Message(1, keywords=["b"], location=(1, 1))])] == ["all"]


def test_lists_are_as_long_as_the_option_says_where_boxes_differ() -> None:
    matcher = nc.Matcher("trie_quadtree", "plane", leaf_size=3)
    matcher.subscribe([nc.Subscription(i, keywords=["a"], region=nc.Box(i, i, i + 0.5, i + 0.5)) for i in range(50)])
    index = matcher._index
    assert isinstance(index, TrieQuadtree)
    assert np.diff(index._forest.item_start).max() == 3
    assert index.stats()["quadtree_depth"] > 3


def test_an_explanation_follows_the_keywords_and_names_the_cell() -> None:
    matcher = nc.Matcher("trie_quadtree", "plane", leaf_size=1)
    matcher.subscribe(
        [
            nc.Subscription("here", keywords=["a", "b"], region=nc.Box(0, 0, 1, 1)),
            nc.Subscription("there", keywords=["a", "b"], region=nc.Box(8, 8, 9, 9)),
        ]
    )
    lines = "\n".join(matcher.explain(nc.Message(1, keywords=["a", "b"], location=(0.5, 0.5)), "here").path)
    assert "2 clauses end here" in lines
    assert "column 0, row 0" in lines
    away = matcher.explain(nc.Message(1, keywords=["a", "b"], location=(8.5, 8.5)), "here").path
    assert away[-1] == "the message meets none of them"
    lacking = matcher.explain(nc.Message(1, keywords=["a"], location=(0.5, 0.5)), "here").path
    assert "the message lacks it" in lacking[-1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"keyword_order": "none"}, "keyword_order='none' is unknown"),
        ({"storage": "disk"}, "storage='disk' is unknown"),
        ({"leaf_size": 0}, "leaf_size=0 is not possible; expected 1 to"),
        ({"max_depth": 25}, "max_depth=25 is not possible; expected 0 to 24"),
    ],
)
def test_an_impossible_option_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(IndexParameterError, match=said):
        nc.Matcher("trie_quadtree", **given)
