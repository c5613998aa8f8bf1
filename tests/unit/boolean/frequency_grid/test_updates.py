"""Clauses that come and go after the grid was built, and the merge that takes them in."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.boolean.frequency_grid import layout
from nearcast.boolean.frequency_grid.index import FrequencyGrid, FrequencyGridParameters
from nearcast.boolean.frequency_grid.kernels.delta import may_contain
from nearcast.columns.clauses import ClauseStore
from unit.boolean.frequency_grid.worlds import (
    EAGER,
    RandomWorld,
    Row,
    add_clauses,
    at,
    built,
    expected_pairs,
    filed,
    matched_pairs,
    messages,
)


def remove(index: FrequencyGrid, store: ClauseStore, anchors: list[int]) -> None:
    index.delete(store, store.remove(np.array(anchors, np.int32)))


def insert(index: FrequencyGrid, store: ClauseStore, rows: list[Row]) -> None:
    index.insert(store, add_clauses(store, rows))


@pytest.mark.parametrize("seed", range(4))
def test_clauses_come_and_go_and_are_seen_at_once(seed: int) -> None:
    world = RandomWorld(seed)
    store = filed(world.clauses(60))
    index = built(store)
    batch = world.messages(40)
    for _ in range(4):
        insert(index, store, world.clauses(25))
        remove(index, store, world.rng.choice(store.n, 12, replace=False).tolist())
        assert matched_pairs(index, store, batch) == expected_pairs(store, batch)
        groups, work = index.match(store, batch)
        assert groups.n_pairs <= work.candidates <= store.n_alive * len(batch)


def test_everything_may_go() -> None:
    world = RandomWorld(9)
    store = filed(world.clauses(50))
    index = built(store)
    insert(index, store, world.clauses(50))
    remove(index, store, list(range(100)))
    assert matched_pairs(index, store, world.messages(30)) == []
    head = index._grid.head
    assert (head[layout.N_CLAUSES], head[layout.N_ENTRIES], index._delta.head[layout.N_DELTA]) == (0, 0, 0)


def test_blocks_of_late_clauses_are_used_again() -> None:
    store = filed([([0], at(0.5, 0.5))])
    index = built(store)
    for _ in range(5):
        first = store.n
        insert(index, store, [([1], at(0.5, 0.5))] * 30)
        assert len(matched_pairs(index, store, messages([([1], at(0.5, 0.5))]))) == 30
        remove(index, store, list(range(first, first + 30)))
    assert index._delta.head[layout.N_BLOCKS] == 1 + 30 // layout.BLOCK_CAPACITY


def test_late_clauses_are_found_when_their_table_has_grown() -> None:
    world = RandomWorld(11, n_words=40, width=64.0)
    store = filed(world.clauses(400))
    index = built(store)
    n_slots = []
    for _ in range(30):
        insert(index, store, world.clauses(20))
        n_slots.append(len(index._delta.bloom))
    assert len(set(n_slots)) > 2
    batch = world.messages(80)
    assert matched_pairs(index, store, batch) == expected_pairs(store, batch)
    # A bit for every key: what is filed is let through, and most of what is not is kept out.
    delta, filed_keys = index._delta, index._delta.slot[::2]
    assert all(may_contain(delta.bloom, key) for key in filed_keys[filed_keys != 0])
    assert sum(int(may_contain(delta.bloom, np.int64(key))) for key in range(1 << 40, (1 << 40) + 1000)) < 300


def test_more_late_matches_than_there_is_room_for() -> None:
    store = filed([([0], at(0.5, 0.5))] * 150)
    index = built(store)
    insert(index, store, [([0], (0.0, 0.0, 1.0, 1.0))] * 200)
    # More than the first room holds for the group of messages, counting late ones alone and all together.
    batch = messages([([0], at(0.5, 0.5))] * 45)
    assert index.stats()["late"] == 200
    assert matched_pairs(index, store, batch) == expected_pairs(store, batch)


def test_a_late_clause_over_many_cells_stands_in_one_chain() -> None:
    rows = [([0], (x / 20, y / 20, x / 20 + 0.01, y / 20 + 0.01)) for x in range(20) for y in range(20)]
    store = filed(rows)
    index = built(store)
    n_keys = int(index._delta.head[layout.N_KEYS])
    insert(index, store, [([0], (-1e300, -1e300, 1e300, 1e300))] * 3)
    assert index._delta.head[layout.N_KEYS] == n_keys + 1
    batch = messages([([0], at(0.3, 0.3)), ([0], (0.0, 0.0, 1.0, 1.0)), ([1], at(0.3, 0.3))])
    assert matched_pairs(index, store, batch) == expected_pairs(store, batch)
    assert "without a cell" in index.explain(store, batch, 400)[1]
    remove(index, store, [401])
    assert matched_pairs(index, store, batch) == expected_pairs(store, batch)


def test_late_clauses_take_little_memory() -> None:
    rng = np.random.default_rng(4)
    places = rng.random((6000, 2))
    rows: list[Row] = [([k % 50, 60 + k % 7], (x, y, x + 0.005, y + 0.005)) for k, (x, y) in enumerate(places.tolist())]
    store = filed(rows[:4000])
    index = built(store, FrequencyGridParameters())
    for first in range(4000, 5000, 100):
        insert(index, store, rows[first : first + 100])
    assert index.stats()["late"] == 1000
    assert index.stats()["late_bytes"] <= 250 * 1000


def test_a_small_world_is_merged_at_once() -> None:
    store = filed([([0], at(0, 0))])
    index = built(store)
    insert(index, store, [([k % 5], at(0, 0)) for k in range(1025)])
    assert index.stats()["late"] == 0
    assert not index.wants_merge


@pytest.fixture
def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.boolean.frequency_grid.index._MERGED_AT_ONCE", 0)
    monkeypatch.setattr("nearcast.boolean.frequency_grid.index._LEAST_DELTA", 10)


@pytest.mark.usefixtures("_large")
def test_what_changes_during_a_merge_is_in_the_merged_index() -> None:
    world = RandomWorld(5)
    store = filed(world.clauses(60))
    index = built(store)
    insert(index, store, world.clauses(30))
    wanted_before = index.wants_merge
    work = index.begin_merge(store)
    assert (wanted_before, index.wants_merge) == (True, False)
    remove(index, store, [0, 1, 65])
    insert(index, store, world.clauses(20))
    merged = work()
    # One that the merge met alive, and one that came and went meanwhile.
    remove(index, store, [2, 70, 95])
    batch = world.messages(40)
    assert matched_pairs(index, store, batch) == expected_pairs(store, batch)
    index.finish_merge(store, merged)
    assert matched_pairs(index, store, batch) == expected_pairs(store, batch)
    assert index.stats()["late"] == 19
    remove(index, store, [3, 71, 96])
    assert matched_pairs(index, store, batch) == expected_pairs(store, batch)


@pytest.mark.usefixtures("_large")
def test_a_merge_that_was_overtaken_comes_to_nothing() -> None:
    store = filed([([0], at(0, 0))] * 5)
    index = built(store)
    insert(index, store, [([0], at(0, 0))] * 20)
    merged = index.begin_merge(store)()
    insert(index, store, [([0], at(0, 0))])
    index.build(store)
    index.finish_merge(store, merged)
    batch = messages([([0], at(0, 0))])
    assert matched_pairs(index, store, batch) == expected_pairs(store, batch)


def test_an_empty_index_takes_clauses() -> None:
    store = ClauseStore()
    index = FrequencyGrid(EAGER)
    index.build(store)
    insert(index, store, [([3], at(0, 0)), ([], (0, 0, 2, 2))])
    batch = messages([([3], at(0, 0)), ([], (1, 1, 3, 3))])
    assert matched_pairs(index, store, batch) == [(0, 0), (0, 1), (1, 1)]
    assert "in a chain of the delta" in index.explain(store, batch, 0)[0]


def test_answers_are_right_when_there_is_too_little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.engine.kernel_calls.FIRST_CAPACITY", 1)
    world = RandomWorld(11)
    store = filed(world.clauses(80))
    batch = world.messages(40, 0.5)
    for delta in (0, 60):
        index = built(store)
        if delta:
            insert(index, store, world.clauses(delta))
        assert matched_pairs(index, store, batch) == expected_pairs(store, batch)


def test_a_clause_that_was_never_listed_is_passed_over() -> None:
    store = filed([([0], at(0, 0))])
    index = built(store)
    deleted = add_clauses(store, [([5], at(0, 0))])
    index._remove_from_lists(store.layout(), deleted)
    assert matched_pairs(index, store, messages([([0], at(0, 0))])) == [(0, 0)]
