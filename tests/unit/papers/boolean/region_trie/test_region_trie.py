"""The trie: its order, its nodes, its ways, its options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nearcast as nc
from nearcast.errors import IndexParameterError
from nearcast.papers.boolean.region_trie.index import RegionTrie
from nearcast.papers.boolean.region_trie.kernels import RADIX, n_halvings, rank_keywords, seek, seeking_is_cheaper
from nearcast.testing.scenarios.worlds import WorldMaker


def built(n: int = 60, seed: int = 0, **options: Any) -> tuple[nc.Matcher, RegionTrie]:
    matcher = nc.Matcher("region_trie", "plane", **options)
    maker = WorldMaker(np.random.default_rng(seed), "plane")
    matcher.subscribe(maker.subscriptions(n))
    index = matcher._index
    assert isinstance(index, RegionTrie)
    return matcher, index


def words_at(index: RegionTrie, position: int) -> tuple[int, ...]:
    entries = index._entries
    return tuple(entries.word[entries.word_start[position] : entries.word_start[position + 1]].tolist())


@pytest.mark.parametrize("order", ["frequent_first", "rare_first", "id"])
def test_clauses_stand_in_the_order_of_their_words_shorter_first(order: str) -> None:
    _, index = built(keyword_order=order)
    lists = [words_at(index, i) for i in range(len(index._entries.clause))]
    assert lists == sorted(lists)
    assert all(list(words) == sorted(set(words)) for words in lists)


@pytest.mark.parametrize("seed", range(3))
def test_a_node_holds_exactly_the_clauses_that_begin_with_its_path(seed: int) -> None:
    _, index = built(seed=seed)
    trie, entries = index._trie, index._entries
    path: dict[int, tuple[int, ...]] = {0: ()}
    for node in range(len(trie.word)):
        below = range(trie.first[node], trie.stop[node])
        expected = [i for i in range(len(entries.clause)) if words_at(index, i)[: len(path[node])] == path[node]]
        assert list(below) == expected
        ending = range(trie.first[node], trie.ending_stop[node])
        assert list(ending) == [i for i in below if words_at(index, i) == path[node]]
        boxes = entries.box.reshape(-1, 4)[list(below)]
        around = [*boxes[:, :2].min(axis=0), *boxes[:, 2:].max(axis=0)]
        assert trie.box[4 * node : 4 * node + 4].tolist() == around
        children = range(trie.child_start[node], trie.child_start[node + 1])
        assert trie.word[list(children)].tolist() == sorted(set(trie.word[list(children)].tolist()))
        path.update({child: (*path[node], int(trie.word[child])) for child in children})
    assert set(path) == set(range(len(trie.word)))


@pytest.mark.parametrize(("order", "expected"), [("frequent_first", [4, 2, 1]), ("rare_first", [1, 2, 4])])
def test_ranks_are_by_frequency(order: str, expected: list[int]) -> None:
    matcher = nc.Matcher("region_trie", "plane", keyword_order=order)
    words = [["a", "b"], ["b"], ["b", "c"], ["a", "b"]]
    matcher.subscribe([nc.Subscription(i, some, nc.Box(0, 0, 1, 1)) for i, some in enumerate(words)])
    index = matcher._index
    assert isinstance(index, RegionTrie)
    frequency = np.bincount(matcher._subscriptions.clauses.layout().keyword)
    assert frequency[np.argsort(index._entries.rank)].tolist() == expected


def test_ranks_by_id_ascend() -> None:
    _, index = built(keyword_order="id")
    ranks = index._entries.rank[index._entries.rank >= 0]
    assert ranks.tolist() == list(range(len(ranks)))


def test_a_saved_trie_answers_as_before(tmp_path: Path) -> None:
    maker = WorldMaker(np.random.default_rng(2), "plane")
    subscriptions, messages = maker.world(80)
    matcher = nc.Matcher("region_trie", "plane")
    matcher.subscribe(subscriptions)
    matcher.save(tmp_path / "saved")
    opened = nc.Matcher.open(tmp_path / "saved")
    one, two = (sorted((d.subscription_id, d.message_id) for d in m.publish(messages)) for m in (matcher, opened))
    assert one == two
    assert opened.stats()["depth"] == matcher.stats()["depth"]


def test_every_way_visits_the_same_nodes_and_candidates() -> None:
    maker = WorldMaker(np.random.default_rng(5), "plane")
    subscriptions, messages = maker.world(200)
    work = set()
    for probe in ("tokens", "trie", "cost"):
        matcher = nc.Matcher("region_trie", "plane", probe=probe)
        matcher.subscribe(subscriptions)
        list_nodes = matcher.publish(messages)
        work.add((len(list_nodes), matcher.report.nodes_visited, matcher.report.candidates))
    assert len(work) == 1


def test_an_ending_list_is_a_node_of_its_own() -> None:
    matcher = nc.Matcher("region_trie", "plane")
    matcher.subscribe([nc.Subscription(1, ["a", "b"], nc.Box(0, 0, 1, 1)), nc.Subscription(2, ["c"], nc.Box(5, 5, 6, 6))])
    matcher.publish([nc.Message(1, ["a", "b", "c"], (0, 0))])
    # The root, a, b and the list of b; c lies elsewhere.
    assert matcher.report.nodes_visited == 4
    assert matcher.report.candidates == 1


def test_the_explanation_follows_the_path_until_the_message_is_turned_away() -> None:
    matcher = nc.Matcher("region_trie", "plane")
    matcher.subscribe([nc.Subscription(1, ["a", "b"], nc.Box(0, 0, 1, 1)), nc.Subscription(2, ["a"], nc.Box(0, 0, 9, 9))])
    assert "verified" in matcher.explain(nc.Message(1, ["a", "b"], (0, 0)), 1).path[-1]
    assert "lacks" in matcher.explain(nc.Message(1, ["a"], (0, 0)), 1).path[-1]
    assert "misses" in matcher.explain(nc.Message(1, ["a", "b"], (5, 5)), 1).path[-1]


@pytest.mark.parametrize("options", [{"probe": "both"}, {"keyword_order": "alphabetical"}])
def test_an_unknown_option_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(IndexParameterError, match="expected one of"):
        nc.Matcher("region_trie", **options)


def test_seeking_finds_the_first_value_that_is_not_smaller() -> None:
    values = np.array([1, 3, 3, 7, 9, 12, 30], np.int32)
    for value in range(-1, 33):
        assert seek(values, 0, len(values), value) == np.searchsorted(values, value)
        assert seek(values, 2, 6, value) == 2 + np.searchsorted(values[2:6], value)
    assert seek(values, 3, 3, 5) == 3


def test_halvings_are_the_logarithm() -> None:
    assert [n_halvings(n) for n in (0, 1, 2, 3, 4, 1023, 1024)] == [0, 0, 1, 1, 2, 9, 10]


def test_few_words_are_sought_among_many_children() -> None:
    assert seeking_is_cheaper(3, 1000)
    assert not seeking_is_cheaper(3, 6)
    assert not seeking_is_cheaper(1000, 3)


def test_long_messages_are_ranked_in_ascending_order() -> None:
    rng = np.random.default_rng(1)
    rank = rng.permutation(70_000).astype(np.int32)
    keyword = np.sort(rng.choice(80_000, 500, replace=False)).astype(np.int32)
    start, ranks = np.empty(2, np.int64), np.empty(501, np.int32)
    spare, counts = np.empty(500, np.int32), np.empty(RADIX, np.int64)
    n = rank_keywords(rank, 70_000, np.array([0, 500]), keyword, start, ranks, spare, counts)
    assert ranks[:n].tolist() == [*sorted(rank[keyword[keyword < 70_000]].tolist()), 70_000]
