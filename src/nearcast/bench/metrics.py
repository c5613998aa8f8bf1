"""Every metric by name."""

from __future__ import annotations

from nearcast.bench.metric import Metric
from nearcast.bench.metrics_of_matching import MATCHING
from nearcast.bench.metrics_of_moving import MOVING
from nearcast.bench.metrics_of_peers import PEER_METRICS
from nearcast.bench.metrics_of_ranking import RANKING
from nearcast.bench.metrics_of_service import SERVICE
from nearcast.bench.metrics_of_shards import SHARDS
from nearcast.bench.metrics_of_simulation import SIMULATION

_ALL = (*MATCHING, *MOVING, *PEER_METRICS, *RANKING, *SERVICE, *SHARDS, *SIMULATION)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}
