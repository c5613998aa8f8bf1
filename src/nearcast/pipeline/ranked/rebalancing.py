"""Other shards for a ranked stream, made from the subscriptions and the window of those there are.

Every shard has the whole window. So a new shard begins as any of the old ones, gives up the subscriptions that lived there, and
takes in its own: their lists follow from the window, and its ticks go on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import pyarrow as pa

from nearcast.pipeline.keeping.arrow_bytes import table_bytes, table_of
from nearcast.pipeline.keeping.asking import AskAll
from nearcast.pipeline.keeping.layouts import Layout
from nearcast.pipeline.keeping.live_shards import LiveShards
from nearcast.pipeline.keeping.snapshots import fetched_snapshot, save_snapshot
from nearcast.pipeline.keeping.wishes import Wish
from nearcast.pipeline.ranked.fused_shard import FusedShard
from nearcast.pipeline.ranked.layouts import RankedPlace, store_plan
from nearcast.pipeline.ranked.planning import plan_ranked
from nearcast.pipeline.ranked.split_shard import SplitShard


def move_to(place: RankedPlace, wish: Wish, number: int, plan_rows: int, ask_all: AskAll) -> Layout:
    """Make the layout that is wished, to begin with batch `number`; it is still to be published."""
    store, area = place.store, place.area
    before = place.batch(number - 1)
    folder = f"{area.root}/_moving"
    store.delete(folder)
    ask_all([LeaveCall(place, shard, number - 1, before.mark, folder) for shard in range(place.layout.n_shards)])
    tables = [table_of(store.read_bytes(f"{folder}/{name}")) for name in store.names(folder)]
    filled = [table for table in tables if table.num_rows] or tables[:1]
    sample = _spread_out(pa.concat_tables(filled), plan_rows)
    plan = plan_ranked(wish.mechanism, wish.n_shards, place.rules.space, sample, before.messages)
    layout = Layout(store_plan(store, area, plan), number, plan.mechanism, plan.n_shards, wish.name)
    there = replace(place, layout=layout)
    ask_all([ComeCall(place, there, shard, number - 1, before.mark, folder) for shard in range(layout.n_shards)])
    store.delete(folder)
    return layout


def _spread_out(subscriptions: pa.Table, most: int) -> pa.Table:
    """So many of them at the most, from all shards: those of one may all live in one place."""
    every = max(1, -(-subscriptions.num_rows // most))
    return subscriptions.take(pa.array(range(0, subscriptions.num_rows, every), pa.int64()))


@dataclass(frozen=True, slots=True)
class LeaveCall:
    """Have an old shard leave its subscriptions in a folder, and its window in a snapshot."""

    place: RankedPlace
    shard: int
    number: int
    mark: str
    folder: str

    def run(self, shards: LiveShards) -> bytes:
        engine = cast(FusedShard | SplitShard, shards.snapshot(self.place, self.shard, self.number, self.mark))
        self.place.store.write_bytes(f"{self.folder}/{self.shard:06d}.arrow", table_bytes(engine.subscriptions()))
        return b""


@dataclass(frozen=True, slots=True)
class ComeCall:
    """Have a new shard made of an old window and the subscriptions that live in it from now on, and saved."""

    old: RankedPlace
    place: RankedPlace
    shard: int
    number: int
    mark: str
    folder: str

    def run(self, shards: LiveShards) -> bytes:
        store = self.place.store
        tables = [table_of(store.read_bytes(f"{self.folder}/{name}")) for name in store.names(self.folder)]
        with fetched_snapshot(self.old, 0, self.number) as local:
            engine = self.place.moved_engine(self.shard, local, [table for table in tables if table.num_rows])
        save_snapshot(self.place, self.shard, engine, self.number, self.mark)
        return b""
