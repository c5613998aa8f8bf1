"""What counts for an engine of a service: threads, single messages, late subscriptions, opening."""

from __future__ import annotations

import numpy as np

from benchmarks.record import Metric, Record


def two_thread_share(record: Record) -> float | None:
    one, two = record.number("table_seconds"), record.number("two_thread_seconds")
    return two / one if one and two is not None else None


def publish_p50_us(record: Record) -> float | None:
    return _percentile(record, "publish_us", 50)


def publish_p99_us(record: Record) -> float | None:
    return _percentile(record, "publish_us", 99)


def late_ratio(record: Record) -> float | None:
    return record.number("late_ratio")


def late_bytes(record: Record) -> float | None:
    return record.number("late_bytes")


def merge_p99_ms(record: Record) -> float | None:
    return _percentile(record, "merge_batch_ms", 99)


def open_ms(record: Record) -> float | None:
    seconds = record.number("open_seconds")
    return None if seconds is None else 1e3 * seconds


def first_match_seconds(record: Record) -> float | None:
    return record.number("first_match_seconds")


def peak_gib(record: Record) -> float | None:
    n_bytes = record.number("peak_bytes")
    return None if n_bytes is None else n_bytes / 2**30


def call_us(record: Record) -> float | None:
    seconds = record.number("call_seconds")
    return None if seconds is None else 1e6 * seconds


def _percentile(record: Record, name: str, percent: float) -> float | None:
    values = record.steps(name)
    return float(np.percentile(values, percent)) if values.size else None


SERVICE = (
    Metric("two_thread_share", "two threads, of one", "time of the whole stream, table to table", "lower", two_thread_share),
    Metric("publish_p50_us", "publish p50, µs", "median of calls with one message object", "lower", publish_p50_us),
    Metric("publish_p99_us", "publish p99, µs", "99th percentile of calls with one message object", "lower", publish_p99_us),
    Metric(
        "late_ratio", "with late ones, of fresh", "matching when one in a hundred came after the build", "lower", late_ratio
    ),
    Metric("late_bytes", "bytes per late subscription", "what the index holds besides what it built", "lower", late_bytes),
    Metric(
        "merge_p99_ms", "p99 batch in a merge, ms", "1,000 messages, table to table, while it merges", "lower", merge_p99_ms
    ),
    Metric("open_ms", "open, ms", "a saved engine, mapped", "lower", open_ms),
    Metric(
        "first_match_seconds",
        "first match, s",
        "from the start of a fresh process to its first deliveries, kernels compiled before",
        "lower",
        first_match_seconds,
    ),
    Metric("peak_gib", "peak memory, GiB", "of the process while building, tables included", "lower", peak_gib),
    Metric("call_us", "µs per call", "a call with one message: the least that a chunk costs", "lower", call_us),
)
