"""Kind "service": what is measured, and what it is checked against."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import run_plan
from benchmarks.metrics import METRICS
from benchmarks.record import Record
from nearcast.errors import PlanError
from nearcast.machine import peak_bytes, reset_peak

PLAN = """
title = "As a service"
paper = "Nobody 2020"
figure = "Figure 1"
claim = "As fast."
kind = "service"
[workload]
name = "tweets"
vocabulary_size = 500
pool = 20_000
frequencies = "curve"
[sizes.tiny]
n_messages = 60
repetitions = 2
chunk = 25
n_history = 50
[vary]
parameter = "n_subscriptions"
tiny = [300]
[[series]]
index = "scan"
[check]
against = "other"
messages = 10
"""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("two_thread_share", 0.5),
        ("publish_p50_us", 200.0),
        ("publish_p99_us", pytest.approx(298.0)),
        ("merge_p99_ms", 7.0),
        ("late_ratio", 1.2),
        ("late_bytes", 150.0),
        ("open_ms", 4.0),
        ("first_match_seconds", 0.7),
        ("peak_gib", 2.0),
    ],
)
def test_metrics_of_a_service_on_known_numbers(name: str, value: float) -> None:
    facts = {
        "table_seconds": 4.0,
        "two_thread_seconds": 2.0,
        "publish_us": [100.0, 200.0, 300.0],
        "merge_batch_ms": [7.0],
        "late_ratio": 1.2,
        "late_bytes": 150,
        "open_seconds": 0.004,
        "first_match_seconds": 0.7,
        "peak_bytes": 2 << 30,
    }
    assert METRICS[name].of(Record(facts, np.ones((1, 1)), np.ones(1, np.int64))) == value


def test_nothing_measured_gives_no_numbers() -> None:
    nothing = Record({}, np.empty((0, 0)), np.empty(0, np.int64))
    assert [name for name, metric in METRICS.items() if metric.of(nothing) is not None] == []


def test_a_peak_of_memory_is_seen_until_it_is_reset() -> None:
    before = peak_bytes()
    if before is None:
        pytest.skip("this system does not tell")
    held = np.ones(1 << 24)
    assert (peak_bytes() or 0) >= held.nbytes
    reset_peak()
    assert peak_bytes()


def test_a_service_is_checked_against_an_index(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN, encoding="utf-8")
    with pytest.raises(PlanError, match="checked against an index"):
        run_plan(str(path), "tiny", tmp_path)
