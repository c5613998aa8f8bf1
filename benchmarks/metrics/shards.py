"""What a ranked stream costs in shards: busy time, copies, and what shards send to each other per message.

Metrics of a cluster that was simulated have a label that says so.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np

from benchmarks.record import Metric, Record


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
        "the number of shards that look for a subscription: the replication ratio of the paper",
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
    Metric(
        "reports_per_message", "reports per message", "pairs reported to the holders of lists", "lower", reports_per_message
    ),
    Metric(
        "floors_per_message",
        "thresholds per message",
        "new thresholds that list holders send to copies",
        "lower",
        floors_per_message,
    ),
    Metric(
        "floors_told_per_message",
        "thresholds sent per message",
        "new thresholds that list holders send, each counted once, however many copies get it",
        "lower",
        floors_told_per_message,
    ),
    Metric(
        "told_bytes_per_message",
        "bytes sent per message",
        "reports and thresholds as shards on Spark store them for each other",
        "lower",
        told_bytes_per_message,
    ),
    Metric(
        "registrations_per_message",
        "registrations per message",
        "copies that come to a shard or leave it, as prefixes grow and shrink",
        "lower",
        registrations_per_message,
    ),
    Metric(
        "feedback_per_message",
        "feedback per message",
        "thresholds and registrations: what list holders send back to copies",
        "lower",
        feedback_per_message,
    ),
    Metric(
        "feed_bytes_per_message",
        "bytes of the window feed per message",
        "a message goes to every list holder, because each of them has the whole window",
        "lower",
        feed_bytes_per_message,
    ),
    Metric("recovery_seconds", "recovery, s", "from losing a shard until it is restored", "lower", recovery_seconds),
    Metric("opening_seconds", "opening, s", "filling the window and the lists of all subscriptions", "lower", opening_seconds),
)


# --- simulated clusters --------------------------------------------------------------------------------------------------


def _fact(record: Record, name: str) -> float | None:
    return record.number(name)


def _simulated(name: str, label: str, description: str, better: Literal["lower", "higher", "neither"]) -> Metric:
    return Metric(name, f"simulated {label}", description, better, lambda record: _fact(record, name))


SIMULATION = (
    _simulated(
        "simulated_messages_per_second",
        "messages per second",
        "a core for each shard, the slowest decides; not measured",
        "higher",
    ),
    _simulated("simulated_work_us_per_message", "work, µs per message", "all shards together; not measured", "lower"),
    _simulated("simulated_balance", "balance", "mean shard over busiest; not measured", "higher"),
    _simulated(
        "simulated_copies_per_subscription",
        "copies per subscription",
        "counted for a sample, by the tables that would route it",
        "lower",
    ),
    _simulated(
        "simulated_tuples_per_message",
        "tuples per message",
        "counted for a sample, by the tables that would route it",
        "lower",
    ),
    _simulated("simulated_reports_per_message", "reports per message", "as many per list as measured", "lower"),
    _simulated(
        "simulated_network_bytes_per_message",
        "network, bytes per message",
        "tuples, reports and feedback, without the window feed; not measured",
        "lower",
    ),
    _simulated("simulated_feed_bytes_per_message", "window feed, bytes per message", "to every owner; not measured", "lower"),
    _simulated(
        "simulated_shard_megabytes_per_second",
        "MB/s to the busiest shard",
        "at the simulated throughput, window feed included",
        "lower",
    ),
    _simulated("simulated_shard_gib", "GiB of the largest shard", "window, lists and copies by measured bytes", "lower"),
    _simulated("simulated_total_gib", "GiB of all shards", "window, lists and copies by measured bytes", "lower"),
    Metric(
        "held_out_error_percent",
        "error of the model, %",
        "off the work of a measured cell that the model did not see, with shards twice as large as those it saw",
        "neither",
        partial(_fact, name="held_out_error_percent"),
    ),
)
