"""What a cluster that nobody has would do: every label says that it is simulated."""

from __future__ import annotations

from functools import partial
from typing import Literal

from benchmarks.metrics.metric import Metric
from benchmarks.record import Record


def _fact(record: Record, name: str) -> float | None:
    return record.number(name)


def _metric(name: str, label: str, description: str, better: Literal["lower", "higher", "neither"]) -> Metric:
    return Metric(name, f"simulated {label}", description, better, lambda record: _fact(record, name))


SIMULATION = (
    _metric(
        "simulated_messages_per_second",
        "messages per second",
        "a core for each shard, the slowest decides; not measured",
        "higher",
    ),
    _metric("simulated_work_us_per_message", "work, µs per message", "all shards together; not measured", "lower"),
    _metric("simulated_balance", "balance", "mean shard over busiest; not measured", "higher"),
    _metric(
        "simulated_copies_per_subscription",
        "copies per subscription",
        "counted for a sample by the tables that would route it",
        "lower",
    ),
    _metric(
        "simulated_tuples_per_message",
        "tuples per message",
        "counted for a sample by the tables that would route it",
        "lower",
    ),
    _metric("simulated_reports_per_message", "reports per message", "as many per list as measured", "lower"),
    _metric(
        "simulated_network_bytes_per_message",
        "network, bytes per message",
        "tuples, reports and feedback, without the window feed; not measured",
        "lower",
    ),
    _metric("simulated_feed_bytes_per_message", "window feed, bytes per message", "to every owner; not measured", "lower"),
    _metric(
        "simulated_shard_megabytes_per_second",
        "MB/s to the busiest shard",
        "at the simulated throughput, window feed included",
        "lower",
    ),
    _metric("simulated_shard_gib", "GiB of the largest shard", "window, lists and copies by measured bytes", "lower"),
    _metric("simulated_total_gib", "GiB of all shards", "window, lists and copies by measured bytes", "lower"),
    Metric(
        "held_out_error_percent",
        "error of the model, %",
        "off the work of a measured cell that the model did not see, with shards twice as large as those it saw",
        "neither",
        partial(_fact, name="held_out_error_percent"),
    ),
)
