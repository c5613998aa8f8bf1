"""What the console is served: its page, its policy, its size; rates and percentiles from counters."""

from __future__ import annotations

import gzip
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from nearcast.service import rates
from nearcast.service.console.page import content_policy
from nearcast.service.metrics import Metrics

MOST_BYTES = 600_000


def test_only_the_host_of_the_tiles_is_allowed_beside_our_own() -> None:
    assert "http" not in content_policy("")
    policy = content_policy("https://tiles.example.org:8443/{z}/{x}/{y}.png")
    assert "img-src 'self' data: blob: https://tiles.example.org:8443;" in policy
    assert "script-src 'self';" in policy


def test_what_a_browser_loads_first_is_small() -> None:
    static = Path(str(resources.files("nearcast.service").joinpath("static")))
    if not static.is_dir():
        pytest.skip("the console is not built: make console")
    first = [
        path
        for path in static.rglob("*")
        if path.is_file() and not path.name.startswith(("countries-50m", "counties", "states"))
    ]
    assert sum(len(gzip.compress(path.read_bytes())) for path in first) <= MOST_BYTES


def test_rates_are_of_the_last_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics, now = Metrics(), [100.0]
    monkeypatch.setattr("nearcast.service.rates.time.monotonic", lambda: now[0])
    observed = rates.Rates(metrics)
    metrics.messages.inc(1000)
    assert observed.now()["messages_per_second"] == 0.0
    now[0] += 2.0
    metrics.messages.inc(30)
    metrics.events.inc(60)
    for seconds in (0.003, 0.004, 0.2):
        metrics.seconds.labels("/v1/messages").observe(seconds)
    metrics.seconds.labels("/v1/stats").observe(9.0)
    for outcome in ("accepted", "failed", "given_up"):
        metrics.webhook_requests.labels(outcome).inc()
    told = observed.now()
    assert (told["messages_per_second"], told["deliveries_per_second"]) == (15.0, 30.0)
    assert told["webhook_failures"] == 2.0
    assert 2.5 <= told["publish_p50_ms"] <= 5.0
    assert 100.0 <= told["publish_p99_ms"] <= 250.0
    # What is long ago counts no more.
    for _ in range(8):
        now[0] += 1.0
        told = observed.now()
    assert told["messages_per_second"] == 0.0
    assert "publish_p50_ms" not in told


@pytest.mark.parametrize(
    ("buckets", "share", "expected"), [([], 0.5, None), ([(1.0, 0.0)], 0.5, None), ([(1.0, 4.0)], 0.5, 0.5)]
)
def test_a_quantile_lies_in_its_bucket(buckets: Any, share: float, expected: float | None) -> None:
    assert rates._quantile(buckets, share) == expected
