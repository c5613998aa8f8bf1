"""All shards of a ranked stream in one process, one after the other: how long each is busy, and what they report to each other.

The shards are those that run on Spark. In one process, one at a time, a shard has a core for itself, as on a cluster with a
core for each shard; side by side on a few cores they would only wait for each other. Busy time is processor time, so that other
processes of the machine do not count. A batch takes as long as the slowest shard to report plus the slowest shard to apply;
the sum over all shards is the work.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.experiments.shared.answers import combined_checksum, ranked_checksum
from benchmarks.experiments.shared.ranked_input import RankedInput
from nearcast.pipeline.plan.shard_plan import ShardPlan
from nearcast.pipeline.ranked.batch_log import RankedBatch
from nearcast.pipeline.ranked.fused_shard import FusedShard
from nearcast.pipeline.ranked.homes import FUSED
from nearcast.pipeline.ranked.planning import plan_ranked
from nearcast.pipeline.ranked.split_shard import SplitShard

_PLAN_ROWS = 50_000
Result = TypeVar("Result")


@dataclass(slots=True)
class BatchWork:
    """What a batch cost; arrays are by shard. `tell` is the step in which shards report, `take` the one in which they apply."""

    tell_seconds: NDArray[np.float64]
    take_seconds: NDArray[np.float64]
    reached: NDArray[np.int64]
    """Messages that came to each shard to be matched."""
    reports: NDArray[np.int64]
    """Pairs that were reported to each shard as the holder of the list."""
    floors: int
    """Thresholds that list holders reported, each counted once."""
    floors_learned: NDArray[np.int64]
    registered: NDArray[np.int64]
    """Copies that came to each shard or left it."""
    changes: int
    checksum: int
    """Of the changes: see `ranked_checksum`."""

    @property
    def slowest_seconds(self) -> float:
        """The time of the batch with a core for each shard: all have reported before any applies."""
        return float(self.tell_seconds.max() + self.take_seconds.max())


@dataclass(slots=True)
class ShardWorld:
    """The shards of a plan, and the thresholds that they reported in the batch before."""

    shards: list[FusedShard] | list[SplitShard]
    floors: list[pa.Table] = field(default_factory=list)
    number: int = 0

    def take(self, batch: RankedBatch) -> BatchWork:
        """Run a batch through all shards."""
        before = self._counters()
        tell_seconds, reports = _each(self.shards, lambda shard, _: shard.tell(self.number, batch, self.floors))
        for_shard = [[tables[at] for tables in reports if at in tables] for at in range(len(self.shards))]
        take_seconds, results = _each(self.shards, lambda shard, at: shard.take(self.number, batch, for_shard[at]))
        self.floors = [result.floors for result in results if result.floors is not None]
        self.number += 1
        reached, floors_learned, registered = self._counters() - before
        is_fused = isinstance(self.shards[0], FusedShard)
        return BatchWork(
            tell_seconds,
            take_seconds,
            np.full(len(self.shards), batch.messages.num_rows) if is_fused else reached,
            np.array([sum(table.num_rows for table in tables) for tables in for_shard], np.int64),
            sum(table.num_rows for table in self.floors),
            floors_learned,
            registered,
            sum(result.changes.num_rows for result in results),
            combined_checksum([ranked_checksum(result.changes) for result in results]),
        )

    def _counters(self) -> NDArray[np.int64]:
        """What each remote matcher has counted so far: int64[3, n_shards]."""
        scouts = [shard.scout for shard in self.shards if isinstance(shard, SplitShard)]
        if not scouts:
            return np.zeros((3, len(self.shards)), np.int64)
        return np.array([[scout.n_reached, scout.n_floors, scout.n_registered] for scout in scouts], np.int64).T

    @property
    def owned(self) -> NDArray[np.int64]:
        """Lists in each shard."""
        return np.array([shard.subscriptions().num_rows for shard in self.shards], np.int64)

    @property
    def copies(self) -> NDArray[np.int64]:
        """Subscriptions that are matched in each shard."""
        return np.array([shard.n_copies for shard in self.shards], np.int64)

    def n_bytes(self) -> list[dict[str, int]]:
        """Bytes of the window, the lists and the copies of each shard."""
        return [shard.n_bytes() for shard in self.shards]


def make_world(mechanism: str, n_shards: int, input: RankedInput, n_groups: int = 0) -> ShardWorld:
    """Empty shards, planned for the subscriptions and messages of an input."""
    sample = input.subscriptions.slice(0, _PLAN_ROWS), input.first_window.slice(0, _PLAN_ROWS)
    plans = _copies_of(plan_ranked(mechanism, n_shards, input.space, *sample, n_groups))
    settings = input.engine_settings
    if mechanism in FUSED:
        return ShardWorld([FusedShard.new(number, plan, settings) for number, plan in enumerate(plans)])
    return ShardWorld([SplitShard.new(number, plan, settings) for number, plan in enumerate(plans)])


def _copies_of(plan: ShardPlan) -> list[ShardPlan]:
    """A copy of the plan for each shard, because shards add words to theirs, as on Spark."""
    with TemporaryDirectory(prefix="nearcast-plan-") as folder:
        plan.save(Path(folder) / "plan")
        return [ShardPlan.open(Path(folder) / "plan") for _ in range(plan.n_shards)]


def _each(shards: list[Any], work: Callable[[Any, int], Result]) -> tuple[NDArray[np.float64], list[Result]]:
    """Let each shard work; its seconds of processor time, and its result."""
    seconds, results = np.empty(len(shards)), []
    for number, shard in enumerate(shards):
        began = time.process_time()
        results.append(work(shard, number))
        seconds[number] = time.process_time() - began
    return seconds, results
