"""Other shards for a tracked stream, made of the snapshots of those there are: all have the same messages and clock."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace

from nearcast.pipeline.keeping.asking import AskAll
from nearcast.pipeline.keeping.layouts import Layout, reserve_layout
from nearcast.pipeline.keeping.live_shards import LiveShards
from nearcast.pipeline.keeping.snapshots import fetched_snapshot, save_snapshot
from nearcast.pipeline.keeping.wishes import Wish
from nearcast.pipeline.tracked.layouts import MECHANISM, TrackedPlace
from nearcast.pipeline.tracked.shard import TrackedShard


def move_to(place: TrackedPlace, wish: Wish, number: int, ask_all: AskAll) -> Layout:
    """Make the layout that is wished, to begin with batch `number`; it is still to be published."""
    mark = place.batch(number - 1).mark
    ask_all([SaveCall(place, shard, number - 1, mark) for shard in range(place.layout.n_shards)])
    layout = Layout(reserve_layout(place.store, place.area), number, MECHANISM, wish.n_shards, wish.name)
    there = replace(place, layout=layout)
    ask_all([ComeCall(place, there, shard, number - 1, mark) for shard in range(layout.n_shards)])
    return layout


@dataclass(frozen=True, slots=True)
class SaveCall:
    """Have an old shard saved."""

    place: TrackedPlace
    shard: int
    number: int
    mark: str

    def run(self, shards: LiveShards) -> bytes:
        shards.snapshot(self.place, self.shard, self.number, self.mark)
        return b""


@dataclass(frozen=True, slots=True)
class ComeCall:
    """Have a new shard made of what lives in it from now on, and saved."""

    old: TrackedPlace
    place: TrackedPlace
    shard: int
    number: int
    mark: str

    def run(self, shards: LiveShards) -> bytes:
        with ExitStack() as fetched:
            old = range(self.old.layout.n_shards)
            folders = [fetched.enter_context(fetched_snapshot(self.old, shard, self.number)) for shard in old]
            engine = TrackedShard.moved(self.shard, self.place.layout.n_shards, folders)
            save_snapshot(self.place, self.shard, engine, self.number, self.mark)
        return b""
