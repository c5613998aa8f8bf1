"""Step "match": a stream of messages into deliveries, batch by batch, each with one leased version of the index.

A batch: apply changed subscriptions → lease a version → match → write to staging → quarantine and counts → publish deliveries.
A batch that fails runs again with the same messages (Spark's checkpoint) and the same index (the lease), and nothing of the
first attempt remains.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nearcast.errors import PipelineError
from nearcast.pipeline.index.open_version import IndexLocation
from nearcast.pipeline.index.shard_folder import SHARD_LIST
from nearcast.pipeline.index.version import IndexVersion, current_index, has_lease, leased_index, release_before
from nearcast.pipeline.io.sinks import Sink, sink_of
from nearcast.pipeline.io.topic_changes import apply_topic_changes, ensure_index, has_change_topic
from nearcast.pipeline.match.routing_mode import Mode, RoutingModeChooser
from nearcast.pipeline.match.step import SHARD, BatchMetrics, MatchStep, write_metrics
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.store import Store, StreamFolders

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True, slots=True)
class MetricsFolder:
    """The folder for the metrics of the tasks of one attempt of a batch."""

    store: Store
    folder: str


def match_frame(messages: DataFrame, location: IndexLocation, mode: Mode, metrics: MetricsFolder | None = None) -> DataFrame:
    """The deliveries of a DataFrame of messages, matched against one version."""
    from pyspark.sql import functions as F  # noqa: N812

    fields = {field.name: field.dataType.simpleString() for field in messages.schema.fields}
    deliveries = f"message_id {fields['id']}, subscription_id {location.version.id_type}"
    if mode == "everywhere":
        return messages.mapInArrow(_with_metrics(location, "match", _match_everywhere, metrics), deliveries)
    # The columns of clean messages, as `Cleaner` writes them.
    coordinates = ("x0", "y0", "x1", "y1") if "x0" in fields else ("x", "y")
    columns = {"id": fields["id"], "keywords": fields.get("keywords", "array<string>"), **dict.fromkeys(coordinates, "double")}
    if "time" in fields:
        columns["time"] = fields["time"]
    schema = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    routed = messages.mapInArrow(_with_metrics(location, "route", _route, metrics), f"{schema}, {SHARD_LIST} array<int>")
    by_shard = routed.withColumn(SHARD, F.explode(SHARD_LIST)).repartitionById(location.version.n_shards, SHARD)
    return by_shard.mapInArrow(_with_metrics(location, "match", _match_routed, metrics), deliveries)


def _match_everywhere(step: MatchStep, table: pa.Table) -> pa.Table:
    return step.match_everywhere(table)


def _route(step: MatchStep, table: pa.Table) -> pa.Table:
    return step.route(table)


def _match_routed(step: MatchStep, table: pa.Table) -> pa.Table:
    return step.match_routed(table)


def _with_metrics(
    location: IndexLocation, stage: str, work: Callable[[MatchStep, pa.Table], pa.Table], metrics: MetricsFolder | None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `mapInArrow` that writes its metrics when its task ends."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        step = MatchStep(location)
        for batch in batches:
            if batch.num_rows:
                yield from work(step, pa.Table.from_batches([batch])).combine_chunks().to_batches()
        context = TaskContext.get()
        if metrics is not None and context is not None and (step.metrics.read or step.metrics.work):
            write_metrics(metrics.store, metrics.folder, f"{stage}-{context.partitionId()}", step.metrics)

    return run


class BatchRunner:
    """Runs a batch for `foreachBatch`. Plain data, so it also runs inside a Spark Connect server."""

    def __init__(self, settings: PipelineSettings, sink: Sink | None = None) -> None:
        self._settings = settings
        self._store = settings.store
        self._folders = StreamFolders(settings.stream)
        self._sink: Sink = sink or sink_of(settings)
        self._chooser = RoutingModeChooser(settings.spread, settings.everywhere_bytes)

    def __call__(self, messages: DataFrame, batch: int) -> None:
        began = time.time()
        release_before(self._store, self._settings.stream, batch)
        if self._sink.has(batch):
            return
        if has_change_topic(self._settings) and not has_lease(self._store, self._settings.stream, batch):
            apply_topic_changes(messages.sparkSession, self._settings)
        version = leased_index(self._store, self._settings.stream, batch)
        mode = self._chooser.choose(version)
        staging = f"{self._folders.staging}/{batch}-{uuid.uuid4().hex}"
        location = IndexLocation(self._store, self._settings.shared_dir, version)
        self._sink.write(match_frame(messages, location, mode, MetricsFolder(self._store, staging)), batch, staging)
        metrics = BatchMetrics(self._store, staging)
        self._chooser.record(mode, metrics.read, time.time() - began)
        self._publish_quarantine(metrics, batch)
        self._store.write_json(self._folders.batch_file(batch), self._facts(batch, version, mode, metrics, began))
        self._sink.commit(batch, staging)
        self._store.delete(staging)

    def _publish_quarantine(self, metrics: BatchMetrics, batch: int) -> None:
        target = f"{self._folders.quarantine}/batch={batch}"
        self._store.delete(target)
        if metrics.quarantined:
            self._store.move(metrics.quarantine_folder, target)

    def _facts(self, batch: int, version: IndexVersion, mode: Mode, metrics: BatchMetrics, began: float) -> dict[str, Any]:
        return {
            "batch": batch,
            "version": version.number,
            "plan": version.plan,
            "mode": mode,
            "read": metrics.read,
            "quarantined": metrics.quarantined,
            "deliveries": metrics.deliveries,
            "work": {str(shard): asdict(work) for shard, work in sorted(metrics.work.items())},
            "began": began,
            "seconds": time.time() - began,
        }


def start_match(messages: DataFrame, settings: PipelineSettings) -> StreamingQuery:
    """Start matching a stream of raw messages; `pipeline.status` reports its progress."""
    store = settings.store
    ensure_index(settings)
    # Checked before the stream starts: a missing index is an error here, not in the log of a batch.
    current_index(store)
    # Left by failed attempts; no attempt of this stream runs now.
    folders = StreamFolders(settings.stream)
    store.delete(folders.staging)
    if store.names(folders.batches) and not store.exists(folders.checkpoint):
        # Spark would number batches from 0 again, but those numbers are in use.
        raise PipelineError(
            f"the stream {settings.stream!r} has deliveries, but its checkpoint {store.address(folders.checkpoint)!r} is gone; "
            "restore it, or give the stream another name: --set stream=NAME"
        )
    writer = messages.writeStream.queryName(settings.stream).foreachBatch(BatchRunner(settings))
    writer = writer.option("checkpointLocation", store.address(folders.checkpoint))
    is_finite = settings.trigger == "available_now"
    return (writer.trigger(availableNow=True) if is_finite else writer.trigger(processingTime=settings.trigger)).start()
