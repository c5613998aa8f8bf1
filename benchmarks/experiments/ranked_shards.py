"""Kind "ranked_shards": the shards of a ranked stream, measured one after the other in one process (see `shard_world`).

`method` is a mechanism, or "one_process": a `Ranker` with everything. Parameters of a series: `groups` (of the mechanisms of
two levels: how many parts the first level has), `k`. Every batch of every method must bring the changes of the one process.
Communication is counted in rows, wherever shards run; the bytes of the messages that every owner needs for its window stand
apart, as the paper's owners have no window.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.experiments.shared.change_checksum import sum_of_changes
from benchmarks.experiments.shared.ranked_input import RankedStory, taken_by
from benchmarks.experiments.shared.shards_in_process import BatchWork, ShardWorld, make_world
from benchmarks.plan import Plan, Point, Series
from benchmarks.record import Record
from nearcast.errors import NearcastError, PlanError
from nearcast.pipeline.settings import MECHANISMS
from nearcast.ranked.engine import Ranker
from nearcast.workloads import open_workload

ONE_PROCESS = "one_process"
METHODS = (ONE_PROCESS, *MECHANISMS)
_DEFAULT_K = 20
_KNOWN = ("groups", "k")
Sums = list[int]


def measure_ranked_shards(plan: Plan, point: Point, say: Callable[[str], None]) -> list[Record]:
    """One record per series."""
    k = check_ranked_series(plan, point.series, METHODS, _KNOWN)
    say("generating")
    story = RankedStory(open_workload(point.workload, **point.workload_parameters), point.size, plan.seed, k)
    say(ONE_PROCESS)
    single, sums = measure_one_process(story)
    records = []
    for series in point.series:
        say(series.label)
        record = single if series.subject == ONE_PROCESS else measure_mechanism(story, series, sums, point.size.shards)
        record.facts["check"] = checked_facts(story, sums)
        records.append(record)
    return records


def check_ranked_series(plan: Plan, series: Sequence[Series], methods: Sequence[str], known: Sequence[str]) -> int:
    """Refuse series that cannot be measured together; returns the k of all."""
    for one in series:
        if one.subject not in methods:
            raise PlanError(f"method {one.subject!r} of {plan.name!r}: expected one of {', '.join(methods)}")
        unknown = sorted(set(one.parameters) - set(known))
        if unknown:
            raise PlanError(f"{one.label!r} of {plan.name!r} has the parameters {unknown}; expected some of {', '.join(known)}")
    wanted = {int(one.parameters.get("k", _DEFAULT_K)) for one in series}
    if len(wanted) > 1:
        raise PlanError(f"the series of {plan.name!r} have different k: {sorted(wanted)}; their lists cannot be compared")
    return wanted.pop()


def checked_facts(story: RankedStory, sums: Sums) -> dict[str, Any]:
    n_messages = story.size.n_messages * (story.size.warm_steps + story.size.repetitions)
    return {"against": "one process", "messages": n_messages, "pairs": sum(sums[1::2]), "equal": True}


# --- one process -----------------------------------------------------------------------------------------------------


def measure_one_process(story: RankedStory) -> tuple[Record, Sums]:
    """A `Ranker` with everything: its record, and the sums and numbers of the changes of each batch, opening included."""
    ranker = Ranker(**story.engine_settings)
    sums, seconds = [], []
    size = story.size
    for batch in [*story.opening(), *(story.batch(number) for number in range(size.warm_steps + size.repetitions))]:
        began = time.process_time()
        changes = taken_by(ranker, batch)
        seconds.append(time.process_time() - began)
        sums += [sum_of_changes(changes), changes.num_rows]
    stats = ranker.stats()
    facts = {
        **_common_facts(story),
        "n_shards": 1,
        "opening_seconds": sum(seconds[: -size.warm_steps - size.repetitions]),
        "bytes": stats["bytes"],
        "work_seconds": sum(seconds[-size.repetitions :]),
    }
    return Record(facts, np.array([seconds[-size.repetitions :]]), np.full(size.repetitions, size.n_messages)), sums


def _common_facts(story: RankedStory) -> dict[str, Any]:
    return {"workload": story.described, "n_subscriptions": story.subscriptions.num_rows, "window": story.window_messages}


# --- shards ----------------------------------------------------------------------------------------------------------


def measure_mechanism(story: RankedStory, series: Series, sums: Sums, n_shards: int) -> Record:
    """The shards of a mechanism; NearcastError if they tell other changes than one process."""
    world = make_world(series.subject, n_shards, story, int(series.parameters.get("groups", 0)))
    opening = [world.take(batch) for batch in story.opening()]
    warm = [world.take(story.batch(number)) for number in range(story.size.warm_steps)]
    measured, copies = [], []
    for number in range(story.size.repetitions):
        measured.append(world.take(story.batch(story.size.warm_steps + number)))
        copies.append(int(world.copies.sum()))
    _compare(series.label, [*opening, *warm, *measured], sums)
    opening_seconds = sum(float(work.tell_seconds.sum() + work.take_seconds.sum()) for work in opening)
    facts = {**_common_facts(story), "n_shards": n_shards, "opening_seconds": opening_seconds, **_facts(world, measured)}
    facts["copies_per_subscription"] = float(np.mean(copies)) / story.subscriptions.num_rows
    facts["feed_bytes"] = n_shards * sum(
        story.batch(story.size.warm_steps + number).messages.nbytes for number in range(story.size.repetitions)
    )
    slowest = np.array([[work.slowest_seconds for work in measured]])
    return Record(facts, slowest, np.full(story.size.repetitions, story.size.n_messages))


def _facts(world: ShardWorld, measured: list[BatchWork]) -> dict[str, Any]:
    """Sums over all measured batches, in all and by shard."""
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
        if [work.sum_of_changes, work.changes] != sums[2 * number : 2 * number + 2]:
            raise NearcastError(
                f"{label!r} tells {work.changes} changes of batch {number} where one process tells {sums[2 * number + 1]}, "
                "or others; its times are worth nothing: correct the shards first"
            )
