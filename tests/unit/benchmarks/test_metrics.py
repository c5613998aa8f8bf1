"""Metrics on a record of three lines; records survive the disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.metrics import METRICS
from benchmarks.record import Record, read_records, write_record
from nearcast.errors import PlanError

STEPS: dict[str, Any] = {
    "step_move_seconds": [20e-6, 10e-6],
    "step_moves": [5, 5],
    "step_move_updates": [20, 30],
    "step_move_candidates": [50, 50],
    "step_expiry_seconds": [10e-6, 20e-6],
    "step_bytes": [80, 100],
    "step_seconds": [0.002, 0.004],
    "traffic": {"reports": 50.0, "contacts": 10.0, "safe_regions": 30.0},
}


def record(number: int = 0, **more: Any) -> Record:
    """Two chunks of 10 messages, three passes."""
    facts: dict[str, Any] = {
        "point": {"number": number, "label": "1,000 x", "value": 1000},
        "series": {"number": 0, "label": "a tree"},
        **more,
    }
    seconds = np.array([[10.0, 40.0], [20.0, 20.0], [30.0, 60.0]]) / 1e6
    counters = {"candidates": np.array([30, 50]), "nodes_visited": np.array([5, 15])}
    return Record(facts, seconds, np.array([10, 10]), counters, np.array([0, 2, 4]))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("us_per_message", (10 + 20) / 20),
        ("median_us_per_message", 50 / 20),
        ("spread_percent", 100 * (90 - 40) / 50),
        ("messages_per_second", 1e6 / 1.5),
        ("candidates_per_message", 4.0),
        ("nodes_per_message", 1.0),
        ("matches_per_message", 2.0),
        ("build_seconds", 3.0),
        ("bytes_per_subscription", 50.0),
        ("copies", 1.5),
        ("call_us", 100.0),
        ("us_per_move", 2.0),
        ("us_per_expiry", 0.5),
        ("us_per_move_and_message", 2.0 + 0.5 + 1.5),
        ("updates_per_move", 50 / 10),
        ("candidates_per_move", 100 / 10),
        ("growth_percent", 25.0),
        ("ms_per_step", 3.0),
        ("traffic_per_step", 0.9),
        ("reports_per_step", 0.5),
        ("contacts_per_step", 0.1),
    ],
)
def test_each_metric_on_known_numbers(name: str, value: float) -> None:
    full = record(build_seconds=3, bytes=5000, n_subscriptions=100, stats={"copies": 1.5}, call_seconds=1e-4, **STEPS)
    assert METRICS[name].of(full) == pytest.approx(value)


def test_the_99th_percentile_lies_among_the_slowest_chunks() -> None:
    value = METRICS["p99_us_per_message"].of(record())
    assert value is not None
    assert 4.0 < value <= 6.0


def test_a_metric_without_its_facts_has_no_value() -> None:
    bare = Record({}, np.ones((1, 1)), np.array([1]))
    for name in (
        "candidates_per_message",
        "matches_per_message",
        "build_seconds",
        "bytes_per_subscription",
        "copies",
        "call_us",
        "us_per_move",
        "us_per_expiry",
        "us_per_move_and_message",
        "updates_per_move",
        "candidates_per_move",
        "growth_percent",
        "ms_per_step",
        "traffic_per_step",
        "reports_per_step",
        "contacts_per_step",
    ):
        assert METRICS[name].of(bare) is None
    assert METRICS["us_per_message"].of(bare) == pytest.approx(1e6)


def test_a_record_is_the_same_after_writing_and_reading(tmp_path: Path) -> None:
    write_record(tmp_path, record(1, seed=7))
    path = write_record(tmp_path, record(0))
    assert path.name == "00-1000-x--00-a-tree.json"
    first, second = read_records(tmp_path)
    assert (first.facts["point"]["number"], second.facts["seed"]) == (0, 7)
    assert np.array_equal(first.chunk_seconds, record().chunk_seconds)
    assert np.array_equal(first.matches, record().matches)
    assert np.array_equal(first.counters["candidates"], [30, 50])


@pytest.mark.parametrize("damage", ["{", '{"format": 99}', '{"format": 1}'])
def test_a_damaged_record_is_named(tmp_path: Path, damage: str) -> None:
    path = write_record(tmp_path, record())
    path.write_text(damage)
    if damage == '{"format": 1}':
        path.with_suffix(".npz").unlink()
    with pytest.raises(PlanError, match=r"1000-x--00-a-tree\.json"):
        read_records(tmp_path)
