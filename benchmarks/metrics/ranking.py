"""What arrivals and ends of messages cost ranked subscriptions."""

from __future__ import annotations

from benchmarks.record import Metric, Record


def arrival_us(record: Record) -> float | None:
    return _mean_us(record, "step_arrival_seconds")


def expiry_us(record: Record) -> float | None:
    return _mean_us(record, "step_expiry_seconds")


def tick_us(record: Record) -> float | None:
    arrival, expiry = arrival_us(record), expiry_us(record)
    return None if arrival is None or expiry is None else arrival + expiry


def longest_call_ms(record: Record) -> float | None:
    """The longest wait for a call in which messages arrive."""
    if "step_arrival_seconds" not in record.facts or not record.chunk_seconds.size:
        return None
    return float(1e3 * record.chunk_seconds.max())


def refills_per_message(record: Record) -> float | None:
    n = record.number("n_refills")
    return None if n is None else n / record.n_messages


def scored_per_refill(record: Record) -> float | None:
    n, scored = record.number("n_refills"), record.number("n_scored_by_refills")
    return scored / n if n and scored is not None else None


def held_per_subscription(record: Record) -> float | None:
    return record.stat("held_per_subscription")


def index_bytes_per_subscription(record: Record) -> float | None:
    n_bytes, n = record.stat("index_bytes"), record.number("n_subscriptions")
    return n_bytes / n if n_bytes is not None and n else None


def fill_seconds(record: Record) -> float | None:
    return record.number("fill_seconds")


def _mean_us(record: Record, fact: str) -> float | None:
    """The mean over all steps: a stream that changes something cannot be repeated, so there is no best pass."""
    if "step_arrival_seconds" not in record.facts:
        return None
    return float(1e6 * record.steps(fact).sum() / record.n_messages)


RANKING = (
    Metric(
        "arrival_us",
        "µs per arrival",
        "mean: finding the subscriptions that it concerns, and changing their lists",
        "lower",
        arrival_us,
    ),
    Metric("expiry_us", "µs per end", "mean: taking it out of the lists, refilling them", "lower", expiry_us),
    Metric("tick_us", "µs per arrival and end", "mean", "lower", tick_us),
    Metric("longest_call_ms", "longest call, ms", "of those in which messages arrive", "lower", longest_call_ms),
    Metric("refills_per_message", "refills per message", "buffers filled again from the window", "lower", refills_per_message),
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
)
