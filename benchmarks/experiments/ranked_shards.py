"""Shards of a ranked stream, measured one after the other in one process (see `shared/shards_in_process.py`).

`method` is a mechanism, or "one_process": a `Ranker` with everything. Every batch of every method must have the changes of the
one process. Communication is counted in rows, wherever shards run. The bytes of the messages that every list holder needs for
its window are counted separately, because the holders of the paper have no window.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.experiments import Experiment, read_fields
from benchmarks.experiments.shared.answers import ranked_checksum
from benchmarks.experiments.shared.ranked_input import RankedInput, reference_changes
from benchmarks.experiments.shared.shards_in_process import BatchWork, ShardWorld, make_world
from benchmarks.plan import Plan, Series
from benchmarks.record import Record
from nearcast.errors import NearcastError, PlanError
from nearcast.pipeline.settings import MECHANISMS
from nearcast.ranked.engine import Ranker
from nearcast.workloads import open_workload

ONE_PROCESS = "one_process"
METHODS = (ONE_PROCESS, *MECHANISMS)
# A checksum and a number of changes for each batch, one after the other.
Sums = list[int]


@dataclass(frozen=True, slots=True)
class Parameters:
    """Of a series; `groups` is for mechanisms of two levels: the number of parts of the first level."""

    groups: int = 0
    k: int = 20


class RankedShards(Experiment[Parameters]):
    """The batches take as long as with a core for each shard."""

    subject = "method"
    methods = METHODS
    metrics = (
        "messages_per_second",
        "work_us_per_message",
        "balance",
        "copies_per_subscription",
        "tuples_per_message",
        "reports_per_message",
        "floors_per_message",
        "registrations_per_message",
        "feed_bytes_per_message",
    )

    def read_parameters(self, series: Series) -> Parameters:
        return read_fields(Parameters, series)

    def check_plan(self) -> None:
        self.k = common_k(self.plan, (parameters.k for parameters in self.parameters.values()))

    def prepare(self) -> None:
        point = self.point
        workload = open_workload(point.workload, **point.workload_parameters)
        self.input = RankedInput(workload, point.size, self.plan.seed, self.k)
        self.single, self.sums = measure_one_process(self.input)

    def measure(self, series: Series) -> Record:
        n_groups, size = self.parameters[series.label].groups, self.point.size
        if series.subject == ONE_PROCESS:
            record = self.single
        else:
            record = measure_mechanism(self.input, series.subject, series.label, self.sums, size.shards, n_groups)
        n_messages = size.n_messages * (size.warm_steps + size.repetitions)
        checked = {"against": "one process", "messages": n_messages, "pairs": sum(self.sums[1::2]), "equal": True}
        record.facts["check"] = checked
        return record


EXPERIMENT = RankedShards


def common_k(plan: Plan, ks: Iterable[int]) -> int:
    """The length of the lists of all series; PlanError if they differ, because then their lists cannot be compared."""
    different = sorted(set(ks))
    if len(different) > 1:
        raise PlanError(f"the series of {plan.name!r} have different k: {different}; their lists cannot be compared")
    return different[0]


# --- one process -----------------------------------------------------------------------------------------------------


def measure_one_process(input: RankedInput) -> tuple[Record, Sums]:
    """A `Ranker` with everything: its record, and checksum and number of the changes of each batch, opening included."""
    ranker = Ranker(**input.engine_settings)
    sums, seconds = [], []
    size = input.size
    for batch in [*input.opening(), *(input.batch(number) for number in range(size.warm_steps + size.repetitions))]:
        began = time.process_time()
        changes = reference_changes(ranker, batch)
        seconds.append(time.process_time() - began)
        sums += [ranked_checksum(changes), changes.num_rows]
    stats = ranker.stats()
    facts = {
        **_common_facts(input),
        "n_shards": 1,
        "opening_seconds": sum(seconds[: -size.warm_steps - size.repetitions]),
        "bytes": stats["bytes"],
        "work_seconds": sum(seconds[-size.repetitions :]),
    }
    return Record(facts, np.array([seconds[-size.repetitions :]]), np.full(size.repetitions, size.n_messages)), sums


def _common_facts(input: RankedInput) -> dict[str, Any]:
    return {"workload": input.workload_facts, "n_subscriptions": input.subscriptions.num_rows, "window": input.window_messages}


# --- shards ----------------------------------------------------------------------------------------------------------


def measure_mechanism(input: RankedInput, mechanism: str, label: str, sums: Sums, n_shards: int, n_groups: int = 0) -> Record:
    """The shards of a mechanism; NearcastError if they report other changes than one process."""
    world = make_world(mechanism, n_shards, input, n_groups)
    opening = [world.take(batch) for batch in input.opening()]
    warm = [world.take(input.batch(number)) for number in range(input.size.warm_steps)]
    measured, copies = [], []
    for number in range(input.size.repetitions):
        measured.append(world.take(input.batch(input.size.warm_steps + number)))
        copies.append(int(world.copies.sum()))
    _compare(label, [*opening, *warm, *measured], sums)
    opening_seconds = sum(float(work.tell_seconds.sum() + work.take_seconds.sum()) for work in opening)
    facts = {**_common_facts(input), "n_shards": n_shards, "opening_seconds": opening_seconds, **_facts(world, measured)}
    facts["copies_per_subscription"] = float(np.mean(copies)) / input.subscriptions.num_rows
    facts["feed_bytes"] = n_shards * sum(
        input.batch(input.size.warm_steps + number).messages.nbytes for number in range(input.size.repetitions)
    )
    slowest = np.array([[work.slowest_seconds for work in measured]])
    return Record(facts, slowest, np.full(input.size.repetitions, input.size.n_messages))


def _facts(world: ShardWorld, measured: list[BatchWork]) -> dict[str, Any]:
    """Sums over all measured batches, by shard and in total."""
    by_shard: dict[str, Any] = {
        name: sum(getattr(work, name) for work in measured)
        for name in ("tell_seconds", "take_seconds", "reached", "reports", "floors_learned", "registered")
    }
    parts = world.n_bytes()
    by_shard |= {"owned": world.owned, "copies": world.copies}
    by_shard |= {f"{name}_bytes": np.array([part[name] for part in parts]) for name in parts[0]}
    floors = sum(work.floors for work in measured)
    return {
        "shards": {name: values.tolist() for name, values in by_shard.items()},
        "work_seconds": float(by_shard["tell_seconds"].sum() + by_shard["take_seconds"].sum()),
        "bytes": int(sum(sum(part.values()) for part in parts)),
        "n_tuples": int(by_shard["reached"].sum()),
        "n_reports": int(by_shard["reports"].sum()),
        "n_floors": floors,
        "n_floors_learned": int(by_shard["floors_learned"].sum()),
        "n_registered": int(by_shard["registered"].sum()),
    }


def _compare(label: str, batches: list[BatchWork], sums: Sums) -> None:
    for number, work in enumerate(batches):
        if [work.checksum, work.changes] != sums[2 * number : 2 * number + 2]:
            raise NearcastError(
                f"{label!r} reports {work.changes} changes of batch {number} where one process reports {sums[2 * number + 1]}, "
                "or others; its times are worth nothing: correct the shards first"
            )
