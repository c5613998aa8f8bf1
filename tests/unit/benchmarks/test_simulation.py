"""Simulated clusters: lines through measured shards, and what follows from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import run_plan
from benchmarks.experiments.simulated_clusters import SimulatedClusters
from benchmarks.metrics import METRICS
from benchmarks.record import read_records
from benchmarks.simulation.cluster import simulate
from benchmarks.simulation.cost_model import CostModel, MeasuredShards, ShardLoads, error_percent, least_squares


def shard_loads(owned: list[float], copies: list[float], reached: list[float]) -> ShardLoads:
    return ShardLoads(np.array(owned), np.array(copies), np.array(reached))


def measured(loads: ShardLoads, tell: tuple[float, float, float], take: tuple[float, float]) -> MeasuredShards:
    """Shards with exactly these costs."""
    tell_us = tell[0] + tell[1] * loads.reached + tell[2] * loads.reached * loads.copies
    take_us = take[0] + take[1] * loads.owned
    slowest = float(tell_us.max() + take_us.max())
    return MeasuredShards(loads, tell_us, take_us, slowest, 1000.0, 100.0, 50.0, 0.001, 0.0001, 120.0)


SMALL = shard_loads([100, 200], [300, 150], [0.5, 0.25])
LARGE = shard_loads([400, 800, 1200], [500, 900, 100], [0.75, 0.3, 1.0])


def test_lines_through_measured_shards_are_found_again() -> None:
    cells = [measured(loads, (5.0, 8.0, 0.02), (10.0, 0.01)) for loads in (SMALL, LARGE)]
    model = CostModel.fitted(cells)
    assert model.tell == pytest.approx([5.0, 8.0, 0.02])
    assert model.take == pytest.approx([10.0, 0.01])
    held_out = measured(shard_loads([5000], [9000], [0.9]), (5.0, 8.0, 0.02), (10.0, 0.01))
    assert error_percent(model, held_out) == pytest.approx(0.0, abs=1e-6)
    dearer = measured(shard_loads([5000], [9000], [0.9]), (5.0, 8.0, 0.02), (130.0, 0.01))
    assert error_percent(model, dearer) == pytest.approx(100 * (1 - (5 + 7.2 + 162 + 60) / (5 + 7.2 + 162 + 180)))


def test_no_weight_is_below_zero_and_zeros_give_zeros() -> None:
    features = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    falling = least_squares(features, np.array([3.0, 2.0, 1.0]))
    assert falling[1] == 0
    assert falling[0] > 0
    assert least_squares(features, np.zeros(3)).tolist() == [0, 0]


def test_a_cluster_of_two_shards_by_hand() -> None:
    model = CostModel(np.array([5.0, 8.0, 0.02]), np.array([10.0, 0.01]))
    cell = measured(SMALL, (5.0, 8.0, 0.02), (10.0, 0.01))
    cluster = simulate(model, cell, SMALL, is_fused=False)
    # Telling: 5 + 4 + 3 and 5 + 2 + 0.75; taking: 11 and 12.
    assert cluster.messages_per_second == pytest.approx(1e6 / (12 + 12))
    assert cluster.work_us_per_message == pytest.approx(12 + 7.75 + 11 + 12)
    assert cluster.balance == pytest.approx((23 + 19.75) / 2 / 23)
    assert cluster.copies_per_subscription == pytest.approx(450 / 300)
    assert cluster.tuples_per_message == 0.75
    assert cluster.reports_per_message == pytest.approx(0.3)
    assert cluster.network_bytes_per_message == pytest.approx(0.75 * 120 + 0.3 * 24 + 0.03 * 80)
    assert cluster.feed_bytes_per_message == 240
    assert cluster.shard_gib == pytest.approx((1000 + 200 * 100 + 150 * 50) / 2**30)
    assert cluster.total_gib == pytest.approx((2000 + 300 * 100 + 450 * 50) / 2**30)
    # A third of the lists, but two thirds of the copies.
    busiest = 120 * 1.5 + 0.3 * 24 / 3 + 0.03 * 80 * 2 / 3
    assert cluster.shard_megabytes_per_second == pytest.approx(busiest * cluster.messages_per_second / 1e6)
    assert all(name.startswith("simulated_") for name in cluster.facts())


def test_fused_shards_report_nothing() -> None:
    model = CostModel(np.zeros(3), np.array([10.0, 0.01]))
    evenly = shard_loads([100, 100], [100, 100], [1.0, 1.0])
    cluster = simulate(model, measured(evenly, (0.0, 0.0, 0.0), (10.0, 0.01)), evenly, is_fused=True)
    assert cluster.messages_per_second == pytest.approx(1e6 / 11)
    assert (cluster.tuples_per_message, cluster.reports_per_message, cluster.network_bytes_per_message) == (2, 0, 0)
    assert cluster.total_gib == pytest.approx(2 * (1000 + 100 * 100) / 2**30)


PLAN = """
title = "SIMULATED"
paper = "Nobody"
figure = "SIMULATED"
claim = "Large."
kind = "simulated_clusters"
[workload]
name = "tweets"
vocabulary_size = 300
pool = 20_000
frequencies = "curve"
[sizes.tiny]
n_subscriptions = 80
n_messages = 15
life = 3
repetitions = 1
[vary]
parameter = "shards"
tiny = [10, 30]
[[series]]
method = "prefix"
parameters = { subscriptions = 1_000_000 }
[check]
against = "one_process"
messages = 10
"""


def test_a_simulated_run_says_so_everywhere(tmp_path: Path) -> None:
    (tmp_path / "large.toml").write_text(PLAN)
    ten, thirty = read_records(run_plan(str(tmp_path / "large.toml"), "tiny", tmp_path))
    for record in (ten, thirty):
        assert record.facts["simulated"]
        assert record.facts["n_subscriptions"] == 1_000_000
        assert all(METRICS[name].of(record) is not None for name in SimulatedClusters.metrics)
        # No time was taken.
        assert METRICS["us_per_message"].of(record) is None
    # The model is the same at both points: it was measured once.
    assert ten.facts["model"] == thirty.facts["model"]
    assert ten.facts["simulated_tuples_per_message"] < thirty.facts["simulated_tuples_per_message"]
    of_simulation = [name for name in SimulatedClusters.metrics if name != "held_out_error_percent"]
    assert all(METRICS[name].label.startswith("simulated") for name in of_simulation)
