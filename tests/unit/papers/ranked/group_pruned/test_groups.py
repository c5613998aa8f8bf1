"""Lists in groups: bounds hold for every entry, while subscriptions come and go and thresholds change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import nearcast as nc
from nearcast.errors import IndexParameterError
from nearcast.papers.ranked.group_pruned.index import GroupPruned
from nearcast.papers.ranked.group_pruned.kernels.group import (
    AFTER_NORM,
    AFTER_SUM,
    KEY,
    KEY0,
    KEY1,
    KEYWORD_SHARE,
    KEYWORD_SHARE0,
    KEYWORD_SHARE1,
    KEYWORD_SHARE_LEFT,
    N_FIELDS,
    NORM,
    NORM_LEFT,
    SUM0,
    SUM1,
    SUM_LEFT,
    WEIGHT,
    WEIGHT0,
    WEIGHT1,
    WEIGHT_LEFT,
    X0,
    X1,
    Y0,
    Y1,
)
from nearcast.papers.ranked.group_pruned.kernels.insert import NOT_THERE, find_entry
from nearcast.testing.scenarios.worlds import WORDS


def ranker(space: str = "plane", window: int = 12, **options: Any) -> nc.Ranker:
    return nc.Ranker(nc.CountWindow(window), "group_pruned", "kmax", space, max_distance=5.0, **options)


def groups(index: Any) -> Iterator[tuple[int, NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """Each group: its keyword, its bounds, its subscriptions, the rows of its entries."""
    lists = index._lists
    for word in range(len(lists.rank)):
        for group in range(lists.first_group[word], lists.first_group[word] + lists.n_groups[word]):
            first, n = lists.first_entry[group], lists.n_entries[group]
            rows = lists.entry[first * N_FIELDS : (first + n) * N_FIELDS].reshape(n, N_FIELDS)
            yield word, lists.bound[:, group], lists.subscription[first : first + n], rows


def check(r: nc.Ranker) -> int:
    """Every bound of every group holds; returns how many groups there are."""
    index, rows, threshold = (
        r._engine.shards[0].index,
        r._engine.shards[0].subscriptions.layout(),
        r._engine.shards[0].buffers.threshold,
    )
    assert isinstance(index, GroupPruned)
    filed: list[tuple[int, int]] = []
    n_groups = 0
    for word, bound, members, entries in groups(index):
        n_groups += 1
        assert 1 <= len(members) <= index._grouping.group_size
        filed += [(int(s), word) for s in members]
        assert np.all(np.diff(entries[:, KEY]) >= 0)
        assert np.all(entries[:, KEY] <= threshold[members])
        for field, left in (
            (KEYWORD_SHARE, KEYWORD_SHARE_LEFT),
            (AFTER_SUM, SUM_LEFT),
            (AFTER_NORM, NORM_LEFT),
            (WEIGHT, WEIGHT_LEFT),
        ):
            assert np.array_equal(entries[:, left], np.maximum.accumulate(entries[::-1, field])[::-1])
        assert (bound[KEY0], bound[KEY1]) == (entries[0, KEY], entries[-1, KEY])
        assert bound[NORM] == entries[:, AFTER_NORM].max()
        for field, low, high in (
            (WEIGHT, WEIGHT0, WEIGHT1),
            (KEYWORD_SHARE, KEYWORD_SHARE0, KEYWORD_SHARE1),
            (AFTER_SUM, SUM0, SUM1),
        ):
            assert bound[low] <= entries[:, field].min()
            assert bound[high] == entries[:, field].max()
        assert np.all((bound[X0] <= rows.x[members]) & (rows.x[members] <= bound[X1]))
        assert np.all((bound[Y0] <= rows.y[members]) & (rows.y[members] <= bound[Y1]))
        assert np.all(entries[:, WEIGHT] >= rows.spatial_weight[members])
    alive = r._engine.shards[0].subscriptions.alive()
    expected = [(int(s), int(w)) for s in alive for w in rows.keyword[rows.first[s] : rows.first[s] + rows.n_words[s]]]
    assert sorted(filed) == sorted(expected)
    return n_groups


@pytest.mark.parametrize("space", ["plane", "lonlat"])
def test_bounds_hold_while_subscriptions_come_and_go_and_thresholds_change(space: str) -> None:
    rng = np.random.default_rng(5)
    r = ranker(space, group_size=4, weight_groups=3)
    for step in range(6):
        new = rng.integers(0, 60, 25)
        r.subscribe(
            nc.RankedSubscription(
                int(id), list(rng.choice(WORDS, 1 + id % 4, replace=False)), tuple(rng.random(2)), 1 + id % 3, w
            )
            for id, w in zip(dict.fromkeys(new.tolist()), rng.random(25).tolist(), strict=False)
        )
        check(r)
        r.publish(
            nc.Message(int(100 * step + i), list(rng.choice(WORDS, 3, replace=False)), tuple(rng.random(2))) for i in range(20)
        )
        r.unsubscribe(rng.integers(0, 60, 8).tolist())
        n_groups = check(r)
    assert r.stats()["groups"] == n_groups
    assert 0 < int(r.stats()["scored"]) <= int(r.stats()["entries_seen"])
    r.unsubscribe(range(60))
    assert check(r) == 0
    assert r.stats()["filed"] == 0


def test_equal_subscriptions_are_divided_too() -> None:
    r = ranker(group_size=2)
    r.subscribe(nc.RankedSubscription(i, ["a"], (1, 1)) for i in range(9))
    assert check(r) >= 5


def test_a_group_is_divided_where_its_members_differ() -> None:
    r = ranker(group_size=4)
    r.subscribe(nc.RankedSubscription(i, ["a"], (1, 4.0 * (i % 2)), spatial_weight=0.5) for i in range(8))
    boxes = [(bound[Y0], bound[Y1]) for _, bound, _, _ in groups(r._engine.shards[0].index)]
    assert sorted(set(boxes)) == [(0.0, 0.0), (4.0, 4.0)]


def test_rare_keywords_come_first_and_new_ones_before_all() -> None:
    r = ranker()
    r.subscribe([nc.RankedSubscription(i, ["often", "seldom"] if i == 0 else ["often"], (0, 0)) for i in range(3)])
    r.subscribe([nc.RankedSubscription(9, ["new"], (0, 0))])
    index = r._engine.shards[0].index
    assert isinstance(index, GroupPruned)
    rank = dict(zip(["often", "seldom", "new"], index._lists.rank[r._keywords.find(["often", "seldom", "new"])], strict=True))
    assert rank["new"] < rank["seldom"] < rank["often"]


def test_a_threshold_that_rises_a_little_is_not_filed_anew() -> None:
    r = ranker(window=50)
    r.subscribe([nc.RankedSubscription(1, ["a"], (0, 0), 1, 1.0)])
    index = r._engine.shards[0].index
    assert isinstance(index, GroupPruned)
    for number in range(8):
        r.publish([nc.Message(number, ["a"], (4.0 - number / 1000, 0))])
    filed = float(index._lists.key[0])
    assert filed < float(r._engine.shards[0].buffers.threshold[0]) < filed + index.laziness
    r.publish([nc.Message(100 + number, ["a"], (1.0, 0)) for number in range(4)])
    assert index._lists.key[0] == r._engine.shards[0].buffers.threshold[0] == pytest.approx(0.8)


def test_what_index_and_ranker_tell(tmp_path: Path) -> None:
    r = ranker()
    r.subscribe([nc.RankedSubscription(1, ["a", "b"], (0, 0))])
    lines = r.explain(nc.Message(1, ["a"], (0, 0)), 1)
    assert len(lines.path) == 2
    assert "group 1 of 1, place 1 of 1" in lines.path[0]
    r.save(tmp_path / "saved")
    again = nc.Ranker.open(tmp_path / "saved")
    assert check(again) == 2
    assert again.stats()["lists"] == 2


@pytest.mark.parametrize(("name", "value"), [("group_size", 1), ("weight_groups", 0)])
def test_parameters_are_checked(name: str, value: int) -> None:
    options: dict[str, Any] = {name: value}
    with pytest.raises(IndexParameterError, match=f"{name}={value} is not possible"):
        ranker("plane", **options)


def test_messages_far_away_and_places_beyond_float32_are_scored_right() -> None:
    far = [(1e200, 0.0), (-1e200, 5.0), (3.0, 1e30), (0.0, 0.0), (1e7, 1e7), (1e7 + 1, 1e7)]
    buffers = {name: "auto" if name == "impact_grid" else "kmax" for name in nc.indexes("ranked")}
    everyone = {
        name: nc.Ranker(nc.CountWindow(20), name, buffer, "plane", max_distance=10.0) for name, buffer in buffers.items()
    }
    for r in everyone.values():
        r.subscribe(nc.RankedSubscription(i, ["a"], place, 1, 0.9) for i, place in enumerate(far * 3))
        r.publish(nc.Message(i, ["a"], place) for i, place in enumerate(far * 3))
    lists = [r.top_table().to_pydict() for r in everyone.values()]
    assert all(listed == lists[0] for listed in lists)
    assert lists[0]["score"][0] == 1.0


def test_more_subscriptions_than_are_scored_at_once() -> None:
    r = ranker()
    index: Any = r._engine.shards[0].index
    n = len(index._pending) + 3
    r.subscribe([nc.RankedSubscription(s, ["jazz"], (0.001 * s, 0.0), k=1) for s in range(n)])
    assert len(r.publish([nc.Message(1, ["jazz"], (0.0, 0.0))])) == n


def test_who_is_not_filed_is_not_found() -> None:
    r = ranker()
    r.subscribe([nc.RankedSubscription(s, ["jazz"], (1.0, 1.0)) for s in range(2)])
    index: Any = r._engine.shards[0].index
    lists, rows = index._lists, r._engine.shards[0].subscriptions.layout()
    assert find_entry(lists, rows, 1, rows.keyword[0])[0] != NOT_THERE
    r.unsubscribe([1])
    assert find_entry(lists, rows, 1, rows.keyword[0]) == (NOT_THERE, NOT_THERE)
