"""The quadtree: what stands in which list, which words lead there, and its options."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nearcast as nc
from nearcast.errors import IndexParameterError
from nearcast.papers.boolean.pivot_quadtree import build
from nearcast.papers.boolean.pivot_quadtree.build import cells_of, enclosing_frame
from nearcast.papers.boolean.pivot_quadtree.index import PivotQuadtree
from nearcast.papers.boolean.pivot_quadtree.kernels import NO_NODE, QuadtreeArrays, choose_pivots, has_common
from nearcast.testing.scenarios.worlds import WorldMaker


def built(n: int = 120, seed: int = 0, **options: Any) -> tuple[nc.Matcher, PivotQuadtree]:
    matcher = nc.Matcher("pivot_quadtree", "plane", **{"leaf_size": 3, **options})
    matcher.subscribe(WorldMaker(np.random.default_rng(seed), "plane").subscriptions(n))
    index = matcher._index
    assert isinstance(index, PivotQuadtree)
    return matcher, index


def run(start: np.ndarray, values: np.ndarray, i: int) -> list[int]:
    return [int(value) for value in values[start[i] : start[i + 1]]]


def words_of(index: PivotQuadtree, position: int) -> set[int]:
    words = set(run(index._entries.word_start, index._entries.word, position))
    return words or {int(index._entries.n_ranks[0])}


def lists_below(tree: QuadtreeArrays, node: int) -> list[int]:
    children = range(tree.child_start[node], tree.child_start[node + 1])
    return [leaf for child in children for leaf in lists_below(tree, child)] if children else [node]


STORAGES = [{}, {"storage": "mx_cif"}, {"max_depth": 2}, {"leaf_size": 1}]


@pytest.mark.parametrize("options", STORAGES, ids=str)
def test_a_clause_stands_once_in_every_column_and_row_it_meets(options: dict[str, Any]) -> None:
    _, index = built(max_depth=options.pop("max_depth", 4), **options)
    tree, n_columns = index._tree, int(index._tree.cell_size[0])
    cells = cells_of(tree.frame, n_columns, list(index._entries.box.reshape(-1, 4).T))
    places: dict[int, Counter[tuple[int, int]]] = {}
    for node in range(len(tree.parent)):
        x, y, size = int(tree.cell_x[node]), int(tree.cell_y[node]), int(tree.cell_size[node])
        for position in run(tree.item_start, tree.item, node):
            inside = places.setdefault(position, Counter())
            inside.update((i, j) for i in range(x, x + size) for j in range(y, y + size))
    for position in range(len(index._entries.clause)):
        x0, y0, x1, y1 = (int(side[position]) for side in cells)
        for i in range(x0, x1 + 1):
            for j in range(y0, y1 + 1):
                assert places[position][i, j] == 1


@pytest.mark.parametrize("options", STORAGES, ids=str)
def test_the_sets_are_those_of_the_definition(options: dict[str, Any]) -> None:
    _, index = built(**options)
    tree = index._tree
    n_nodes = len(tree.parent)
    common: dict[int, set[int]] = {}
    for node in range(n_nodes):
        lists = lists_below(tree, node)
        # The full pivotal set of a list: its own cover words and all those of its ancestors.
        pivotal = []
        for leaf in lists:
            words: set[int] = set()
            at = leaf
            while at != NO_NODE:
                words |= set(run(tree.cover_start, tree.cover, at))
                at = int(tree.parent[at])
            items = run(tree.item_start, tree.item, leaf)
            assert all(words & words_of(index, position) for position in items)
            pivotal.append(words)
        common[node] = set.intersection(*pivotal)
        settled = common[int(tree.parent[node])] if node else set()
        assert set(run(tree.cover_start, tree.cover, node)) == common[node] - settled
        assert set(run(tree.other_start, tree.other, node)) == set.union(*pivotal) - common[node]


@pytest.mark.parametrize("options", STORAGES, ids=str)
def test_no_list_is_longer_than_a_leaf_may_be(options: dict[str, Any]) -> None:
    _, index = built(**options)
    assert np.diff(index._tree.item_start).max() <= index.parameters.leaf_size


def test_the_smallest_cell_holds_each_clause_once() -> None:
    matcher, index = built(storage="mx_cif")
    assert sorted(index._tree.item.tolist()) == list(range(len(index._entries.clause)))
    assert matcher.stats()["copies"] == 1


def test_copies_stay_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    _, free = built(leaf_size=1, max_depth=10)
    monkeypatch.setattr(build, "MOST_COPIES", 2)
    _, index = built(leaf_size=1, max_depth=10)
    assert len(index._tree.item) <= 2 * len(index._entries.clause) < len(free._tree.item)


def test_pivots_are_greedy_and_ties_go_to_the_word_of_more_clauses() -> None:
    """The paper's example: in the leaf of s_3 = {b, c, d} all words occur once; b is the pivot, as it is elsewhere."""
    lists = [[0, 1, 2], [1, 2], [2, 3], [3]]
    word_start = np.concatenate([[0], np.cumsum([len(words) for words in lists])])
    word = np.concatenate(lists).astype(np.int32)
    frequency = np.bincount(word, minlength=4)
    item_start, item = np.array([0, 4, 5, 5]), np.array([0, 1, 2, 3, 0], np.int32)
    start, pivot = np.empty(4, np.int64), np.empty(5, np.int32)
    counts = np.zeros(4, np.int64)
    n = choose_pivots(item_start, item, word_start, word, 4, frequency, counts, start, pivot)
    assert pivot[:n].tolist() == [2, 3, 2]
    assert start.tolist() == [0, 2, 3, 3]
    assert not counts.any()


