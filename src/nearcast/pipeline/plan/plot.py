"""A picture of what plans are expected to cost: copies, shards per message, and the load of every shard."""

from __future__ import annotations

from pathlib import Path

from nearcast.errors import EnvironmentProblem
from nearcast.pipeline.plan.shard_plan import Estimate


def plot_estimates(estimates: list[Estimate], target: Path) -> None:
    """Write a picture of all mechanisms side by side."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise EnvironmentProblem("a plot needs matplotlib; install it with: pip install 'nearcast[bench]'") from None
    names = [estimate.mechanism for estimate in estimates]
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1, 2))
    left.barh(names, [estimate.replication for estimate in estimates])
    left.set_xlabel("copies per subscription")
    middle.barh(names, [estimate.communication for estimate in estimates])
    middle.set_xlabel("shards per message")
    middle.set_yticklabels([])
    for place, estimate in enumerate(estimates):
        width = 0.8 / max(1, len(estimate.load))
        offsets = [place - 0.4 + width * (shard + 0.5) for shard in range(len(estimate.load))]
        right.bar(offsets, sorted(estimate.load, reverse=True), width)
    right.set_xticks(range(len(names)), names, rotation=20)
    right.set_ylabel("expected µs per message, by shard")
    figure.savefig(target)
