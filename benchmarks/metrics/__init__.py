"""Every metric by name."""

from __future__ import annotations

from benchmarks.metrics.matching import MATCHING
from benchmarks.metrics.metric import Metric
from benchmarks.metrics.moving import MOVING
from benchmarks.metrics.peers import PEER_METRICS
from benchmarks.metrics.ranking import RANKING
from benchmarks.metrics.service import SERVICE
from benchmarks.metrics.shards import SHARDS
from benchmarks.metrics.simulation import SIMULATION

_ALL = (*MATCHING, *MOVING, *PEER_METRICS, *RANKING, *SERVICE, *SHARDS, *SIMULATION)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}
