"""Moving grids that grow, shrink, run out of capacity, and drop dead messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nearcast as nc
from nearcast.columns.frames import enclosing_frame
from nearcast.moving.moving_grid.kernels.keys import cell_coordinate, fine_coordinate
from nearcast.moving.moving_grid.kernels.messages import file_message
from nearcast.moving.moving_grid.keyword_grid import KeywordGrid
from nearcast.moving.moving_grid.layout import FINE, MOST_LEVELS, N_KEYS, NO_CAPACITY
from nearcast.testing.oracles.moving import MovingOracle
from nearcast.testing.scenarios.moving import MovingComparison, run_moving_worlds

SMALL: dict[str, Any] = {"smallest_clause_grid": 4, "smallest_message_grid": 4, "first_level": 2, "growth": 2}

SMALL_ARRAYS = ["scratch._FIRST_CAPACITY", "scratch._FIRST_LISTS", "keyword_grid._FEWEST_SLOTS", "keyword_grid._FEWEST_BLOCKS"]


def compare(**parameters: Any) -> MovingComparison:
    return MovingComparison(nc.MovingMatcher("moving_grid", "plane", **parameters), MovingOracle("plane"))


def boxes(rng: np.random.Generator, n: int, largest: float) -> list[nc.Box]:
    corner, size = rng.integers(0, 40, (n, 2)) / 2, rng.integers(0, int(2 * largest), (n, 2)) / 2
    return [nc.Box(x, y, x + w, y + h) for (x, y), (w, h) in zip(corner.tolist(), size.tolist(), strict=True)]


def test_levels_follow_the_counts_up_and_down() -> None:
    rng = np.random.default_rng(1)
    both = compare(**SMALL)
    for round_ in range(2):
        both.subscribe([nc.Subscription(i, ["a"], box) for i, box in enumerate(boxes(rng, 40, 12))])
        where = (rng.integers(0, 40, (40, 2)) / 2).tolist()
        time = 10.0 * round_
        both.publish(
            [nc.Message(100 * round_ + i, ["a"], (x, y), time=time, expires=time + 9) for i, (x, y) in enumerate(where)]
        )
        both.publish([nc.Message(i + 5000, ["a"], box, expires=time + 9) for i, box in enumerate(boxes(rng, 20, 8))])
        both.move(dict(enumerate(boxes(rng, 40, 12))))
        both.unsubscribe(list(range(38)))
        both.advance(time + 9.5)
        for _ in range(2):
            both.publish([nc.Message(-1 - round_, ["b"], (1, 1), expires=time + 10)])
            both.advance(time + 9.8)
        assert both.matcher.stats()["clause_entries"] == 2


def test_a_message_is_found_under_a_keyword_that_nobody_had_before() -> None:
    both = compare(**SMALL)
    both.subscribe([nc.Subscription(i, ["a"], nc.Box(0, 0, 9, 9)) for i in range(5)])
    both.publish([nc.Message(i, ["a", f"w{i % 3}", "z"], (i % 10, 5)) for i in range(30)])
    both.publish([nc.Message(100, ["w1"], nc.Box(2, 2, 4, 4))])
    assert both.matcher.stats()["message_entries"] == 30
    assert (
        len(both.subscribe([nc.Subscription(7, ["w1", "z"], nc.Box(0, 0, 9, 9)), nc.Subscription(8, [], nc.Box(0, 0, 9, 9))]))
        == 41
    )
    both.publish([nc.Message(200, ["new"], (1, 1))])
    assert len(both.subscribe([nc.Subscription(9, ["new"], None)])) == 1


def test_a_world_that_wanders_off_gets_another_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.moving.moving_grid.index._LEAST_OUTSIDE", 8)
    both = compare(**SMALL)
    both.subscribe([nc.Subscription(i, ["a"], nc.Box(i, 0, i + 1, 1)) for i in range(20)])
    for step in range(1, 5):
        both.move({i: nc.Box(1000 * step + i, 0, 1000 * step + i + 1, 1) for i in range(20)})
        both.publish([nc.Message(100 * step + i, ["a"], (1000 * step + i, 0.5)) for i in range(20)])
        both.subscribe([nc.Subscription(100 + step, ["a"], nc.Box(1000 * step, 0, 1000 * step + 5, 5))])
    far = nc.Box(-1.7e308, -1.7e308, 1.7e308, 1.7e308)
    both.subscribe([nc.Subscription(200, ["a"], far), nc.Subscription(201, [], nc.Box(1e300, 1e300, 1e301, 1e301))])
    both.publish([nc.Message(5000, ["a"], (1e300, 1e300)), nc.Message(5001, ["a"], nc.Box(-1e305, 0, 1e305, 1))])
    both.move({200: nc.Box(1e300, 0, 1e301, 1e301), 201: far})


@pytest.mark.parametrize(
    "small", ["scratch._FIRST_CAPACITY", "scratch._FIRST_LISTS", "keyword_grid._FEWEST_SLOTS", "keyword_grid._FEWEST_BLOCKS"]
)
def test_answers_are_right_when_an_array_starts_too_small(small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"nearcast.moving.moving_grid.{small}", 4 if small.endswith("SLOTS") else 1)
    monkeypatch.setattr("nearcast.moving.moving_grid.index._MOVES_AT_ONCE", 3)
    rng = np.random.default_rng(9)
    both = compare(**SMALL)
    both.subscribe([nc.Subscription(i, ["a", "b"][: 1 + i % 2], box) for i, box in enumerate(boxes(rng, 14, 20))])
    both.publish([nc.Message(i, ["a", "b", "c"], box) for i, box in enumerate(boxes(rng, 14, 20))])
    where = (rng.integers(0, 40, (24, 2)) / 2).tolist()
    both.publish([nc.Message(100 + i, ["a", "b"], (x, y)) for i, (x, y) in enumerate(where)])
    both.move(dict(enumerate(boxes(rng, 14, 20))))
    both.publish([nc.Message(300, ["a"], nc.Box(0, 0, 40, 40)), nc.Message(301, ["b", "a"], nc.Box(0, 0, 9, 9))])
    both.move({i: nc.Box(0, 0, 0, 0) for i in range(14)})
    both.move({i: nc.Box(0, 0, 40, 40) for i in range(14)})
    both.subscribe([nc.Subscription(50, ["c"], nc.Box(0, 0, 20, 20))])


def test_a_crowd_that_scatters_finds_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.moving.moving_grid.keyword_grid._FEWEST_BLOCKS", 1)
    both = compare(smallest_clause_grid=4, first_level=5)
    far = [nc.Subscription(1000 + i, ["b"], nc.Box(32 * i, 0, 32 * i, 992)) for i in range(2)]
    both.subscribe([*[nc.Subscription(i, ["a"], nc.Box(1, 1, 1, 1)) for i in range(90)], *far])
    both.publish([nc.Message(1, ["a"], (1, 1)), nc.Message(2, ["a"], (500.0, 500.0))])
    both.move({i: nc.Box(32 * (i % 31), 32 * (i // 31), 32 * (i % 31), 32 * (i // 31)) for i in range(90)})
    both.move({i: nc.Box(500, 500, 500, 500) for i in range(90)})


@pytest.mark.parametrize(("seed", "number"), [(12, 5460), (13, 9219)])
def test_a_clause_is_not_lost_when_it_moves_and_the_table_is_full(seed: int, number: int) -> None:
    def make_matcher(space: str = "lonlat") -> nc.MovingMatcher:
        grids: dict[str, Any] = {"smallest_clause_grid": 1, "smallest_message_grid": 2, "first_level": 4, "growth": 4}
        return nc.MovingMatcher("moving_grid", space, **grids)

    run_moving_worlds(make_matcher, 1, seed=seed, first=number)


def test_a_list_that_has_become_short_takes_less_room() -> None:
    both = compare(smallest_message_grid=1000)
    both.subscribe([nc.Subscription(1, ["a"], None), nc.Subscription(2, ["b"], None)])
    both.publish([nc.Message(i, ["a"], (1, 1), time=0, expires=1 if i else 99) for i in range(90)])
    assert len(both.advance(1)) == 89
    for time in range(2, 8):
        both.publish([nc.Message(1000 + time, ["b"], (1, 1), time=time, expires=time + 1)])
    assert int(both.matcher.stats()["message_entries"]) < 10
    assert both.matcher.current(1) == {0}


def test_the_dead_are_forgotten_and_nothing_grows() -> None:
    matcher = nc.MovingMatcher("moving_grid", "plane", **SMALL)
    matcher.subscribe([nc.Subscription(i, [f"w{i % 7}"], nc.Box(i % 10, 0, i % 10 + 1, 9)) for i in range(60)])
    sizes = []
    for step in range(60):
        words = [f"w{step % 9}", f"w{step % 5}"]
        matcher.publish([nc.Message(40 * step + i, words, (i % 10, i % 9), time=step, expires=step + 5) for i in range(40)])
        sizes.append(int(matcher.stats()["bytes"]))
    assert matcher.stats()["messages"] == 200
    assert int(matcher.stats()["message_entries"]) < 3 * 2 * 200
    assert max(sizes[30:]) == max(sizes[:30])
    matcher.advance(1000.0)
    matcher._state.index.purge(matcher._state.subscriptions.clauses, matcher._state.messages)
    assert matcher.stats()["message_entries"] == 0


def test_a_point_on_a_rounded_border_is_decided_exactly() -> None:
    both = compare(**SMALL)
    edge = 0.1 + 1e-12  # rounds to the same float32 as its neighbours
    places = [0.1, edge, float(np.nextafter(edge, 1)), float(np.nextafter(edge, 0)), 0.1 + 2e-12]
    both.subscribe([nc.Subscription(i, ["a"], nc.Box(-1, -1, edge, edge)) for i in range(6)])
    both.subscribe([nc.Subscription(10, ["a", "b"], nc.Box(edge, edge, 1, 1))])
    both.publish([nc.Message(10 * i + j, ["a", "b"], (x, y)) for i, x in enumerate(places) for j, y in enumerate(places)])
    for to in places:
        both.move({0: nc.Box(-1, -1, to, to), 10: nc.Box(to, to, 1, 1)})


def test_long_lists_and_many_keywords() -> None:
    rng = np.random.default_rng(5)
    both = compare(smallest_clause_grid=500, smallest_message_grid=500)
    words = [f"w{i}" for i in range(9)]
    wanted = [words[: 1 + i % 9] for i in range(40)]
    both.subscribe([nc.Subscription(i, w, box) for i, (w, box) in enumerate(zip(wanted, boxes(rng, 40, 12), strict=True))])
    where = (rng.integers(0, 40, (90, 2)) / 2).tolist()
    both.publish([nc.Message(i, words[: i % 12], (x, y)) for i, (x, y) in enumerate(where)])
    both.publish([nc.Message(1000 + i, words, box) for i, box in enumerate(boxes(rng, 6, 9))])
    for _ in range(4):
        both.move(dict(enumerate(boxes(rng, 40, 12))))


def test_the_path_through_the_index_is_explained(tmp_path: Path) -> None:
    matcher = nc.MovingMatcher("moving_grid", "plane", **SMALL)
    matcher.subscribe([nc.Subscription(i, ["a"], nc.Box(0, 0, 1, 1)) for i in range(6)])
    matcher.subscribe([nc.Subscription(10, [], nc.Box(0, 0, 1, 1))])
    path = matcher.explain(nc.Message(1, ["b"], (0, 0)), 3).path
    assert path == ("keyword 0: 6 clauses in grid of 4 x 4 cells, not visited: the message lacks that keyword",)
    assert matcher.explain(nc.Message(1, ["b"], (0, 0)), 10).path == (
        "clauses without keywords: 1 clauses in one list, visited",
    )
    matcher.save(tmp_path / "saved")
    again, names = nc.MovingMatcher.open(tmp_path / "saved"), ("clause_entries", "message_entries", "subscriptions")
    assert [again.stats()[name] for name in names] == [matcher.stats()[name] for name in names] == [7, 0, 7]


@pytest.fixture(
    params=["scratch._FIRST_CAPACITY", "scratch._FIRST_LISTS", "keyword_grid._FEWEST_BLOCKS", "keyword_grid._FEWEST_SLOTS"]
)
def _tiny_arrays(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    # One kind at a time, because several arrays grow together.
    monkeypatch.setattr(f"nearcast.moving.moving_grid.{request.param}", 4 if request.param.endswith("SLOTS") else 1)


@pytest.mark.usefixtures("_tiny_arrays")
@pytest.mark.parametrize("parameters", [{}, SMALL], ids=["default", "small"])
@pytest.mark.parametrize("place", [(5.0, 5.0), nc.Box(1, 1, 8, 8)], ids=["point", "area"])
def test_a_message_that_concerns_a_crowd_finds_room(parameters: dict[str, Any], place: Any) -> None:
    both = compare(**parameters)
    both.subscribe([nc.Subscription(i, ["a"], nc.Box(4, 4, 7, 7)) for i in range(90)])
    assert len(both.publish([nc.Message(0, ["a"], place)])) == 90


@pytest.mark.usefixtures("_tiny_arrays")
@pytest.mark.parametrize("parameters", [{}, SMALL], ids=["default", "small"])
@pytest.mark.parametrize("place", [(5.0, 5.0), nc.Box(1, 1, 8, 8), nc.Box(5, 5, 5.25, 5.25)], ids=["point", "area", "speck"])
def test_a_move_away_from_many_messages_finds_room(parameters: dict[str, Any], place: Any) -> None:
    both = compare(**parameters)
    both.subscribe([nc.Subscription(i, [f"w{i}"], nc.Box(4, 4, 7, 7)) for i in range(3)])
    both.publish([nc.Message(i, ["w0"], place) for i in range(90)])
    assert len(both.move({i: nc.Box(30, 30, 33, 33) for i in range(3)})) == 90


@pytest.mark.usefixtures("_tiny_arrays")
def test_a_message_finds_room_under_many_words_that_are_new() -> None:
    words = [f"w{i}" for i in range(12)]
    both = compare(**SMALL)
    both.subscribe([nc.Subscription(f"other {i}", ["z"], nc.Box(0, 0, 40, 40)) for i in range(20)])
    both.publish([nc.Message(0, words, (5.0, 5.0))])
    assert len(both.subscribe([nc.Subscription(word, [word], nc.Box(0, 0, 20, 20)) for word in words])) == 12


def test_messages_in_ever_more_cells_find_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.moving.moving_grid.keyword_grid._FEWEST_SLOTS", 4)
    for n in range(4, 24):
        both = compare(**SMALL)
        both.subscribe([nc.Subscription(f"first {i}", ["a"], nc.Box(0, 0, 9 + i, 40)) for i in range(3)])
        corners = [(float(i), float(7 * i % 23)) for i in range(n)]
        both.publish([nc.Message(i, ["a", "b"], nc.Box(x, y, x + 0.25, y + 0.25)) for i, (x, y) in enumerate(corners)])
        both.subscribe([nc.Subscription("then", ["b"], nc.Box(0, 0, 9, 9))])


def test_the_first_look_at_many_areas_finds_room(monkeypatch: pytest.MonkeyPatch) -> None:
    # Not together with an oracle, which would look at the results before.
    monkeypatch.setattr("nearcast.moving.moving_grid.scratch._FIRST_CAPACITY", 1)
    matcher = nc.MovingMatcher("moving_grid", "plane", **SMALL)
    matcher.subscribe([nc.Subscription(i, [f"w{i}"], nc.Box(4, 4, 7, 7)) for i in range(3)])
    matcher.publish([nc.Message(i, ["w0"], nc.Box(5, 5, 5.25, 5.25)) for i in range(90)])
    left = matcher.move({i: nc.Box(30, 30, 33, 33) for i in range(3)})
    assert {(change.message_id, change.change) for change in left} == {(i, -1) for i in range(90)}


def test_a_full_table_takes_no_message() -> None:
    grid = KeywordGrid(np.zeros(2 * (MOST_LEVELS + 1), np.int64))
    grid.widen(2)
    grid.lists.head[N_KEYS] = grid.lists.slot.size
    assert file_message(grid.lists, np.ones(6), 1, 0, 1.0, 1.0, 1.0, 1.0) == NO_CAPACITY


def test_messages_of_few_and_of_many_keywords_are_judged_alike() -> None:
    both = compare(**SMALL)
    words = [f"w{i}" for i in range(40)]
    both.subscribe([nc.Subscription(i, [f"w{i % 40}", f"w{(7 * i) % 40}"], nc.Box(0, 0, 5, 5)) for i in range(80)])
    lengths = (2, 14, 15, 16, 17, 33, 40)
    for number, n in enumerate(lengths):
        both.publish(
            [nc.Message(100 * number + i, words[i : i + n] + words[: i + n - 40], (i % 8, 2)) for i in range(0, 40, 3)]
        )
    both.move({i: nc.Box(3, 0, 7, 5) for i in range(80)})
    both.move({i: nc.Box(i % 5, 0, 5, 5) for i in range(80)})


@pytest.mark.parametrize("frame", [(0.0, 1.0), (-180.0, 180.0), (-1e300, 1.7e308), (3.0, 3.0), (0.0, 1e-310)])
def test_places_in_a_cell_never_fall(frame: tuple[float, float]) -> None:
    low, high = frame
    lows, highs = np.array([low]), np.array([high])
    edges = enclosing_frame(lows, lows, highs, highs, 1 << FINE)
    rng = np.random.default_rng(1)
    values = np.sort(np.concatenate([low + (high / 2 - low / 2) * rng.random(300) * 2, [low, high, -1.7e308, 1.7e308, 0.0]]))
    places = [fine_coordinate(value, edges, 0) for value in values]
    assert sorted(places) == places
    for level in (0, 1, 5, MOST_LEVELS):
        for origin in (0, 1 << (FINE - level), ((1 << level) - 1) << (FINE - level)):
            within = [cell_coordinate(place, origin, level) for place in places]
            assert sorted(within) == within
            assert 1 <= within[0] <= within[-1] <= 65534


def test_the_grid_of_a_keyword_becomes_finer_when_clauses_are_inserted() -> None:
    rng = np.random.default_rng(4)
    both = compare(smallest_clause_grid=1, first_level=1, growth=2)
    places = boxes(rng, 60, 4)
    both.subscribe([nc.Subscription(i, ["a"], box) for i, box in enumerate(places[:31])])
    both.subscribe([nc.Subscription(31 + i, ["a"], box) for i, box in enumerate(places[31:])])
    both.publish([nc.Message(i, ["a"], (x, y)) for i, (x, y) in enumerate((rng.integers(0, 40, (30, 2)) / 2).tolist())])
