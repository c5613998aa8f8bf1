"""Result lists where keys of scores do not decide: bursts, crowded locations, late messages."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.ranked.impact_grid.index import ImpactGrid
from nearcast.ranked.result_lists import AboveThreshold
from nearcast.ranked.tick_engine import TickEngine

N_SUBSCRIPTIONS = 24


def _subscriptions() -> pa.Table:
    rng = np.random.default_rng(1)
    words = [sorted({0, int(rng.integers(1, 4))}) for _ in range(N_SUBSCRIPTIONS)]
    columns = {"id": np.arange(N_SUBSCRIPTIONS), "keywords": pa.array(words, pa.list_(pa.int32()))}
    place = rng.normal(0.0, 1e-3, (2, N_SUBSCRIPTIONS))
    k = np.where(np.arange(N_SUBSCRIPTIONS) % 3 == 0, 1, 4).astype(np.int32)
    return pa.table({**columns, "x": place[0], "y": place[1], "k": k, "spatial_weight": np.linspace(0, 1, N_SUBSCRIPTIONS)})


def _burst(seed: int, n: int) -> pa.Table:
    """Messages of one location, up to less than keys can tell apart; some are repeats, some come late."""
    rng = np.random.default_rng(seed)
    words = [[0, 1 + int(word)] for word in rng.integers(0, 3, n)]
    place = rng.integers(-2, 3, (2, n)) * 1e-11
    time = np.arange(n) * 0.25 - np.where(rng.random(n) < 0.15, rng.integers(0, 12, n), 0)
    columns = {"id": np.arange(n), "keywords": pa.array(words, pa.list_(pa.int32())), "x": place[0], "y": place[1]}
    return pa.table({**columns, "time": time})


@pytest.mark.parametrize("window", [nc.CountWindow(30), nc.TimeWindow(8.0)], ids=["count", "time"])
@pytest.mark.parametrize("spare", [9.4, 0.0])
def test_a_burst_is_ranked_as_by_a_scan(window: Any, spare: float, tmp_path: Path) -> None:
    options: dict[str, Any] = {"space": "plane", "max_distance": 4.0}
    ours = nc.Ranker(window, "impact_grid", buffer_parameters={"spare": spare}, fresh=2, **options)
    scan = nc.Ranker(window, "ranked_scan", **options)
    messages = _burst(7, 220)
    for ranker in (ours, scan):
        ranker.publish_table(messages.slice(0, 40))
        ranker.subscribe_table(_subscriptions())
    for first, last in pairwise([40, 41, 43, 70, 110, 111, 160, 220]):
        changes = [ranker.publish_table(messages.slice(first, last - first)) for ranker in (ours, scan)]
        assert sorted(map(str, changes[0].to_pylist())) == sorted(map(str, changes[1].to_pylist()))
        assert ours.top_table().equals(scan.top_table())
        if last == 110:
            # Freed lists are used again after opening.
            ours.unsubscribe([3, 4])
            scan.unsubscribe([3, 4])
            ours.save(tmp_path / "saved")
            ours = nc.Ranker.open(tmp_path / "saved")
            n_bytes = ours.stats()["buffers_bytes"]
            for ranker in (ours, scan):
                ranker.subscribe_table(_subscriptions().slice(3, 2))
            assert ours.stats()["buffers_bytes"] == n_bytes


def test_messages_that_reach_many_lists_come_in_smaller_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"space": "plane", "max_distance": 4.0}
    changes, n_calls = [], []
    calls: list[Any] = []
    find = ImpactGrid.find

    def counted(*given: Any) -> Any:
        calls.append(given)
        return find(*given)

    monkeypatch.setattr(ImpactGrid, "find", counted)
    for enough, n_pairs in ((1_000_000, 1_000_000), (30, 1_000_000), (1_000_000, 0)):
        monkeypatch.setattr("nearcast.ranked.impact_grid.index._ENOUGH", enough)
        monkeypatch.setattr("nearcast.ranked.tick_engine._MOST_PAIRS", n_pairs)
        ranker = nc.Ranker(nc.CountWindow(30), buffer_parameters={"spare": 0.0}, **options)
        ranker.subscribe_table(_subscriptions())
        calls.clear()
        changes.append(sorted(map(str, ranker.publish_table(_burst(5, 90)).to_pylist())))
        n_calls.append(len(calls))
    assert changes[0] == changes[1] == changes[2]
    # All at once; fewer where many are reached; all that are left when lists were refilled.
    assert n_calls[0] == 1 < min(n_calls[1:])


def test_a_saved_ranker_gets_lists_above_a_floor_from_its_new_index(tmp_path: Path) -> None:
    options: dict[str, Any] = {"space": "plane", "max_distance": 4.0}
    saved = nc.Ranker(nc.TimeWindow(8.0), "group_pruned", **options)
    messages = _burst(9, 120)
    saved.publish_table(messages.slice(0, 50))
    saved.subscribe_table(_subscriptions())
    saved.publish_table(messages.slice(50, 20))
    saved.save(tmp_path / "saved")
    opened = nc.Ranker.open(tmp_path / "saved", index="impact_grid")
    assert opened.stats()["buffer"] == "floor"
    for first in range(70, 120, 10):
        changes = [ranker.publish_table(messages.slice(first, 10)).to_pylist() for ranker in (opened, saved)]
        assert sorted(map(str, changes[0])) == sorted(map(str, changes[1]))
        assert opened.top_table().equals(saved.top_table())


def test_room_for_many_changes_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.ranked.run_state._MOST_KEPT", 16)
    monkeypatch.setattr("nearcast.ranked.run_state._FIRST_CAPACITY", 4)
    ranker = nc.Ranker(nc.CountWindow(30), space="plane", max_distance=4.0)
    ranker.publish_table(_burst(3, 20))
    assert ranker.subscribe_table(_subscriptions()).num_rows > 16
    # As many may come again; if they do not, the memory is given back.
    assert len(ranker._engine.state.changes.tick) > 16  # type: ignore[union-attr]
    assert ranker.publish([nc.Message(1000, keywords=[999], location=(0.5, 0.5), time=1000.0)]) == []
    assert len(ranker._engine.state.changes.tick) == 4  # type: ignore[union-attr]


@pytest.mark.parametrize("window", [nc.CountWindow(260), nc.TimeWindow(260.0)], ids=["count", "time"])
def test_long_lists_are_ranked_as_by_a_scan(window: Any) -> None:
    n, n_messages, rng = 12, 900, np.random.default_rng(8)
    place, words = rng.random((2, n)), pa.array([[0]] * n, pa.list_(pa.int32()))
    # One to three groups of messages that are compared together.
    k = np.resize([18, 60, 120], n).astype(np.int32)
    columns = {"id": np.arange(n), "keywords": words, "x": place[0], "y": place[1]}
    subscriptions = pa.table({**columns, "k": k, "spatial_weight": np.linspace(0.2, 1, n)})
    place, words = rng.random((2, n_messages)), pa.array([[0]] * n_messages, pa.list_(pa.int32()))
    time = np.arange(n_messages) - np.where(np.arange(n_messages) > 600, rng.integers(0, 2, n_messages) * 7.0, 0.0)
    messages = pa.table({"id": np.arange(n_messages), "keywords": words, "x": place[0], "y": place[1], "time": time})
    rankers = [nc.Ranker(window, index, space="plane", max_distance=2.0) for index in ("impact_grid", "ranked_scan")]
    for ranker in rankers:
        ranker.publish_table(messages.slice(0, 200))
        ranker.subscribe_table(subscriptions)
    for first in range(200, n_messages, 20):
        changes = [ranker.publish_table(messages.slice(first, 20)).to_pylist() for ranker in rankers]
        assert sorted(map(str, changes[0])) == sorted(map(str, changes[1]))
        assert rankers[0].top_table().equals(rankers[1].top_table())
    assert float(rankers[0].stats()["held_per_subscription"]) > 64


def test_lists_are_refilled_together_before_they_lack_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    n, k, n_window = 40, 4, 200
    rng = np.random.default_rng(3)

    def messages(first: int, n_messages: int) -> pa.Table:
        place = rng.random((2, n_messages))
        words = pa.array([[0]] * n_messages, pa.list_(pa.int32()))
        return pa.table({"id": np.arange(first, first + n_messages), "keywords": words, "x": place[0], "y": place[1]})

    place, words = rng.random((2, n)), pa.array([[0]] * n, pa.list_(pa.int32()))
    columns = {"id": np.arange(n), "keywords": words, "x": place[0], "y": place[1]}
    subscriptions = pa.table({**columns, "k": np.full(n, k, np.int32), "spatial_weight": np.ones(n)})
    # So little capacity beyond the best k that it does not last.
    ours, scan = (
        nc.Ranker(nc.CountWindow(n_window), index, space="plane", max_distance=2.0, buffer_parameters=options)
        for index, options in (("impact_grid", {"spare": 1.0}), ("ranked_scan", None))
    )
    before = messages(0, n_window)
    for ranker in (ours, scan):
        ranker.publish_table(before)
        ranker.subscribe_table(subscriptions)
    n_alone = 0
    refill_during_run = TickEngine._refill_during_run

    def counted(engine: TickEngine, found: Any) -> Any:
        nonlocal n_alone
        n_alone += 1
        return refill_during_run(engine, found)

    monkeypatch.setattr(TickEngine, "_refill_during_run", counted)
    for first in range(n_window, 4 * n_window, 2):
        batch = messages(first, 2)
        changes = [ranker.publish_table(batch).to_pylist() for ranker in (ours, scan)]
        assert sorted(map(str, changes[0])) == sorted(map(str, changes[1]))
        if first == 2 * n_window:
            # Some have a low reserve now; removed subscriptions are not refilled.
            for ranker in (ours, scan):
                ranker.unsubscribe(range(0, n, 2))
        assert ours.top_table().equals(scan.top_table())
    n_refills = int(ours.stats()["refills"])
    assert n_refills > 40
    # What is left are lists that get a low reserve and lack messages within the same two.
    assert n_alone < n_refills / 4


def test_a_list_above_a_threshold_fetches_what_it_keeps() -> None:
    kind = AboveThreshold()
    for k in (1, 20, 300):
        assert k <= kind.n_to_fetch(k) == kind.n_kept(k) <= kind.capacity(k)
