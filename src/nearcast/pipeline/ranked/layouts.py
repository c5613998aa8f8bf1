"""A ranked stream in one layout: the plan by which it is cut, and the shards of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from nearcast.pipeline.host_cache import fetch_to_host as fetched
from nearcast.pipeline.host_cache import open_once as opened
from nearcast.pipeline.keeping.areas import RankedArea, ShardArea
from nearcast.pipeline.keeping.layouts import ShardPlace, layout_folder
from nearcast.pipeline.keeping.shard_engine import ShardEngine
from nearcast.pipeline.plan.shard_plan import ShardPlan
from nearcast.pipeline.ranked.batch_log import RankedBatch, read_log
from nearcast.pipeline.ranked.fused_shard import FusedShard
from nearcast.pipeline.ranked.homes import FUSED
from nearcast.pipeline.ranked.rules import RankingRules
from nearcast.pipeline.ranked.split_shard import SplitShard
from nearcast.pipeline.store import Store, next_version

_PLAN = "plan"


@dataclass(frozen=True, slots=True)
class RankedPlace(ShardPlace):
    """A ranked stream in one layout."""

    rules: RankingRules

    @property
    def area(self) -> RankedArea:
        return RankedArea(self.stream)

    @property
    def plan(self) -> ShardPlan:
        """The plan, to be read only: others of this process read it too."""
        return opened(self._key("plan"), self.plan_copy)

    def plan_copy(self) -> ShardPlan:
        """A plan of one's own, to whose words others may be added."""
        name = f"{layout_folder(self.area, self.layout.number)}/{_PLAN}"
        return ShardPlan.open(fetched(self.store, name, self.shared_dir))

    def batch(self, number: int) -> RankedBatch:
        return read_log(self.store, self.area, number)

    def new_engine(self, shard: int) -> ShardEngine:
        return self._kind.new(shard, self.plan_copy(), self.rules.engine_settings(self.store))

    def open_engine(self, shard: int, folder: Path) -> ShardEngine:
        return self._kind.open(shard, self.plan_copy(), self.rules.engine_settings(self.store), folder)

    def moved_engine(self, shard: int, folder: Path, subscriptions: Sequence[pa.Table]) -> ShardEngine:
        """A shard of these subscriptions, of which not all live there, with the window of another one saved in a folder."""
        return self._kind.moved(shard, self.plan_copy(), self.rules.engine_settings(self.store), folder, subscriptions)

    @property
    def _kind(self) -> type[FusedShard] | type[SplitShard]:
        return FusedShard if self.layout.mechanism in FUSED else SplitShard

    def _key(self, what: str) -> tuple[Any, ...]:
        return ("ranked", what, self.store.identity, self.stream, self.layout.number)


def store_plan(store: Store, area: ShardArea, plan: ShardPlan) -> int:
    """Store the plan of a layout that is still to be published; returns a number that no layout has had."""
    number = next_version(store, [area.layouts])
    with store.new_folder(f"{layout_folder(area, number)}/{_PLAN}") as local:
        plan.save(local)
    return number
