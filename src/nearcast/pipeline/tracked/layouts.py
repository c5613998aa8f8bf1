"""A tracked stream in one layout: so many shards, by the hash of ids."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nearcast.pipeline.keeping.areas import TrackedArea
from nearcast.pipeline.keeping.layouts import ShardPlace
from nearcast.pipeline.keeping.shard_engine import ShardEngine
from nearcast.pipeline.tracked.batches import TrackedBatch
from nearcast.pipeline.tracked.rules import TrackingRules
from nearcast.pipeline.tracked.shard import TrackedShard

MECHANISM = "hashing"


@dataclass(frozen=True, slots=True)
class TrackedPlace(ShardPlace):
    """A tracked stream in one layout."""

    rules: TrackingRules

    @property
    def area(self) -> TrackedArea:
        return TrackedArea(self.stream)

    def batch(self, number: int) -> TrackedBatch:
        return TrackedBatch.from_bytes(self.store.read_bytes(self.area.log(number)))

    def new_engine(self, shard: int) -> ShardEngine:
        return TrackedShard(shard, self.layout.n_shards, self.rules.matcher())

    def open_engine(self, shard: int, folder: Path) -> ShardEngine:
        return TrackedShard.open(shard, self.layout.n_shards, folder)
