"""A simulated cluster: throughput, network and memory for a number of shards."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.simulation.cost_model import CostModel, MeasuredShards, ShardLoads

# Subscription (8), row of the message (8), score (8).
_REPORT_BYTES = 24
# Subscription, threshold, and the words and location for a shard that did not have the subscription.
_FEEDBACK_BYTES = 80
_GIB = float(1 << 30)


@dataclass(frozen=True, slots=True)
class Cluster:
    """All numbers are simulated."""

    messages_per_second: float
    work_us_per_message: float
    balance: float
    copies_per_subscription: float
    tuples_per_message: float
    reports_per_message: float
    network_bytes_per_message: float
    """Messages to be matched, reports and feedback, without the window feed."""
    feed_bytes_per_message: float
    shard_megabytes_per_second: float
    """What arrives at the busiest shard at that throughput, the window feed included."""
    shard_gib: float
    total_gib: float

    def facts(self) -> dict[str, float]:
        return {f"simulated_{name}": value for name, value in asdict(self).items()}


def simulate(model: CostModel, per_shard: MeasuredShards, loads: ShardLoads, is_fused: bool) -> Cluster:
    """`per_shard` is a measured cell: it has the bytes of a list, a copy, the window and a message."""
    n_shards = len(loads.owned)
    slowest_us = model.slowest_us(loads)
    busy = model.tell_us(loads) + model.take_us(loads)
    n_subscriptions = float(loads.owned.sum())
    reports, feedback = per_shard.reports_per_list * n_subscriptions, per_shard.feedback_per_list * n_subscriptions
    # Reports go to the shards that have the lists, feedback to those that have copies.
    reported = reports * _REPORT_BYTES * loads.owned / n_subscriptions
    fed_back = feedback * _FEEDBACK_BYTES * loads.copies / loads.copies.sum()
    # Fused shards match where their lists are: they report nothing, and they match the message that came for the window.
    sent = np.zeros(n_shards) if is_fused else loads.reached * per_shard.message_bytes + reported + fed_back
    copied = np.zeros(n_shards) if is_fused else loads.copies
    held = per_shard.window_bytes + loads.owned * per_shard.list_bytes + copied * per_shard.copy_bytes
    per_second = 1e6 / slowest_us
    return Cluster(
        messages_per_second=per_second,
        work_us_per_message=float(busy.sum()),
        balance=float(busy.mean() / busy.max()),
        copies_per_subscription=float(loads.copies.sum()) / n_subscriptions,
        tuples_per_message=float(loads.reached.sum()),
        reports_per_message=0.0 if is_fused else reports,
        network_bytes_per_message=float(sent.sum()),
        feed_bytes_per_message=n_shards * per_shard.message_bytes,
        shard_megabytes_per_second=(per_shard.message_bytes + float(sent.max())) * per_second / 1e6,
        shard_gib=float(held.max()) / _GIB,
        total_gib=float(held.sum()) / _GIB,
    )
