"""Kinds of experiment: each measures all series of a plan at one point and gives their raw records.

A new kind is a function here, and a line in `KINDS` and in both tables of `plan_kinds`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nearcast.bench.encode_kind import measure_encoding
from nearcast.bench.match_kind import measure_matching
from nearcast.bench.moving_kind import measure_moving
from nearcast.bench.peers_kind import measure_peers
from nearcast.bench.pipeline_kind import measure_pipeline
from nearcast.bench.plan import Plan, Point
from nearcast.bench.ranked_kind import measure_ranked
from nearcast.bench.ranked_shards_kind import measure_ranked_shards
from nearcast.bench.ranked_stream_kind import measure_ranked_stream
from nearcast.bench.record import Record
from nearcast.bench.service_kind import measure_service
from nearcast.bench.silent_kind import measure_silence
from nearcast.bench.simulated_kind import measure_simulation

Measure = Callable[[Plan, Point, Callable[[str], None]], list[Record]]


@dataclass(frozen=True, slots=True)
class Kind:
    """`measure(plan, point, say)` gives one record per series, with the facts that are its own.

    `n_steps(plan)` is how often it calls `say`.
    """

    measure: Measure
    n_steps: Callable[[Plan], int]


KINDS: dict[str, Kind] = {
    "match": Kind(measure_matching, lambda plan: 2 + len(plan.series)),
    "service": Kind(measure_service, lambda plan: 1 + len(plan.series)),
    "moving": Kind(measure_moving, lambda plan: 2 + len(plan.series)),
    "ranked": Kind(measure_ranked, lambda plan: 2 + len(plan.series)),
    "ranked_shards": Kind(measure_ranked_shards, lambda plan: 2 + len(plan.series)),
    "ranked_stream": Kind(measure_ranked_stream, lambda plan: 2 + len(plan.series)),
    "simulated_shards": Kind(measure_simulation, lambda plan: 1 + len(plan.series)),
    "silent": Kind(measure_silence, lambda plan: 2 + len(plan.series)),
    "encode": Kind(measure_encoding, lambda plan: 1 + len(plan.series)),
    "peers": Kind(measure_peers, lambda plan: 1 + len(plan.series)),
    "pipeline": Kind(measure_pipeline, lambda plan: 1 + len(plan.series)),
}
