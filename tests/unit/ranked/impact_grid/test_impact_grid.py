"""The impact grid with classes, cells, rebuilds and delta parts."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.errors import IndexParameterError
from nearcast.testing.budget import current_budget
from nearcast.testing.scenarios.ranked import run_ranked_worlds

# Limits made so small that small worlds have classes, cells, parts and rebuilds.
SMALL = {
    "rebuild._LEAST_CLASSED": 2,
    "rebuild._LEAST_IN_CLASS": 1,
    "rebuild._LEAST_DIVIDED": 2,
    "rebuild._FIRST_CAPACITY": 1,
    "index._LEAST_WORDS": 1,
    "index._FIRST_CAPACITY": 1,
    "index._FIRST_WORDS": 1,
    "index._ENOUGH": 20,
    "index._LEAST_DELTA": 8,
    "index._LEAST_LATER": 10,
    "index._SAMPLES_LATER": 1,
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SMALL.items():
        monkeypatch.setattr(f"nearcast.ranked.impact_grid.{name}", value)
    monkeypatch.setattr("nearcast.ranked.run_state._FIRST_CHUNKS", 1)


@pytest.mark.usefixtures("small")
def test_classes_and_cells_give_the_answers_of_the_oracle() -> None:
    make = partial(nc.Ranker, index="impact_grid", cell_cost=1e-9)
    run_ranked_worlds([partial(make, buffer="floor", fresh=fresh) for fresh in (0, 3)], 3, seed=5)


@pytest.mark.usefixtures("small")
def test_cells_are_finer_where_there_are_many_subscriptions(monkeypatch: pytest.MonkeyPatch) -> None:
    subscriptions, batches = _world(3, "plane", 300, 400)
    cells, tops = [], []
    for many in (1_000_000, 1):
        monkeypatch.setattr("nearcast.ranked.impact_grid.index._MANY", many)
        ranker = nc.Ranker(nc.CountWindow(100), "impact_grid", space="plane", max_distance=30.0, cell_cost=3e-3)
        ranker.publish_table(batches[0])
        ranker.subscribe_table(subscriptions)
        for batch in batches[1:]:
            ranker.publish_table(batch)
        cells.append(int(ranker.stats()["cells"]))
        tops.append(ranker.top_table())
    assert tops[0].equals(tops[1])
    assert cells[0] < cells[1]


def _world(seed: int, space: str, n: int, n_messages: int) -> tuple[pa.Table, list[pa.Table]]:
    """Subscriptions of up to nine words in a few towns, and messages that repeat words."""
    rng = np.random.default_rng(seed)
    towns = rng.uniform(-60, 60, (5, 2))
    # One at the edge of the map, one in the first of all cells.
    towns[:2] = (179.5, 70.0), (-61.0, -61.0)

    def rows(n: int, most: int) -> dict[str, Any]:
        assign_cells = towns[rng.integers(0, 5, n)] + rng.normal(0, 0.5, (n, 2))
        if space == "lonlat":
            assign_cells[:, 0] = (assign_cells[:, 0] + 180.0) % 360.0 - 180.0
        words = [(30 * rng.random(int(rng.integers(1, most))) ** 2).astype(np.int32).tolist() for _ in range(n)]
        return {
            "id": np.arange(n),
            "keywords": pa.array(words, pa.list_(pa.int32())),
            "x": assign_cells[:, 0],
            "y": assign_cells[:, 1],
        }

    weights = np.where(rng.random(n) < 0.2, rng.integers(0, 2, n), rng.random(n))
    subscriptions = pa.table({**rows(n, 10), "k": rng.integers(1, 6, n).astype(np.int32), "spatial_weight": weights})
    messages = pa.table(rows(n_messages, 12))
    return subscriptions, [messages.slice(first, 50) for first in range(0, n_messages, 50)]


def _steps(table: pa.Table) -> set[tuple[Any, ...]]:
    return {tuple(row.values()) for row in table.to_pylist()}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("space", ["plane", "lonlat"])
def test_longer_subscriptions_than_a_record_has_room_for(space: str) -> None:
    subscriptions, parts = _world(3, space, 88, 200)
    options: dict[str, Any] = {"space": space, "max_distance": 30.0 if space == "plane" else 3e6}
    rankers = [
        nc.Ranker(nc.CountWindow(60), "impact_grid", fresh=1, cell_cost=1e-9, **options),
        nc.Ranker(nc.CountWindow(60), "ranked_scan", **options),
    ]
    for part in parts[:2]:
        assert not any(ranker.publish_table(part).num_rows for ranker in rankers)
    # At the next message the first are filed, the next few in a delta part, the last one in no list.
    for at, (first, n) in enumerate(((0, 80), (80, 7), (87, 1))):
        found, expected = (_steps(ranker.subscribe_table(subscriptions.slice(first, n))) for ranker in rankers)
        assert found == expected
        assert rankers[0].stats()["fresh"] == n
        found, expected = (_steps(ranker.publish_table(parts[2].slice(at, 1))) for ranker in rankers)
        assert found == expected
    assert [rankers[0].stats()[name] for name in ("filed", "filed_later", "fresh")] == [80, 7, 1]
    assert "no list" in rankers[0].explain(nc.Message(-1, keywords=[1], location=(0.0, 0.0)), 87).path[0]
    for part in (parts[2].slice(3), *parts[3:]):
        found, expected = (_steps(ranker.publish_table(part)) for ranker in rankers)
        assert found == expected
        assert found
    stats = rankers[0].stats()
    assert stats["cells"] != 0
    assert stats["buffer"] == "floor"
    assert "threshold" in rankers[0].explain(nc.Message(-1, keywords=[1], location=(0.0, 0.0)), 0).path[0]


def test_a_burst_of_equal_messages_keeps_the_newest() -> None:
    n_subscriptions = 20 if current_budget().many > 1000 else 8
    ranker = nc.Ranker(nc.CountWindow(300), "impact_grid", space="plane", max_distance=10.0)
    ranker.subscribe([nc.RankedSubscription(n, ["storm"], (float(n), 0.0), k=3) for n in range(n_subscriptions)])
    ranker.publish([nc.Message(n, keywords=["storm"], location=(1.0, 0.0)) for n in range(500)])
    assert [id for id, _ in ranker.top(7)] == [499, 498, 497]


def test_a_message_of_many_words() -> None:
    ranker = nc.Ranker(nc.CountWindow(5), "impact_grid", space="plane", max_distance=10.0)
    ranker.subscribe([nc.RankedSubscription(n, [n, n + 1], (0.0, 0.0), k=1) for n in range(0, 1200, 40)])
    ranker.publish([nc.Message(1, keywords=list(range(700)), location=(0.0, 0.0))])
    assert len(ranker.top_table()) == 18


def test_floors_are_only_for_indexes_that_find_ahead() -> None:
    with pytest.raises(IndexParameterError, match="buffer 'floor' does not go with index 'group_pruned'"):
        nc.Ranker(nc.CountWindow(5), "group_pruned", "floor")


@pytest.mark.parametrize(("given", "message"), [({"cell_cost": 0.0}, "cell_cost=0.0"), ({"fresh": -1}, "fresh=-1")])
def test_options_that_are_not_possible(given: dict[str, Any], message: str) -> None:
    with pytest.raises(IndexParameterError, match=message):
        nc.Ranker(nc.CountWindow(5), "impact_grid", **given)


def test_spare_that_is_not_possible() -> None:
    with pytest.raises(IndexParameterError, match="spare=-1"):
        nc.Ranker(nc.CountWindow(5), "impact_grid", buffer_parameters={"spare": -1.0})


@pytest.mark.parametrize("other", ["ranked_scan", "impact_grid"])
def test_a_saved_ranker_is_opened_with_another_index(other: str, tmp_path: Path) -> None:
    subscriptions, parts = _world(4, "plane", 30, 150)
    ranker = nc.Ranker(nc.CountWindow(70), "impact_grid", space="plane", max_distance=30.0)
    ranker.subscribe_table(subscriptions)
    ranker.publish_table(parts[0])
    ranker.save(tmp_path / "saved")
    opened = nc.Ranker.open(tmp_path / "saved", other)
    assert opened.top_table().equals(ranker.top_table())
    for part in parts[1:]:
        assert _steps(opened.publish_table(part)) == _steps(ranker.publish_table(part))


def test_all_messages_of_a_saved_window_of_time_end_at_once(tmp_path: Path) -> None:
    ranker = nc.Ranker(nc.TimeWindow(10.0), "impact_grid", space="plane", max_distance=10.0)
    ranker.subscribe([nc.RankedSubscription(1, ["storm"], (0.0, 0.0), k=3)])
    ranker.publish([nc.Message(n, keywords=["storm"], location=(0.0, 0.0), time=float(n)) for n in range(9)])
    ranker.save(tmp_path / "saved")
    opened = nc.Ranker.open(tmp_path / "saved")
    assert sorted((step.message_id, step.change) for step in opened.advance(100.0)) == [(6, -1), (7, -1), (8, -1)]
    assert opened.top(1) == []
