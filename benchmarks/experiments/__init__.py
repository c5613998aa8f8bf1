"""Kinds of experiment: each measures all series of a plan at one point and gives their raw records.

A new kind is a function here, and a line in `KINDS` and in both tables of `plan_kinds`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.experiments.encode import measure_encoding
from benchmarks.experiments.match import measure_matching
from benchmarks.experiments.moving import measure_moving
from benchmarks.experiments.peers import measure_peers
from benchmarks.experiments.pipeline import measure_pipeline
from benchmarks.experiments.ranked import measure_ranked
from benchmarks.experiments.ranked_shards import measure_ranked_shards
from benchmarks.experiments.ranked_stream import measure_ranked_stream
from benchmarks.experiments.safe_regions import measure_silence
from benchmarks.experiments.service import measure_service
from benchmarks.experiments.simulated_clusters import measure_simulation
from benchmarks.plan import Plan, Point
from benchmarks.record import Record

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
