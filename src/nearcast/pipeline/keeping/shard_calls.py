"""What a task of Spark asks of the process that keeps the shards of its host. Plain data; the answers are bytes or nothing."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from nearcast.pipeline.keeping.arrow_bytes import table_bytes
from nearcast.pipeline.keeping.exchange import read_told, write_floors, write_told
from nearcast.pipeline.keeping.layouts import ShardPlace
from nearcast.pipeline.keeping.live_shards import LiveShards, Step
from nearcast.pipeline.keeping.shard_engine import Taken
from nearcast.pipeline.match.step import ShardWork
from nearcast.pipeline.match.step import StepMetrics as StepNotes
from nearcast.pipeline.match.step import write_metrics as write_notes
from nearcast.pipeline.prepare.cleaning import quarantine_rows


class Call(Protocol):
    """Something to be done where shards are alive."""

    @property
    def place(self) -> ShardPlace: ...

    def run(self, shards: LiveShards) -> bytes:
        """Do it."""


@dataclass(frozen=True, slots=True)
class IdKinds:
    """The types of ids, as Spark names them: an engine that has seen none does not know them."""

    subscription: str
    message: str

    def typed(self, changes: pa.Table) -> pa.Table:
        for name, kind in (("subscription_id", self.subscription), ("message_id", self.message)):
            at = changes.column_names.index(name)
            changes = changes.set_column(at, name, changes[name].cast(pa.int64() if kind == "bigint" else pa.string()))
        return changes.set_column(3, "change", changes["change"].cast(pa.int8()))


@dataclass(frozen=True, slots=True)
class TellCall:
    """Have a shard tell the others what they need for a batch; it is left in `folder` of the store."""

    place: ShardPlace
    shard: int
    step: Step
    folder: str

    def run(self, shards: LiveShards) -> bytes:
        write_told(self.place.store, self.folder, self.shard, shards.tell(self.place, self.shard, self.step))
        return b""


@dataclass(frozen=True, slots=True)
class TakeCall:
    """Have a shard take a batch, with what `folder` says; the answer is a table of changes, as an Arrow stream."""

    place: ShardPlace
    shard: int
    step: Step
    folder: str
    notes: str
    kinds: IdKinds
    is_saved: bool
    """Whether the shard is saved afterwards."""

    def run(self, shards: LiveShards) -> bytes:
        began = time.perf_counter()
        store = self.place.store
        taken = shards.take(self.place, self.shard, self.step, read_told(store, self.folder, self.shard))
        if taken.floors is not None:
            write_floors(store, self.folder, self.shard, taken.floors)
        if self.is_saved:
            shards.snapshot(self.place, self.shard, self.step.number, self.step.mark)
        self._leave_notes(taken, time.perf_counter() - began)
        return table_bytes(self.kinds.typed(taken.changes))

    def _leave_notes(self, taken: Taken, seconds: float) -> None:
        place = self.place
        quarantine = [] if taken.aside is None else [taken.aside]
        if taken.rejected and self.shard == 0:
            # Every shard rejects the same messages; the first one says so.
            quarantine.append(quarantine_rows(place.batch(self.step.number).messages, taken.rejected))
        work = ShardWork(taken.n_messages, taken.changes.num_rows, taken.candidates, seconds)
        notes = StepNotes(quarantine=quarantine, work={self.shard: work})
        write_notes(place.store, self.notes, f"take-{self.shard}", notes)
