"""A batch of a stream whose shards have state, from rows to changes.

Clean and put in order → write it down → let shards tell each other what they must → let them take it → changes appear. What
dies in between runs again with the same words (the log), and leaves no trace of the first try.
"""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol

import pyarrow as pa

from nearcast.errors import PipelineError
from nearcast.pipeline.io.sinks import Sink
from nearcast.pipeline.keeping.areas import ShardArea
from nearcast.pipeline.keeping.asking import AskAll, MapBatches, ask_all, take_frame
from nearcast.pipeline.keeping.batch_log import Batch
from nearcast.pipeline.keeping.layouts import Layout, ShardPlace, layout_of, publish_layout
from nearcast.pipeline.keeping.live_shards import Step
from nearcast.pipeline.keeping.retention import is_snapshot_due, remove_old
from nearcast.pipeline.keeping.shard_calls import IdKinds, TakeCall, TellCall
from nearcast.pipeline.keeping.wishes import Wish, area_with_shards, layout_for
from nearcast.pipeline.match.step import BatchMetrics as BatchNotes
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.store import StreamFolders as StreamArea

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_TOLD = "told"
_STORED = "stored_bad.parquet"


@dataclass(frozen=True, slots=True)
class ReadRows(Generic[Batch]):
    """A batch as it was read: in order, and what could not be used."""

    batch: Batch
    n_read: int
    bad: pa.Table


class ShardedRunner(ABC, Generic[Batch]):
    """What `foreachBatch` calls; plain data, so that it also runs inside a Spark Connect server."""

    more_columns: ClassVar[str] = ""
    """What a change says beside tick, ids and change."""

    def __init__(self, settings: PipelineSettings, shards: ShardArea, sink: Sink) -> None:
        self._settings, self._shards, self._sink = settings, shards, sink
        self._store, self._area = settings.store, StreamArea(settings.stream)

    # --- what a kind of stream has of its own -------------------------------------------------------------------------

    @abstractmethod
    def _read(self, rows: DataFrame, number: int) -> ReadRows[Batch]:
        """Clean rows in tasks, put them in order and write them down."""

    @abstractmethod
    def _first_layout(self, batch: Batch, number: int) -> Layout:
        """How the stream is cut, which its first batch decides; still to be published."""

    @abstractmethod
    def _place(self, layout: Layout) -> ShardPlace: ...

    @abstractmethod
    def _moved(self, place: ShardPlace, number: int, ask: AskAll, wish: Wish) -> Layout:
        """Make the layout that is wished, to begin with batch `number`; still to be published."""

    @abstractmethod
    def _id_kinds(self, rows: DataFrame) -> IdKinds: ...

    def _has_to_tell(self, place: ShardPlace, batch: Batch) -> bool:
        """Whether shards have something to tell each other before they take the batch."""
        return False

    # --- a batch ------------------------------------------------------------------------------------------------------

    @property
    def has_begun(self) -> bool:
        """Whether a batch was delivered, or at least written down: then other rows with its number would be lost."""
        return bool(self._store.names(self._area.batches) or self._store.names(self._shards.logs))

    def __call__(self, rows: DataFrame, number: int) -> None:
        began, session = time.time(), rows.sparkSession
        if self._sink.has(number):
            return
        read = self._read(rows, number)
        place = self._place_of(read.batch, number, lambda calls: ask_all(session, calls))
        step = Step(number, read.batch.mark, place.batch(number - 1).mark if number else "")
        staging = f"{self._area.staging}/{number}-{uuid.uuid4().hex}"
        told = f"{staging}/{_TOLD}"
        shards = range(place.layout.n_shards)
        if self._has_to_tell(place, read.batch):
            ask_all(session, [TellCall(place, shard, step, told) for shard in shards])
        is_saved = is_snapshot_due(place, number, self._settings.snapshot_batches)
        kinds = self._id_kinds(rows)
        calls = [TakeCall(place, shard, step, told, staging, kinds, is_saved) for shard in shards]
        self._sink.write(take_frame(session, calls, self.more_columns), number, staging)
        notes = BatchNotes(self._store, staging)
        self._keep_quarantine(notes, read.bad, number)
        self._keep_told(told, number)
        self._store.write_json(self._area.batch_file(number), self._facts(number, place.layout, read, notes, began))
        self._sink.commit(number, staging)
        self._store.delete(staging)
        remove_old(place, number)

    def _place_of(self, batch: Batch, number: int, ask: AskAll) -> ShardPlace:
        """Where the shards of the batch are."""
        layout = layout_of(self._store, self._shards, number)
        if layout is None:
            layout = self._first_layout(batch, number)
            publish_layout(self._store, self._shards, layout)
        place = self._place(layout)
        return replace(place, layout=layout_for(place, number, partial(self._moved, place, number, ask)))

    def _keep_quarantine(self, notes: BatchNotes, bad: pa.Table, number: int) -> None:
        target = f"{self._area.quarantine}/batch={number}"
        self._store.delete(target)
        if notes.quarantined:
            self._store.move(notes.quarantine_folder, target)
        if bad.num_rows:
            self._store.write_table(f"{target}/{_STORED}", bad)

    def _keep_told(self, told: str, number: int) -> None:
        """Keep what shards told each other, for those who go through the batch again."""
        target = self._shards.told(number)
        self._store.delete(target)
        if self._store.exists(told):
            self._store.move(told, target)

    def _facts(self, number: int, layout: Layout, read: ReadRows[Batch], notes: BatchNotes, began: float) -> dict[str, Any]:
        return {
            "batch": number,
            "version": layout.number,
            "plan": layout.number,
            "mode": layout.mechanism,
            "read": read.n_read,
            "quarantined": notes.quarantined + read.bad.num_rows,
            "deliveries": notes.deliveries,
            "work": {str(shard): asdict(work) for shard, work in sorted(notes.work.items())},
            "began": began,
            "seconds": time.time() - began,
        }


