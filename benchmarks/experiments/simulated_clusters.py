"""Kind "simulated_shards": clusters of many shards reckoned from few that are measured in the same run (see `simulation`).

`method` is a mechanism; its parameter `subscriptions` is how many there would be, and `shards` of the size how many
shards. Measured are worlds of a quarter, half and all of `n_subscriptions`; the last is held out, and says how far off
the model is. Nothing in the records is a time that was taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from benchmarks.experiments.ranked_shards import check_ranked_series, measure_mechanism, measure_one_process
from benchmarks.experiments.shared.ranked_input import RankedStory
from benchmarks.plan import Plan, Point, Series, Size
from benchmarks.record import Record
from benchmarks.simulation.cluster import simulate
from benchmarks.simulation.cost_model import CostModel, MeasuredShards, ShardLoads, error_percent
from benchmarks.simulation.routing import Sample, routed
from nearcast.pipeline.ranked.homes import FUSED
from nearcast.pipeline.settings import MECHANISMS
from nearcast.workloads import open_workload

METHODS = MECHANISMS
# Subscriptions as a part of all, and shards. The last has shards twice as large as the largest before it.
_CELLS = ((4, 8), (4, 4), (2, 8), (2, 4), (1, 4))
_BILLION = 1_000_000_000
_SAMPLED_PER_SHARD, _MOST_SAMPLED = 20, 200_000


class Measured(NamedTuple):
    """What is known of a mechanism."""

    cells: list[MeasuredShards]
    model: CostModel
    held_out_error_percent: float


def measure_simulation(plan: Plan, point: Point, say: Callable[[str], None]) -> list[Record]:
    """One record per series."""
    check_ranked_series(plan, point.series, METHODS, ("subscriptions",))
    say("measuring a few shards")
    given = (point.workload, tuple(sorted(point.workload_parameters.items())), _measured_size(point.size), plan.seed)
    # Enough for every shard to have some.
    n_sampled = max(point.size.n_subscriptions, min(_MOST_SAMPLED, _SAMPLED_PER_SHARD * point.size.shards))
    sample = _sample(*given[:2], replace(given[2], n_subscriptions=n_sampled), plan.seed)
    records = []
    for series in point.series:
        say(series.label)
        records.append(_record(point, series, sample, _measured(series.subject, *given)))
    return records


def _measured_size(size: Size) -> Size:
    """A size as a key of what was measured: without the shards that are simulated, and without what is given apart."""
    return replace(size, shards=1, workload=())  # type: ignore[arg-type]


@lru_cache(maxsize=4)
def _story(workload: str, parameters: tuple[tuple[str, Any], ...], size: Size, seed: int) -> RankedStory:
    return RankedStory(open_workload(workload, **dict(parameters)), size, seed)


@lru_cache(maxsize=1)
def _sample(workload: str, parameters: tuple[tuple[str, Any], ...], size: Size, seed: int) -> Sample:
    return Sample.of(_story(workload, parameters, size, seed))


@lru_cache(maxsize=len(MECHANISMS))
def _measured(mechanism: str, workload: str, parameters: tuple[tuple[str, Any], ...], size: Size, seed: int) -> Measured:
    """The cells of a mechanism; the same at every point, and measured once."""
    cells = []
    for part, n_shards in _CELLS:
        own = replace(size, n_subscriptions=size.n_subscriptions // part)
        given = workload, parameters, own, seed
        record = measure_mechanism(_story(*given), Series(mechanism, mechanism), _sums(*given), n_shards)
        cells.append(measured_shards(record))
    fitted = CostModel.fitted(cells[:-1])
    return Measured(cells, CostModel.fitted(cells), error_percent(fitted, cells[-1]))


@lru_cache(maxsize=4)
def _sums(*given: Any) -> list[int]:
    """What one process tells, to be compared with."""
    return measure_one_process(_story(*given))[1]


def measured_shards(record: Record) -> MeasuredShards:
    """A record of kind "ranked_shards" as the model takes it."""
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


def _record(point: Point, series: Series, sample: Sample, measured: Measured) -> Record:
    n_shards, n_subscriptions = point.size.shards, int(series.parameters.get("subscriptions", _BILLION))
    loads = routed(sample, series.subject, n_shards, n_subscriptions)
    largest = measured.cells[-1]
    cluster = simulate(measured.model, largest, loads, series.subject in FUSED)
    facts = {
        "simulated": True,
        "workload": {"simulated_subscriptions": n_subscriptions, "measured_subscriptions": point.size.n_subscriptions},
        "n_subscriptions": n_subscriptions,
        "n_shards": n_shards,
        "model": {name: values.tolist() for name, values in asdict(measured.model).items()},
        "held_out_error_percent": measured.held_out_error_percent,
        "check": {"against": "one process", "messages": point.size.n_messages * point.size.repetitions, "equal": True},
        **cluster.facts(),
    }
    return Record(facts, np.empty((0, 0)), np.empty(0, np.int64))
