"""What is built, what is matched, and that both are what they are said to be."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

from nearcast.boolean.frequency_grid import layout
from nearcast.boolean.frequency_grid.index import BUDGETS, FrequencyGrid, FrequencyGridParameters
from nearcast.boolean.frequency_grid.kernels.build import list_start_for, sort_by_key
from nearcast.boolean.frequency_grid.kernels.keys import has_keyword
from nearcast.errors import IndexParameterError
from unit.boolean.frequency_grid.worlds import (
    EAGER,
    RandomWorld,
    Row,
    at,
    built,
    expected_pairs,
    filed,
    matched_pairs,
    messages,
)

FAR = sys.float_info.max
EVERYWHERE = (-FAR, -FAR, FAR, FAR)


def level_of(index: FrequencyGrid, keyword: int) -> int:
    return int(index._grid.directory[2 * (1 + keyword)]) & layout.LEVEL_MASK


def root_of(index: FrequencyGrid, keyword: int) -> list[int]:
    """The clauses of the list without a cell, by kind."""
    place = int(index._grid.directory[2 * (1 + keyword)]) >> (layout.LEVEL_BITS + layout.LINES_BITS)
    return index._grid.run[place : place + layout.HEADER].tolist() if place else [0, 0, 0]


def small_boxes(n: int, keyword: int = 0, seed: int = 1) -> list[Row]:
    x, y = np.random.default_rng(seed).random((2, n))
    return [([keyword], (a, b, a + 0.01, b + 0.01)) for a, b in zip(x.tolist(), y.tolist(), strict=True)]


# --- answers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("parameters", [EAGER, FrequencyGridParameters(), FrequencyGridParameters("small", 3, 0.0)])
def test_random_worlds_on_a_lattice_are_matched_exactly(seed: int, parameters: FrequencyGridParameters) -> None:
    world = RandomWorld(seed)
    store, batch = filed(world.clauses(120)), world.messages(60)
    assert matched_pairs(built(store, parameters), store, batch) == expected_pairs(store, batch)


def test_nothing_is_filed_and_nothing_is_found() -> None:
    store, batch = filed([]), messages([([1], at(0, 0)), ([], (0, 0, 1, 1))])
    assert matched_pairs(FrequencyGrid(EAGER), store, batch) == []
    assert matched_pairs(built(store), store, batch) == []


def test_borders_are_exact_where_rounded_borders_are_not() -> None:
    # All of these round to the same float32 as 0.1: only the exact sides can tell.
    low, high = math.nextafter(0.1, 0), math.nextafter(0.1, 1)
    rows = [([0], (x0, 0.0, x1, 1.0)) for x0 in (low, 0.1, high) for x1 in (low, 0.1, high) if x0 <= x1]
    rows += [([0, 1], (0.0, y0, 1.0, y1)) for y0 in (low, 0.1, high) for y1 in (low, 0.1, high) if y0 <= y1]
    store = filed(rows)
    batch = messages([([0, 1], at(x, y)) for x in (low, 0.1, high) for y in (low, 0.1, high)])
    pairs = matched_pairs(built(store), store, batch)
    assert pairs == expected_pairs(store, batch)
    assert 0 < len(pairs) < len(batch) * store.n


def test_coordinates_beyond_float32_are_told_apart() -> None:
    rows = [([0], (1e300, 0.0, 2e300, 1.0)), ([0], (-FAR, 0.0, -1e300, 1.0)), ([0], EVERYWHERE), ([], EVERYWHERE)]
    rows += [([0], (1e-310, 0.0, 2e-310, 1.0))]
    store = filed(rows)
    places = (1e300, 1.5e300, 2.1e300, -1e300, -0.9e300, FAR, -FAR, 0.0, 1e-310, 3e-310)
    batch = messages([([0], at(x, 0.5)) for x in places])
    assert matched_pairs(built(store), store, batch) == expected_pairs(store, batch)


def test_a_clause_of_many_keywords_is_checked_to_the_last() -> None:
    words = list(range(10))
    store = filed([(words, at(0, 0)), (words[:5], at(0, 0)), (words[:6], at(0, 0))])
    batch = messages([(words, at(0, 0)), (words[:9], at(0, 0)), (words[1:], at(0, 0)), ([*words[:5], 7], at(0, 0))])
    assert matched_pairs(built(store), store, batch) == [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (3, 1)]


def test_a_message_of_many_keywords_is_searched_by_halving() -> None:
    keyword = np.arange(0, 400, 2).astype(np.int32)
    assert all(has_keyword(keyword, 0, 200, wanted) == (wanted % 2 == 0) for wanted in range(400))
    store = filed([([0, 350], at(0, 0)), ([0, 351], at(0, 0)), ([398], at(0, 0))])
    batch = messages([(keyword.tolist(), at(0, 0))])
    assert matched_pairs(built(store), store, batch) == [(0, 0), (0, 2)]


def test_a_wide_message_goes_through_the_table_when_that_is_shorter() -> None:
    store = filed([*small_boxes(50), ([0], (0.2, 0.2, 0.25, 0.25))])
    index = built(store)
    assert 4 ** level_of(index, 0) > len(index._grid.slot) // 2
    batch = messages([([0], (0.0, 0.0, 1.0, 1.0)), ([0], (0.3, 0.3, 0.7, 0.35)), ([0], EVERYWHERE)])
    assert matched_pairs(index, store, batch) == expected_pairs(store, batch)


def test_words_that_were_unseen_when_it_was_built_are_passed_over() -> None:
    store = filed([([1], at(0, 0)), ([], at(0, 0))])
    assert matched_pairs(built(store), store, messages([([1, 2, 900], at(0, 0))])) == [(0, 0), (0, 1)]


def test_each_clause_is_counted_once_for_a_message() -> None:
    store = filed(small_boxes(40))
    index = built(store)
    area, area_work = index.match(store, messages([([0], (0.0, 0.0, 1.0, 1.0))]))
    assert (area.n_pairs, area_work.candidates) == (40, 40)
    point, point_work = index.match(store, messages([([0], at(0.5, 0.5))]))
    assert point.n_pairs <= point_work.candidates < 40


# --- structure -----------------------------------------------------------------------------------------------------------


def test_a_box_that_covers_a_cell_is_delivered_there_without_a_test() -> None:
    store = filed([*small_boxes(40), ([0], (0.1, 0.1, 0.9, 0.9))])
    index = built(store, FrequencyGridParameters(probe_cost=0.0, max_level=4))
    run, slot = index._grid.run, index._grid.slot
    places = [int(value) >> layout.LINES_BITS for key, value in slot.reshape(-1, 2).tolist() if key]
    assert sum(int(run[place]) for place in places) > 0
    assert all(set(run[place + 3 : place + 3 + run[place]].tolist()) <= {40} for place in places)


def test_a_box_over_too_many_cells_stands_in_the_list_without_a_cell() -> None:
    index = built(filed([*small_boxes(400), ([0], EVERYWHERE), ([0, 1], EVERYWHERE), ([0, 1], EVERYWHERE)]))
    assert level_of(index, 0) > 3
    # The two of both keywords are listed under the rarer one.
    assert root_of(index, 0) == [0, 1, 0]
    assert root_of(index, 1) == [0, 0, 2]


def test_only_keywords_worth_it_are_divided() -> None:
    store = filed([*small_boxes(2000, 0), *small_boxes(20, 1)])
    index = built(store, FrequencyGridParameters())
    assert level_of(index, 0) > 0
    assert level_of(index, 1) == 0
    stats = index.stats()
    assert stats["divided_keywords"] == 1
    assert stats["depth"] == 1 + level_of(index, 0)
    assert stats["lists"] > 1


def test_less_memory_means_fewer_copies() -> None:
    rows = [([k % 3], (x, y, x + 0.1, y + 0.1)) for k, (x, y) in enumerate(np.random.default_rng(2).random((1000, 2)).tolist())]
    store = filed(rows)
    copies = [built(store, FrequencyGridParameters(memory)).stats()["copies"] for memory in BUDGETS]
    assert copies[0] < copies[1] < copies[2]


def test_a_history_says_which_keywords_are_worth_a_grid() -> None:
    store = filed([*small_boxes(600, 0), *small_boxes(600, 1)])
    history = messages([([1], at(0.3, 0.3)), ([1], at(0.6, 0.2))] * 1000)
    index = built(store, FrequencyGridParameters("small", 8), history)
    assert (level_of(index, 0), level_of(index, 1) > 0) == (0, True)
    # It counts for later builds too, and for keywords that come later.
    store.remove(np.array([0], np.int32))
    rows = filed([*small_boxes(600, 0), *small_boxes(600, 1), *small_boxes(10, 7)])
    index.build(rows)
    assert (level_of(index, 0), level_of(index, 1) > 0) == (0, True)


def test_a_stray_place_does_not_widen_the_cells() -> None:
    index = built(filed([*small_boxes(4000), ([0], at(1e9, 1e9))]), FrequencyGridParameters())
    assert index._grid.frame[1] < 2.0


def test_a_list_begins_where_it_lies_on_the_fewest_lines() -> None:
    assert [
        list_start_for(16, 16),
        list_start_for(20, 16),
        list_start_for(20, 12),
        list_start_for(20, 30),
        list_start_for(17, 40),
    ] == [
        16,
        32,
        20,
        32,
        17,
    ]


@pytest.mark.parametrize("n", [0, 1, 40, 47, 48, 3000])
def test_keys_are_sorted_with_their_items(n: int) -> None:
    key = np.random.default_rng(n).integers(0, 1 << 14, n).astype(np.int32)
    item = np.arange(n, dtype=np.int32)
    order = np.argsort(key, kind="stable")
    wanted = key[order], item[order]
    sort_by_key(key, item, n, 14, np.empty_like(key), np.empty_like(item), np.empty(2049, np.int64))
    assert np.array_equal(key, wanted[0])
    assert np.array_equal(item, wanted[1])


@pytest.mark.parametrize("given", [{"memory": "huge"}, {"max_level": 1}, {"max_level": 14}, {"probe_cost": -1.0}])
def test_impossible_parameters_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(IndexParameterError, match=f"{next(iter(given))}=.*expected"):
        FrequencyGridParameters(**given)


def test_saved_arrays_make_the_same_index() -> None:
    world = RandomWorld(3)
    store, batch = filed(world.clauses(100)), world.messages(40)
    index, other = built(store, EAGER, batch), FrequencyGrid(EAGER)
    other.restore({name: array.copy() for name, array in index.arrays().items()})
    assert matched_pairs(other, store, batch) == expected_pairs(store, batch)
    assert other._history_estimate is not None
    assert built(store)._history_estimate is None


def test_the_path_is_told() -> None:
    rows = [*small_boxes(60), ([0], EVERYWHERE), ([], at(0.5, 0.5)), ([0, 1], at(0.5, 0.5))]
    store = filed(rows)
    index = built(store)
    x0, y0 = rows[0][1][:2]
    near, elsewhere = messages([([0], at(x0, y0))]), messages([([0], at(1 - x0, 1 - y0))])
    assert "cells of a grid" in index.explain(store, near, 0)[1]
    assert index.explain(store, near, 0)[1].endswith("each clause tested")
    assert index.explain(store, elsewhere, 0)[1].endswith("lies elsewhere")
    assert "without a cell" in index.explain(store, near, 60)[1]
    assert "without keyword" in index.explain(store, near, 61)[0]
    assert "lacks that keyword" in index.explain(store, near, 62)[1]


def test_long_lists_of_every_kind_and_more_matches_than_there_is_room_for() -> None:
    # Sixteen at a time: forty of each kind take three turns; sixty messages at one place more than the first room.
    around = (0.0, 0.0, 100.0, 100.0)
    rows: list[Row] = [([k % 3], (k / 10, k / 10, 100.0, 100.0)) for k in range(120)]
    rows += [([k % 3, 5, 6], around) for k in range(120)]
    # Among many small ones, which make a grid worth it, those that cover a whole cell.
    rows += [([8], at(x * 5.0, y * 5.0)) for x in range(21) for y in range(21)]
    rows += [([8], (10.0 + k / 100, 10.0, 70.0, 70.0)) for k in range(40)]
    store = filed(rows)
    index = built(store)
    batch = messages(
        [([0, 1, 2, 5, 6, 8], at(50.0, 50.0))] * 60
        + [([8], at(35.0, 36.0))]
        + [([0, 5], at(3.0, 3.0)), ([0, 1, 5, 6], (3.0, 3.0, 4.0, 4.0))]
    )
    assert index.match(store, batch)[1].candidates > 60 * 200
    assert matched_pairs(index, store, batch) == expected_pairs(store, batch)
