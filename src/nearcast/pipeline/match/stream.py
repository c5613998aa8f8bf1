"""Step "match": a stream of messages into deliveries, batch by batch, each batch with one pinned version of the index.

A batch: take up changed subscriptions → pin → match → write aside → quarantine and counts → deliveries appear. What dies
in between runs again with the same messages (Spark's checkpoint) and the same index (the pin), and leaves no trace of the first
try.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nearcast.errors import PipelineError
from nearcast.pipeline.index.open_version import IndexPlace
from nearcast.pipeline.index.shard_folder import REACH
from nearcast.pipeline.index.version import IndexVersion, current_index
from nearcast.pipeline.index.version_leases import is_pinned, pinned_index, unpin_before
from nearcast.pipeline.io.sinks import Sink, sink_of
from nearcast.pipeline.io.topic_changes import begin_index, has_change_topic, take_up_changes
from nearcast.pipeline.match.routing_mode import Mode, SpreadChooser
from nearcast.pipeline.match.step import SHARD, MatchStep
from nearcast.pipeline.match.task_metrics import BatchNotes, write_notes
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.store import Store
from nearcast.pipeline.stream_folders import StreamArea

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True, slots=True)
class TaskNotesPlace:
    """Where the tasks of one try of a batch leave their notes; None = nowhere."""

    store: Store
    folder: str


def match_frame(messages: DataFrame, place: IndexPlace, mode: Mode, notes: TaskNotesPlace | None = None) -> DataFrame:
    """The deliveries of a DataFrame of messages against one version."""
    from pyspark.sql import functions as F  # noqa: N812

    fields = {field.name: field.dataType.simpleString() for field in messages.schema.fields}
    deliveries = f"message_id {fields['id']}, subscription_id {place.version.id_type}"
    if mode == "everywhere":
        return messages.mapInArrow(_noted(place, "match", _match_everywhere, notes), deliveries)
    # Clean messages are what `Cleaner` makes of raw ones.
    position = ("x0", "y0", "x1", "y1") if "x0" in fields else ("x", "y")
    columns = {"id": fields["id"], "keywords": fields.get("keywords", "array<string>"), **dict.fromkeys(position, "double")}
    if "time" in fields:
        columns["time"] = fields["time"]
    schema = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    routed = messages.mapInArrow(_noted(place, "route", _route, notes), f"{schema}, {REACH} array<int>")
    spread = routed.withColumn(SHARD, F.explode(REACH)).repartitionById(place.version.n_shards, SHARD)
    return spread.mapInArrow(_noted(place, "match", _match_routed, notes), deliveries)


def _match_everywhere(step: MatchStep, table: pa.Table) -> pa.Table:
    return step.match_everywhere(table)


def _route(step: MatchStep, table: pa.Table) -> pa.Table:
    return step.route(table)


def _match_routed(step: MatchStep, table: pa.Table) -> pa.Table:
    return step.match_routed(table)


def _noted(
    place: IndexPlace, stage: str, work: Callable[[MatchStep, pa.Table], pa.Table], notes: TaskNotesPlace | None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `mapInArrow` that leaves its notes when its task is done."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        step = MatchStep(place)
        for batch in batches:
            if batch.num_rows:
                yield from work(step, pa.Table.from_batches([batch])).combine_chunks().to_batches()
        context = TaskContext.get()
        if notes is not None and context is not None and (step.notes.read or step.notes.work):
            write_notes(notes.store, notes.folder, f"{stage}-{context.partitionId()}", step.notes)

    return run


class BatchRunner:
    """What `foreachBatch` calls; plain data, so that it also runs inside a Spark Connect server."""

    def __init__(self, settings: PipelineSettings, sink: Sink | None = None) -> None:
        self._settings = settings
        self._store = settings.store
        self._area = StreamArea(settings.stream)
        self._sink: Sink = sink or sink_of(settings)
        self._chooser = SpreadChooser(settings.spread, settings.everywhere_bytes)

    def __call__(self, messages: DataFrame, batch: int) -> None:
        began = time.time()
        unpin_before(self._store, self._settings.stream, batch)
        if self._sink.has(batch):
            return
        if has_change_topic(self._settings) and not is_pinned(self._store, self._settings.stream, batch):
            take_up_changes(messages.sparkSession, self._settings)
        version = pinned_index(self._store, self._settings.stream, batch)
        mode = self._chooser.choose(version)
        staging = f"{self._area.staging}/{batch}-{uuid.uuid4().hex}"
        place = IndexPlace(self._store, self._settings.shared_dir, version)
        self._sink.write(match_frame(messages, place, mode, TaskNotesPlace(self._store, staging)), batch, staging)
        notes = BatchNotes(self._store, staging)
        self._chooser.record(mode, notes.read, time.time() - began)
        self._keep_quarantine(notes, batch)
        self._store.write_json(self._area.batch_file(batch), self._facts(batch, version, mode, notes, began))
        self._sink.commit(batch, staging)
        self._store.delete(staging)

    def _keep_quarantine(self, notes: BatchNotes, batch: int) -> None:
        target = f"{self._area.quarantine}/batch={batch}"
        self._store.delete(target)
        if notes.quarantined:
            self._store.move(notes.quarantine_folder, target)

    def _facts(self, batch: int, version: IndexVersion, mode: Mode, notes: BatchNotes, began: float) -> dict[str, Any]:
        return {
            "batch": batch,
            "version": version.number,
            "plan": version.plan,
            "mode": mode,
            "read": notes.read,
            "quarantined": notes.quarantined,
            "deliveries": notes.deliveries,
            "work": {str(shard): asdict(work) for shard, work in sorted(notes.work.items())},
            "began": began,
            "seconds": time.time() - began,
        }


def start_match(messages: DataFrame, settings: PipelineSettings) -> StreamingQuery:
    """Start matching a stream of raw messages; what it did is told by `status`."""
    store = settings.store
    begin_index(settings)
    # Before the stream starts, so that a missing index is said here and not in the log of a batch.
    current_index(store)
    # Tries that died left these; no try of this stream is alive now.
    area = StreamArea(settings.stream)
    store.delete(area.staging)
    if store.names(area.batches) and not store.exists(area.checkpoint):
        # Spark would count batches from 0 again, and those numbers are taken.
        raise PipelineError(
            f"the stream {settings.stream!r} has delivered, but its checkpoint {store.address(area.checkpoint)!r} is gone; "
            "restore it, or give the stream another name: --set stream=NAME"
        )
    writer = messages.writeStream.queryName(settings.stream).foreachBatch(BatchRunner(settings))
    writer = writer.option("checkpointLocation", store.address(area.checkpoint))
    is_finite = settings.trigger == "available_now"
    return (writer.trigger(availableNow=True) if is_finite else writer.trigger(processingTime=settings.trigger)).start()
