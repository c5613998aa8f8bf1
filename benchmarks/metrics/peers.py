"""What a peer costs when it is asked for one message at a time."""

from __future__ import annotations

import numpy as np

from benchmarks.metrics.matching import us_per_message
from benchmarks.metrics.metric import Metric
from benchmarks.record import Record


def single_us_per_message(record: Record) -> float | None:
    seconds = record.steps("single_seconds")
    return float(1e6 * np.median(seconds)) if seconds.size else None


def singles_per_second(record: Record) -> float | None:
    us = single_us_per_message(record)
    return 1e6 / us if us else None


def stream_us_per_message(record: Record) -> float | None:
    is_ours = record.facts.get("series", {}).get("subject") == "nearcast"
    return us_per_message(record) if is_ours else single_us_per_message(record)


PEER_METRICS = (
    Metric("single_us_per_message", "µs per message, one by one", "median of single calls", "lower", single_us_per_message),
    Metric("singles_per_second", "messages per second, one by one", "at the median call", "higher", singles_per_second),
    Metric(
        "stream_us_per_message",
        "µs per message of a stream",
        "ours as it takes a stream, in batches; peers as an application asks them for each message of it",
        "lower",
        stream_us_per_message,
    ),
)
