"""What matching messages costs, in batches and one by one."""

from __future__ import annotations

import numpy as np

from benchmarks.record import Metric, Record


def us_per_message(record: Record) -> float | None:
    if not record.chunk_seconds.size:
        return None
    best_s = record.chunk_seconds.min(axis=0).sum()
    return float(1e6 * best_s / record.n_messages)


def median_us_per_message(record: Record) -> float | None:
    if not record.chunk_seconds.size:
        return None
    return float(1e6 * np.median(record.chunk_seconds.sum(axis=1)) / record.n_messages)


def spread_percent(record: Record) -> float | None:
    if not record.chunk_seconds.size:
        return None
    passes = record.chunk_seconds.sum(axis=1)
    return float(100 * (passes.max() - passes.min()) / np.median(passes))


def p99_us_per_message(record: Record) -> float | None:
    if not record.chunk_seconds.size:
        return None
    return float(np.percentile(1e6 * record.chunk_seconds / record.chunk_messages, 99))


def p50_batch_ms(record: Record) -> float | None:
    if not record.chunk_seconds.size:
        return None
    return float(1e3 * np.median(record.chunk_seconds))


def messages_per_second(record: Record) -> float | None:
    us = us_per_message(record)
    return 1e6 / us if us else None


def candidates_per_message(record: Record) -> float | None:
    return record.per_message("candidates")


def nodes_per_message(record: Record) -> float | None:
    return record.per_message("nodes_visited")


def matches_per_message(record: Record) -> float | None:
    return float(record.matches.mean()) if record.matches.size else None


def build_seconds(record: Record) -> float | None:
    return record.number("build_seconds")


def insert_us(record: Record) -> float | None:
    seconds, n = record.number("insert_seconds"), record.number("n_inserted")
    return 1e6 * seconds / n if seconds is not None and n else None


def bytes_per_subscription(record: Record) -> float | None:
    n_bytes, n = record.number("bytes"), record.number("n_subscriptions")
    return n_bytes / n if n_bytes is not None and n else None


def table_bytes_per_subscription(record: Record) -> float | None:
    n_bytes, n = record.number("table_bytes"), record.number("n_subscriptions")
    return n_bytes / n if n_bytes is not None and n else None


def copies(record: Record) -> float | None:
    return record.stat("copies")


def table_us_per_message(record: Record) -> float | None:
    seconds = record.number("table_seconds")
    return None if seconds is None else 1e6 * seconds / record.n_messages


def single_us_per_message(record: Record) -> float | None:
    seconds = record.steps("single_seconds")
    return float(1e6 * np.median(seconds)) if seconds.size else None


def singles_per_second(record: Record) -> float | None:
    us = single_us_per_message(record)
    return 1e6 / us if us else None


def stream_us_per_message(record: Record) -> float | None:
    is_ours = record.facts.get("series", {}).get("subject") == "nearcast"
    return us_per_message(record) if is_ours else single_us_per_message(record)


MATCHING = (
    Metric(
        "us_per_message",
        "µs per message",
        "the best time of each chunk over all passes, summed: the cost of the work when nothing interferes",
        "lower",
        us_per_message,
    ),
    Metric("median_us_per_message", "median µs per message", "median pass over the stream", "lower", median_us_per_message),
    Metric("spread_percent", "spread of passes, %", "slowest minus fastest pass, of the median", "lower", spread_percent),
    Metric("p99_us_per_message", "p99 chunk, µs per message", "99th percentile of all chunks", "lower", p99_us_per_message),
    Metric("p50_batch_ms", "p50 of a batch, ms", "median over all chunks of all passes", "lower", p50_batch_ms),
    Metric("messages_per_second", "messages per second", "at the best time", "higher", messages_per_second),
    Metric(
        "candidates_per_message",
        "candidates per message",
        "subscriptions verified one by one: comparable across machines",
        "lower",
        candidates_per_message,
    ),
    Metric("nodes_per_message", "nodes per message", "nodes or lists visited", "lower", nodes_per_message),
    Metric("matches_per_message", "matches per message", "size of the answer", "neither", matches_per_message),
    Metric("build_seconds", "build, s", "filing all subscriptions from a table", "lower", build_seconds),
    Metric("insert_us", "µs per insertion", "of what was not built first, rebuilding included", "lower", insert_us),
    Metric(
        "bytes_per_subscription",
        "bytes per subscription",
        "everything the engine holds",
        "lower",
        bytes_per_subscription,
        floor="table_bytes_per_subscription",
    ),
    Metric(
        "table_bytes_per_subscription",
        "bytes per subscription in its table",
        "id, region and keywords as plain columns: what every index has to hold",
        "neither",
        table_bytes_per_subscription,
    ),
    Metric("copies", "copies per subscription", "how often a subscription is filed", "lower", copies),
    Metric(
        "table_us_per_message",
        "µs per message, table to table",
        "reading the table and encoding its keywords included, best of each chunk",
        "lower",
        table_us_per_message,
    ),
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