class Cleans(Protocol):
    """Makes clean rows of raw ones; travels to tasks."""

    def clean(self, rows: pa.Table) -> pa.Table: ...


def cleaned_rows(rows: DataFrame, cleaner: Cleans, schema: str) -> pa.Table:
    """The rows of a batch, cleaned in tasks."""
    return rows.mapInArrow(_cleaning(cleaner), schema).toArrow()


def _cleaning(cleaner: Cleans) -> MapBatches:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from cleaner.clean(pa.Table.from_batches([batch])).to_batches()

    return run


def start_sharded(rows: DataFrame, settings: PipelineSettings, runner: ShardedRunner[Any]) -> StreamingQuery:
    """Start a stream of rows; what it did is told by `status`."""
    store, area = settings.store, StreamArea(settings.stream)
    # Tries that died left these; no try of this stream is alive now.
    store.delete(area.staging)
    if runner.has_begun and not store.exists(area.checkpoint):
        raise PipelineError(
            f"the stream {settings.stream!r} has begun, but its checkpoint {store.address(area.checkpoint)!r} is gone; "
            "restore it, or give the stream another name: --set stream=NAME"
        )
    writer = rows.writeStream.queryName(settings.stream).foreachBatch(runner)
    writer = writer.option("checkpointLocation", store.address(area.checkpoint))
    is_finite = settings.trigger == "available_now"
    return (writer.trigger(availableNow=True) if is_finite else writer.trigger(processingTime=settings.trigger)).start()


def check_rules(settings: PipelineSettings, area: ShardArea, rules: Any) -> None:
    """Let a stream keep the rules (a dataclass) that it began with: PipelineError if it is another kind, or had others."""
    store = settings.store
    found = area_with_shards(settings)
    if found is not None and found.kind != area.kind:
        raise PipelineError(
            f"the stream {settings.stream!r} is a {found.kind} one; give this one another name: --set stream=NAME"
        )
    if not store.exists(area.rules):
        store.write_json(area.rules, asdict(rules))
    began_with = type(rules)(**store.read_json(area.rules))
    if rules != began_with:
        raise PipelineError(
            f"the stream {settings.stream!r} began with {began_with}; now it was given {rules}: "
            "go on with those, or give the stream another name: --set stream=NAME"
        )
