"""Clusters of many shards, simulated from a few that are measured in the same run (see `benchmarks/simulation`).

`method` is a mechanism. Its parameter `subscriptions` is the number that the cluster would have, and `shards` of the size is
the number of shards. Worlds of a quarter, half and all of `n_subscriptions` are measured. The last is held out from the model,
and shows how far off the model is. No time in the records was measured at the size of the cluster.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from benchmarks.experiments import Experiment, read_fields
from benchmarks.experiments.ranked_shards import measure_mechanism, measure_one_process
from benchmarks.experiments.shared.ranked_input import RankedInput
from benchmarks.plan import Point, Series, Size
from benchmarks.record import Record
from benchmarks.simulation.cluster import simulate
from benchmarks.simulation.cost_model import CostModel, MeasuredShards, ShardLoads, error_percent
from benchmarks.simulation.routing import Sample, loads_of
from nearcast.pipeline.ranked.homes import FUSED
from nearcast.pipeline.settings import MECHANISMS
from nearcast.workloads import open_workload

# Each cell: all subscriptions divided by this, and the number of shards. The shards of the last cell are twice as large as
# the largest of the others.
_CELLS = ((4, 8), (4, 4), (2, 8), (2, 4), (1, 4))
_BILLION = 1_000_000_000
_SAMPLED_PER_SHARD, _MOST_SAMPLED = 20, 200_000


@dataclass(frozen=True, slots=True)
class Parameters:
    subscriptions: int = _BILLION


class SimulatedClusters(Experiment[Parameters]):
    """What is measured is the same at every point, and measured once."""

    subject = "method"
    methods = MECHANISMS
    metrics = (
        "simulated_messages_per_second",
        "simulated_balance",
        "simulated_copies_per_subscription",
        "simulated_tuples_per_message",
        "simulated_network_bytes_per_message",
        "simulated_feed_bytes_per_message",
        "simulated_shard_megabytes_per_second",
        "simulated_shard_gib",
        "simulated_total_gib",
        "held_out_error_percent",
    )

    def read_parameters(self, series: Series) -> Parameters:
        return read_fields(Parameters, series)

    def prepare(self) -> None:
        point = self.point
        self.workload = point.workload, tuple(sorted(point.workload_parameters.items()))
        self.measured_size = _measured_size(point.size)
        # Enough for every shard to have some.
        n_sampled = max(point.size.n_subscriptions, min(_MOST_SAMPLED, _SAMPLED_PER_SHARD * point.size.shards))
        self.sample = _sample(*self.workload, replace(self.measured_size, n_subscriptions=n_sampled), self.plan.seed)

    def measure(self, series: Series) -> Record:
        costs = _measured_costs(series.subject, *self.workload, self.measured_size, self.plan.seed)
        return _record(self.point, series.subject, self.parameters[series.label].subscriptions, self.sample, costs)


EXPERIMENT = SimulatedClusters


class MeasuredCosts(NamedTuple):
    """What was measured of a mechanism, and the model that follows."""

    cells: list[MeasuredShards]
    model: CostModel
    held_out_error_percent: float


def _measured_size(size: Size) -> Size:
    """A size as a key of what was measured: without the simulated shards, and without the workload, which is its own key."""
    return replace(size, shards=1, workload=())  # type: ignore[arg-type]


@lru_cache(maxsize=4)
def _input(workload: str, parameters: tuple[tuple[str, Any], ...], size: Size, seed: int) -> RankedInput:
    return RankedInput(open_workload(workload, **dict(parameters)), size, seed)


@lru_cache(maxsize=1)
def _sample(workload: str, parameters: tuple[tuple[str, Any], ...], size: Size, seed: int) -> Sample:
    return Sample.of(_input(workload, parameters, size, seed))


@lru_cache(maxsize=len(MECHANISMS))
def _measured_costs(
    mechanism: str, workload: str, parameters: tuple[tuple[str, Any], ...], size: Size, seed: int
) -> MeasuredCosts:
    """The measured cells of a mechanism, and the model fitted to them."""
    cells = []
    for part, n_shards in _CELLS:
        key = workload, parameters, replace(size, n_subscriptions=size.n_subscriptions // part), seed
        cells.append(measured_shards(measure_mechanism(_input(*key), mechanism, mechanism, _sums(*key), n_shards)))
    fitted = CostModel.fitted(cells[:-1])
    return MeasuredCosts(cells, CostModel.fitted(cells), error_percent(fitted, cells[-1]))


@lru_cache(maxsize=4)
def _sums(*key: Any) -> list[int]:
    """The changes that one process reports."""
    return measure_one_process(_input(*key))[1]


def measured_shards(record: Record) -> MeasuredShards:
    """A record of the experiment `ranked_shards`, as input of the model."""
    shards = {name: np.array(values, np.float64) for name, values in record.facts["shards"].items()}
    n, lists = record.n_messages, float(shards["owned"].sum())
    loads = ShardLoads(shards["owned"], shards["copies"], shards["reached"] / n)
    return MeasuredShards(
        loads,
        1e6 * shards["tell_seconds"] / n,
        1e6 * shards["take_seconds"] / n,
        float(1e6 * record.chunk_seconds.sum() / n),
        float(shards["window_bytes"].mean()),
        float(shards["lists_bytes"].sum()) / lists,
        float(shards["copies_bytes"].sum() / shards["copies"].sum()),
        record.facts["n_reports"] / n / lists,
        (record.facts["n_floors_learned"] + record.facts["n_registered"]) / n / lists,
        record.facts["feed_bytes"] / n / record.facts["n_shards"],
    )


def _record(point: Point, mechanism: str, n_subscriptions: int, sample: Sample, costs: MeasuredCosts) -> Record:
    n_shards = point.size.shards
    loads = loads_of(sample, mechanism, n_shards, n_subscriptions)
    cluster = simulate(costs.model, costs.cells[-1], loads, mechanism in FUSED)
    facts = {
        "simulated": True,
        "workload": {"simulated_subscriptions": n_subscriptions, "measured_subscriptions": point.size.n_subscriptions},
        "n_subscriptions": n_subscriptions,
        "n_shards": n_shards,
        "model": {name: values.tolist() for name, values in asdict(costs.model).items()},
        "held_out_error_percent": costs.held_out_error_percent,
        "check": {"against": "one process", "messages": point.size.n_messages * point.size.repetitions, "equal": True},
        **cluster.facts(),
    }
    return Record(facts, np.empty((0, 0)), np.empty(0, np.int64))
