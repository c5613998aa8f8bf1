"""What a ranked stream costs in shards: busy time, copies, and what shards have to tell each other, per message."""

from __future__ import annotations

import numpy as np

from benchmarks.metrics.metric import Metric
from benchmarks.record import Record


def work_us_per_message(record: Record) -> float | None:
    seconds = record.number("work_seconds")
    return None if seconds is None else 1e6 * seconds / record.n_messages


def balance(record: Record) -> float | None:
    shards = record.facts.get("shards")
    if shards is None:
        return None
    busy = np.array(shards["tell_seconds"]) + np.array(shards["take_seconds"])
    return float(busy.mean() / busy.max())


def copies_per_subscription(record: Record) -> float | None:
    return record.number("copies_per_subscription")


def tuples_per_message(record: Record) -> float | None:
    return _per_message(record, "n_tuples")


def reports_per_message(record: Record) -> float | None:
    return _per_message(record, "n_reports")


def floors_per_message(record: Record) -> float | None:
    return _per_message(record, "n_floors_learned")


def floors_told_per_message(record: Record) -> float | None:
    return _per_message(record, "n_floors")


def told_bytes_per_message(record: Record) -> float | None:
    return _per_message(record, "told_bytes")


def registrations_per_message(record: Record) -> float | None:
    return _per_message(record, "n_registered")


def feedback_per_message(record: Record) -> float | None:
    floors, registered = floors_per_message(record), registrations_per_message(record)
    return None if floors is None or registered is None else floors + registered


def feed_bytes_per_message(record: Record) -> float | None:
    return _per_message(record, "feed_bytes")


def recovery_seconds(record: Record) -> float | None:
    return record.number("recovery_seconds")


def opening_seconds(record: Record) -> float | None:
    return record.number("opening_seconds")


def _per_message(record: Record, fact: str) -> float | None:
    n = record.number(fact)
    return None if n is None else n / record.n_messages


SHARDS = (
    Metric("work_us_per_message", "work, µs per message", "the busy time of all shards together", "lower", work_us_per_message),
    Metric("balance", "balance", "busy time of the mean shard over that of the busiest; 1 = even", "higher", balance),
    Metric(
        "copies_per_subscription",
        "copies in shards",
        "in how many a subscription is looked for: the replication ratio of the paper",
        "lower",
        copies_per_subscription,
    ),
    Metric(
        "tuples_per_message",
        "tuples per message",
        "shards that a message goes to in order to be matched: the paper's communication cost",
        "lower",
        tuples_per_message,
    ),
    Metric("reports_per_message", "reports per message", "pairs told to the owners of lists", "lower", reports_per_message),
    Metric(
        "floors_per_message", "floors per message", "new floors that copies are told by owners", "lower", floors_per_message
    ),
    Metric(
        "floors_told_per_message",
        "floors told per message",
        "new floors that owners tell, each counted once however many copies learn of it",
        "lower",
        floors_told_per_message,
    ),
    Metric(
        "told_bytes_per_message",
        "bytes told per message",
        "reports and floors as shards on Spark leave them for each other in the store",
        "lower",
        told_bytes_per_message,
    ),
    Metric(
        "registrations_per_message",
        "registrations per message",
        "copies that come to a shard or go, as prefixes grow and shrink",
        "lower",
        registrations_per_message,
    ),
    Metric(
        "feedback_per_message",
        "feedback per message",
        "floors and registrations: what goes from owners back to copies",
        "lower",
        feedback_per_message,
    ),
    Metric(
        "feed_bytes_per_message",
        "bytes of the window feed per message",
        "a message as often as there are owners, each of which has the whole window",
        "lower",
        feed_bytes_per_message,
    ),
    Metric("recovery_seconds", "recovery, s", "from losing a shard until it has been made again", "lower", recovery_seconds),
    Metric("opening_seconds", "opening, s", "filling the window and the lists of all subscriptions", "lower", opening_seconds),
)
