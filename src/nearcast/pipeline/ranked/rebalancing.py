"""Another layout for a ranked stream: other shards, made from the subscriptions and the window of those there are.

Every shard has the whole window. So a new shard begins as any of the old ones, gives up the subscriptions that lived there, and
takes in its own: their lists follow from the window, and its ticks go on. The stream does this between two batches, when it
finds that somebody wishes it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from nearcast.errors import PipelineError
from nearcast.pipeline.ranked.batch_log import RankedArea, read_log, table_bytes, table_of
from nearcast.pipeline.ranked.layouts import Layout, RankedPlace, publish_layout, store_plan, stored_layouts
from nearcast.pipeline.ranked.live_shards import LiveShard, LiveShards, fetched_snapshot, moved_engine, save_snapshot
from nearcast.pipeline.ranked.planning import plan_ranked
from nearcast.pipeline.ranked.shard_calls import Call
from nearcast.pipeline.settings_table import PipelineSettings

AskAll = Callable[[list[Call]], None]
"""Has every call made, somewhere where shards are alive."""


def is_ranked(settings: PipelineSettings) -> bool:
    """Whether the stream that the settings name is a ranked one."""
    return bool(stored_layouts(settings.store, RankedArea(settings.stream)))


def wish_layout(settings: PipelineSettings, n_shards: int | None) -> Layout:
    """Ask for another number of shards, or another mechanism if the settings name one; returns the layout in force."""
    store, area = settings.store, RankedArea(settings.stream)
    layouts = stored_layouts(store, area)
    if not layouts:
        raise PipelineError(f"the stream {settings.stream!r} has no shards yet; run first: nearcast pipeline rank")
    now = layouts[-1]
    mechanism = now.mechanism if settings.mechanism == "auto" else settings.mechanism
    wish = {"mechanism": mechanism, "n_shards": n_shards or now.n_shards, "name": uuid.uuid4().hex}
    store.write_json(area.wish, wish)
    return now


def layout_for(place: RankedPlace, number: int, plan_rows: int, ask_all: AskAll) -> Layout:
    """The layout of the batch `number` that is about to begin: a new one if somebody wishes it and it was not made yet."""
    store, area, now = place.store, place.area, place.layout
    if not store.exists(area.wish) or now.first_batch == number:
        return now
    wish = store.read_json(area.wish)
    if wish["name"] == now.wish:
        store.delete(area.wish)
        return now
    before = read_log(store, area, number - 1)
    folder = f"{area.root}/_moving"
    store.delete(folder)
    ask_all([LeaveCall(place, shard, number - 1, before.mark, folder) for shard in range(now.n_shards)])
    tables = [table_of(store.read_bytes(f"{folder}/{name}")) for name in store.names(folder)]
    filled = [table for table in tables if table.num_rows] or tables[:1]
    plan = plan_ranked(
        wish["mechanism"], wish["n_shards"], place.rules.space, pa.concat_tables(filled).slice(0, plan_rows), before.messages
    )
    layout = Layout(store_plan(store, area, plan), number, plan.mechanism, plan.n_shards, wish["name"])
    there = replace(place, layout=layout)
    ask_all([ComeCall(place, there, shard, number - 1, before.mark, folder) for shard in range(layout.n_shards)])
    publish_layout(store, area, layout)
    store.delete(area.wish)
    store.delete(folder)
    return layout


@dataclass(frozen=True, slots=True)
class LeaveCall:
    """Have an old shard leave its subscriptions in a folder, and its window in a snapshot."""

    place: RankedPlace
    shard: int
    number: int
    mark: str
    folder: str

    def run(self, shards: LiveShards) -> bytes:
        engine = shards.snapshot(self.place, self.shard, self.number, self.mark)
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
            engine = moved_engine(self.place, self.shard, local, [table for table in tables if table.num_rows])
        save_snapshot(self.place, self.shard, LiveShard(engine, self.number, self.mark))
        return b""
