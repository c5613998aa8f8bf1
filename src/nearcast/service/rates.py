"""Numbers of the last seconds from counters that only grow."""

from __future__ import annotations

import time
from collections import deque

from nearcast.service.metrics import Metrics

_LOOK_BACK_S = 5.0
_LEAST_STEP_S = 0.5
_PUBLISHING = ("/v1/messages", "/v1/messages/bulk")
_BUCKET = "nearcast_request_seconds_bucket"
_WEBHOOKS, _FAILED = "nearcast_webhook_requests_total", "webhook_failures"


class Rates:
    """Compares what is counted now with what was counted some seconds ago."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._seen: deque[tuple[float, dict[str, float]]] = deque()

    def now(self) -> dict[str, float]:
        """Messages and deliveries per second, subscriptions tested and matched per message, median and p99 time of a post."""
        moment, counted = time.monotonic(), self._counted()
        if not self._seen or moment - self._seen[-1][0] >= _LEAST_STEP_S:
            self._seen.append((moment, counted))
        while len(self._seen) > 1 and moment - self._seen[0][0] > _LOOK_BACK_S:
            self._seen.popleft()
        since, before = self._seen[0]
        grown = {name: value - before.get(name, 0.0) for name, value in counted.items()}
        seconds = max(moment - since, _LEAST_STEP_S)
        rates = {
            "messages_per_second": grown.get("nearcast_messages_total", 0.0) / seconds,
            "deliveries_per_second": grown.get("nearcast_events_total", 0.0) / seconds,
            _FAILED: counted.get(_FAILED, 0.0),
        }
        matched = grown.get("nearcast_matched_messages_total", 0.0)
        if matched:
            rates["candidates_per_message"] = grown.get("nearcast_candidates_total", 0.0) / matched
            rates["matches_per_message"] = grown.get("nearcast_matches_total", 0.0) / matched
        buckets = sorted((float(name.removeprefix("le ")), n) for name, n in grown.items() if name.startswith("le "))
        for name, share in (("publish_p50_ms", 0.5), ("publish_p99_ms", 0.99)):
            found = _quantile(buckets, share)
            if found is not None:
                rates[name] = 1000.0 * found
        return rates

    def _counted(self) -> dict[str, float]:
        counted: dict[str, float] = {}
        for metric in self._metrics.registry.collect():
            for sample in metric.samples:
                if sample.name == _BUCKET and sample.labels["route"] in _PUBLISHING:
                    name = f"le {sample.labels['le']}"
                    counted[name] = counted.get(name, 0.0) + sample.value
                elif sample.name == _WEBHOOKS and sample.labels["outcome"] != "accepted":
                    counted[_FAILED] = counted.get(_FAILED, 0.0) + sample.value
                elif sample.name.endswith("_total") and not sample.labels:
                    counted[sample.name] = sample.value
        return counted


def _quantile(buckets: list[tuple[float, float]], share: float) -> float | None:
    """Between the borders of the bucket in which it lies; None if nothing was counted."""
    if not buckets or buckets[-1][1] <= 0:
        return None
    wanted, low, below = share * buckets[-1][1], 0.0, 0.0
    for high, n in buckets:
        if n >= wanted:
            return low if high == float("inf") else low + (high - low) * (wanted - below) / max(n - below, 1e-9)
        low, below = high, n
    return low