def test_a_list_with_a_wordless_clause_has_the_word_of_every_message() -> None:
    matcher = nc.Matcher("pivot_quadtree", "plane")
    matcher.subscribe([nc.Subscription(1, [], nc.Box(0, 0, 1, 1)), nc.Subscription(2, ["a"], nc.Box(0, 0, 1, 1))])
    assert [d.subscription_id for d in matcher.publish([nc.Message(1, ["z"], (0, 0))])] == [1]


@pytest.mark.parametrize("n_words", [2, 40])
def test_common_words_are_found_either_way_round(n_words: int) -> None:
    stamp = np.zeros(1000, np.int32)
    words = np.arange(0, 600, 3, dtype=np.int32)
    rank = np.arange(1, 1 + 3 * n_words, 3, dtype=np.int32)
    stamp[rank] = 10 + np.arange(n_words)
    assert not has_common(words, 0, len(words), rank, 0, n_words, stamp, 10)
    assert not has_common(words, 0, 1, rank + 600, 0, n_words, stamp, 10)
    assert not has_common(words[:100], 0, 100, rank + 399, 0, n_words, stamp, 10)
    rank[-1] += 2
    stamp[rank[-1]] = 10 + n_words - 1
    assert has_common(words, 0, len(words), rank, 0, n_words, stamp, 10)


def test_a_saved_quadtree_answers_as_before(tmp_path: Path) -> None:
    subscriptions, messages = WorldMaker(np.random.default_rng(2), "plane").world(80)
    matcher = nc.Matcher("pivot_quadtree", "plane", leaf_size=4)
    matcher.subscribe(subscriptions)
    matcher.save(tmp_path / "saved")
    opened = nc.Matcher.open(tmp_path / "saved")
    one, two = (sorted((d.subscription_id, d.message_id) for d in m.publish(messages)) for m in (matcher, opened))
    assert one == two


def test_more_matches_than_room() -> None:
    matcher = nc.Matcher("pivot_quadtree", "plane")
    matcher.subscribe([nc.Subscription(i, [], nc.Box(0, 0, 1, 1)) for i in range(900)])
    assert len(matcher.publish([nc.Message(i, ["a"], (0.5, 0.5)) for i in range(10)])) == 9000


def test_columns_never_decrease_and_reach_to_infinity() -> None:
    huge = 1.7976931348623157e308
    boxes = np.array([[0.0, 0.0, 10.0, 10.0], [-huge, -huge, huge, huge], [3.0, 4.0, 3.0, 4.0]])
    frame = enclosing_frame(boxes, 16)
    assert frame[[0, 1, 3, 4]].tolist() == [0, 10, 0, 10]
    values = np.sort(np.concatenate([np.linspace(-1, 11, 500), [-huge, huge, 0.0, 10.0]]))
    columns = cells_of(frame, 16, (values,) * 4).x0
    assert (np.diff(columns) >= 0).all()
    assert (columns[0], columns[-1]) == (0, 15)


@pytest.mark.parametrize("side", [0.0, 1e-320, 1.7e308])
def test_a_frame_without_width_has_one_column(side: float) -> None:
    boxes = np.array([[side, side, side, side]])
    cells = cells_of(enclosing_frame(boxes, 16), 16, list(boxes.T))
    assert [int(column[0]) for column in cells] == [0, 0, 0, 0]


def test_the_explanation_tells_lists_words_and_cells() -> None:
    matcher = nc.Matcher("pivot_quadtree", "plane", leaf_size=1, max_depth=3)
    boxes = [nc.Box(0, 0, 1, 1), nc.Box(7, 7, 8, 8), nc.Box(0, 7, 1, 8), nc.Box(0, 0, 0, 0)]
    matcher.subscribe([nc.Subscription(i, ["a" if i % 2 else "b"], box) for i, box in enumerate(boxes)])
    assert "verified" in matcher.explain(nc.Message(1, ["a"], (8, 8)), 1).path[-1]
    assert "none of its pivotal" in matcher.explain(nc.Message(1, ["b"], (8, 8)), 1).path[-1]
    assert "entered" in " ".join(matcher.explain(nc.Message(1, ["b"], (8, 8)), 1).path)
    assert "none of them meet" in matcher.explain(nc.Message(1, ["a"], (0, 0)), 1).path[-1]


@pytest.mark.parametrize("options", [{"leaf_size": 0}, {"max_depth": 25}, {"storage": "grid"}])
def test_an_impossible_option_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(IndexParameterError, match="expected"):
        nc.Matcher("pivot_quadtree", **options)
