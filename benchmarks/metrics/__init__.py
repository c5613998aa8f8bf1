"""Every metric by name."""

from __future__ import annotations

from benchmarks.metrics.matching import MATCHING
from benchmarks.metrics.moving import MOVING
from benchmarks.metrics.ranking import RANKING
from benchmarks.metrics.service import SERVICE
from benchmarks.metrics.shards import SHARDS, SIMULATION
from benchmarks.record import Metric

METRICS: dict[str, Metric] = {metric.name: metric for metric in (*MATCHING, *MOVING, *RANKING, *SERVICE, *SHARDS, *SIMULATION)}
