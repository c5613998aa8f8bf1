"""Numbers over raw records: name → description, function, which way is better. A new metric needs no new run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nearcast.bench.record import Record


@dataclass(frozen=True, slots=True)
class Metric:
    """`of(record)` is None where the record does not hold what it takes."""

    name: str
    label: str
    description: str
    better: Literal["lower", "higher", "neither"]
    of: Callable[[Record], float | None]


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
    return _per_message(record, "candidates")


def nodes_per_message(record: Record) -> float | None:
    return _per_message(record, "nodes_visited")


def matches_per_message(record: Record) -> float | None:
    return float(record.matches.mean()) if record.matches.size else None


def build_seconds(record: Record) -> float | None:
    return record.number("build_seconds")


def bytes_per_subscription(record: Record) -> float | None:
    n_bytes, n = record.number("bytes"), record.number("n_subscriptions")
    return n_bytes / n if n_bytes is not None and n else None


def copies(record: Record) -> float | None:
    return _stat(record, "copies")


def table_us_per_message(record: Record) -> float | None:
    seconds = record.number("table_seconds")
    return None if seconds is None else 1e6 * seconds / record.n_messages


def call_us(record: Record) -> float | None:
    seconds = record.number("call_seconds")
    return None if seconds is None else 1e6 * seconds


def insert_us(record: Record) -> float | None:
    seconds, n = record.number("insert_seconds"), record.number("n_inserted")
    return 1e6 * seconds / n if seconds is not None and n else None


def us_per_move(record: Record) -> float | None:
    """Of the best step."""
    seconds, n = record.steps("step_move_seconds"), record.steps("step_moves")
    return float(1e6 * (seconds / n).min()) if seconds.size and n.min() else None


def us_per_expiry(record: Record) -> float | None:
    seconds = record.steps("step_expiry_seconds")
    return float(1e6 * seconds.min() / record.n_messages) if seconds.size else None


def updates_per_move(record: Record) -> float | None:
    return _per_move(record, "step_move_updates")


def candidates_per_move(record: Record) -> float | None:
    return _per_move(record, "step_move_candidates")


def us_per_move_and_message(record: Record) -> float | None:
    move, message, expiry = us_per_move(record), us_per_message(record), us_per_expiry(record)
    return move + message + expiry if move is not None and message is not None and expiry is not None else None


def arrival_us(record: Record) -> float | None:
    return _mean_us(record, "step_arrival_seconds")


def expiry_us(record: Record) -> float | None:
    return _mean_us(record, "step_expiry_seconds")


def tick_us(record: Record) -> float | None:
    arrival, expiry = arrival_us(record), expiry_us(record)
    return None if arrival is None or expiry is None else arrival + expiry


def refills_per_message(record: Record) -> float | None:
    n = record.number("n_refills")
    return None if n is None else n / record.n_messages


def scored_per_refill(record: Record) -> float | None:
    n, scored = record.number("n_refills"), record.number("n_scored_by_refills")
    return scored / n if n and scored is not None else None


def held_per_subscription(record: Record) -> float | None:
    return _stat(record, "held_per_subscription")


def index_bytes_per_subscription(record: Record) -> float | None:
    n_bytes, n = _stat(record, "index_bytes"), record.number("n_subscriptions")
    return n_bytes / n if n_bytes is not None and n else None


def fill_seconds(record: Record) -> float | None:
    return record.number("fill_seconds")


def _mean_us(record: Record, fact: str) -> float | None:
    """Over all steps: a stream that changes something cannot be repeated."""
    if "step_arrival_seconds" not in record.facts:
        return None
    return float(1e6 * record.steps(fact).sum() / record.n_messages)


def _stat(record: Record, name: str) -> float | None:
    stats = record.facts.get("stats") or {}
    return float(stats[name]) if name in stats else None


def growth_percent(record: Record) -> float | None:
    n_bytes = record.steps("step_bytes")
    half = n_bytes.size // 2
    return float(100 * (n_bytes[half:].max() / n_bytes[:half].max() - 1)) if half else None


def _per_move(record: Record, fact: str) -> float | None:
    counted, n = record.steps(fact), record.steps("step_moves")
    return float(counted.sum() / n.sum()) if counted.size and n.sum() else None


def ms_per_step(record: Record) -> float | None:
    seconds = record.steps("step_seconds")
    return float(1e3 * seconds.mean()) if seconds.size else None


def traffic_per_step(record: Record) -> float | None:
    return _sent_per_step(record, "reports", "contacts", "safe_regions")


def reports_per_step(record: Record) -> float | None:
    return _sent_per_step(record, "reports")


def contacts_per_step(record: Record) -> float | None:
    return _sent_per_step(record, "contacts")


def _sent_per_step(record: Record, *names: str) -> float | None:
    traffic, n = record.facts.get("traffic"), record.number("n_subscriptions")
    return sum(float(traffic[name]) for name in names) / n if traffic is not None and n else None


def two_thread_share(record: Record) -> float | None:
    one, two = record.number("table_seconds"), record.number("two_thread_seconds")
    return two / one if one and two is not None else None


def publish_p50_us(record: Record) -> float | None:
    return _percentile(record, "publish_us", 50)


def publish_p99_us(record: Record) -> float | None:
    return _percentile(record, "publish_us", 99)


def merge_p99_ms(record: Record) -> float | None:
    return _percentile(record, "merge_batch_ms", 99)


def late_ratio(record: Record) -> float | None:
    return record.number("late_ratio")


def late_bytes(record: Record) -> float | None:
    return record.number("late_bytes")


def open_ms(record: Record) -> float | None:
    seconds = record.number("open_seconds")
    return None if seconds is None else 1e3 * seconds


def first_match_seconds(record: Record) -> float | None:
    return record.number("first_match_seconds")


def peak_gib(record: Record) -> float | None:
    n_bytes = record.number("peak_bytes")
    return None if n_bytes is None else n_bytes / 2**30


def _percentile(record: Record, name: str, percent: float) -> float | None:
    values = record.steps(name)
    return float(np.percentile(values, percent)) if values.size else None


def _per_message(record: Record, counter: str) -> float | None:
    counted = record.counters.get(counter)
    return None if counted is None else float(counted.sum() / record.n_messages)


_ALL = (
    Metric(
        "us_per_message",
        "µs per message",
        "the best time of each chunk over all passes, summed: what the work costs when nobody interferes",
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
    Metric("bytes_per_subscription", "bytes per subscription", "everything the engine holds", "lower", bytes_per_subscription),
    Metric("copies", "copies per subscription", "how often a subscription is filed", "lower", copies),
    Metric(
        "table_us_per_message",
        "µs per message, table to table",
        "reading the table and encoding its keywords included, best of each chunk",
        "lower",
        table_us_per_message,
    ),
    Metric(
        "us_per_move",
        "µs per move",
        "to another place, all changes reported; best step",
        "lower",
        us_per_move,
    ),
    Metric("us_per_expiry", "µs per expired message", "taking it out of all results; best step", "lower", us_per_expiry),
    Metric(
        "us_per_move_and_message",
        "µs per move and message",
        "a move, an arrival and an expiry together",
        "lower",
        us_per_move_and_message,
    ),
    Metric("updates_per_move", "changes per move", "messages that enter or leave its result", "neither", updates_per_move),
    Metric("candidates_per_move", "candidates per move", "messages verified one by one", "lower", candidates_per_move),
    Metric(
        "growth_percent",
        "growth of memory, %",
        "largest size in the second half of the steps, against the first half",
        "lower",
        growth_percent,
    ),
    Metric("arrival_us", "µs per arrival", "mean: whom it concerns, and their lists", "lower", arrival_us),
    Metric("expiry_us", "µs per end", "mean: taking it out of the lists, refilling them", "lower", expiry_us),
    Metric("tick_us", "µs per arrival and end", "mean", "lower", tick_us),
    Metric("refills_per_message", "refills per message", "buffers filled anew from the window", "lower", refills_per_message),
    Metric("scored_per_refill", "messages scored per refill", "by the index of the window", "lower", scored_per_refill),
    Metric("held_per_subscription", "messages held", "by the buffer of a subscription", "lower", held_per_subscription),
    Metric(
        "index_bytes_per_subscription",
        "bytes of the index per subscription",
        "without buffers and window",
        "lower",
        index_bytes_per_subscription,
    ),
    Metric("fill_seconds", "filling, s", "the lists of all subscriptions from a full window", "lower", fill_seconds),
    Metric("ms_per_step", "ms per step", "moves, expiry and arrivals of one step: what the engine takes", "lower", ms_per_step),
    Metric(
        "traffic_per_step",
        "traffic per step",
        "reports, contacts and safe regions sent, per subscriber and step",
        "lower",
        traffic_per_step,
    ),
    Metric("reports_per_step", "reports per step", "moves reported, per subscriber and step", "lower", reports_per_step),
    Metric("contacts_per_step", "contacts per step", "subscribers asked, per subscriber and step", "lower", contacts_per_step),
    Metric("two_thread_share", "two threads, of one", "time of the whole stream, table to table", "lower", two_thread_share),
    Metric("publish_p50_us", "publish p50, µs", "median of calls with one message object", "lower", publish_p50_us),
    Metric("publish_p99_us", "publish p99, µs", "99th percentile of calls with one message object", "lower", publish_p99_us),
    Metric(
        "late_ratio", "with late ones, of fresh", "matching when one in a hundred came after the build", "lower", late_ratio
    ),
    Metric("late_bytes", "bytes per late subscription", "what the index holds beside its build", "lower", late_bytes),
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
    Metric("call_us", "µs per call", "a call with one message: what each chunk pays at least", "lower", call_us),
)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}
