"""All shards of a ranked stream in one process, one after the other: what each takes, and what they tell each other.

The shards are those that run on Spark. In one process, one at a time, a shard has a core for itself, as it would have on a
cluster with a core for each; on a few cores side by side they would only wait for each other. Busy time is the time of
the processor, so that other processes of the machine do not count. A batch takes as long as the slowest shard to tell
plus the slowest to take; the sum over all shards is the work.
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

from benchmarks.experiments.shared.change_checksum import added, sum_of_changes
from benchmarks.experiments.shared.ranked_input import RankedStory
from nearcast.pipeline.plan.shard_plan import ShardPlan
from nearcast.pipeline.ranked.batch_log import RankedBatch
from nearcast.pipeline.ranked.fused_shard import FusedShard
from nearcast.pipeline.ranked.homes import FUSED
from nearcast.pipeline.ranked.planning import plan_ranked
from nearcast.pipeline.ranked.split_shard import SplitShard

_PLAN_ROWS = 50_000
Done = TypeVar("Done")


@dataclass(slots=True)
class BatchWork:
    """What a batch took; arrays are by shard."""

    tell_seconds: NDArray[np.float64]
    take_seconds: NDArray[np.float64]
    reached: NDArray[np.int64]
    """Messages that came to each shard to be looked at."""
    reports: NDArray[np.int64]
    """Pairs that each shard was told as the owner of the list."""
    floors: int
    """Floors that owners told, each once."""
    floors_learned: NDArray[np.int64]
    registered: NDArray[np.int64]
    """Copies that came to each shard, or went."""
    changes: int
    sum_of_changes: int

    @property
    def slowest_seconds(self) -> float:
        """With a core for each shard: all have told before any takes."""
        return float(self.tell_seconds.max() + self.take_seconds.max())


@dataclass(slots=True)
class ShardWorld:
    """The shards of a plan, and the floors that they told in the batch before."""

    shards: list[FusedShard] | list[SplitShard]
    floors: list[pa.Table] = field(default_factory=list)
    number: int = 0

    def take(self, batch: RankedBatch) -> BatchWork:
        """Let all shards take a batch."""
        before = self._counted()
        tell_seconds, told = _each(self.shards, lambda shard, _: shard.tell(self.number, batch, self.floors))
        for_shard = [[tables[at] for tables in told if at in tables] for at in range(len(self.shards))]
        take_seconds, taken = _each(self.shards, lambda shard, at: shard.take(self.number, batch, for_shard[at]))
        self.floors = [one.floors for one in taken if one.floors is not None]
        self.number += 1
        reached, floors_learned, registered = self._counted() - before
        is_fused = isinstance(self.shards[0], FusedShard)
        return BatchWork(
            tell_seconds,
            take_seconds,
            np.full(len(self.shards), batch.messages.num_rows) if is_fused else reached,
            np.array([sum(table.num_rows for table in tables) for tables in for_shard], np.int64),
            sum(table.num_rows for table in self.floors),
            floors_learned,
            registered,
            sum(one.changes.num_rows for one in taken),
            added([sum_of_changes(one.changes) for one in taken]),
        )

    def _counted(self) -> NDArray[np.int64]:
        """Of each scout what it has counted so far: int64[3, n_shards]."""
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
        """Subscriptions that are looked for in each shard."""
        return np.array([shard.n_copies for shard in self.shards], np.int64)

    def n_bytes(self) -> list[dict[str, int]]:
        """Of each shard the bytes of its window, of its lists, and of its copies."""
        return [shard.n_bytes() for shard in self.shards]


def make_world(mechanism: str, n_shards: int, story: RankedStory, n_groups: int = 0) -> ShardWorld:
    """Shards without anything, cut for the subscriptions and messages of a story."""
    sample = story.subscriptions.slice(0, _PLAN_ROWS), story.first_window.slice(0, _PLAN_ROWS)
    plan = plan_ranked(mechanism, n_shards, story.space, *sample, n_groups)
    plans = _plans_of_their_own(plan)
    settings = story.engine_settings
    if mechanism in FUSED:
        return ShardWorld([FusedShard.new(number, own, settings) for number, own in enumerate(plans)])
    return ShardWorld([SplitShard.new(number, own, settings) for number, own in enumerate(plans)])


def _plans_of_their_own(plan: ShardPlan) -> list[ShardPlan]:
    """A plan for each shard, to whose words it may add, as on Spark."""
    with TemporaryDirectory(prefix="nearcast-plan-") as folder:
        plan.save(Path(folder) / "plan")
        return [ShardPlan.open(Path(folder) / "plan") for _ in range(plan.n_shards)]


def _each(shards: list[Any], work: Callable[[Any, int], Done]) -> tuple[NDArray[np.float64], list[Done]]:
    """Have every shard do something; the processor's seconds of each, and what it gave."""
    seconds, done = np.empty(len(shards)), []
    for number, shard in enumerate(shards):
        began = time.process_time()
        done.append(work(shard, number))
        seconds[number] = time.process_time() - began
    return seconds, done
