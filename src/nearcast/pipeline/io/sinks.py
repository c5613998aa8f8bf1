"""Where deliveries go: exactly once into Parquet, Delta and topics of files; at least once, with an id, into other formats.

Parquet: a batch is written aside and moved to `batch=<id>` in one step; a batch that is there already is not written again.
Readers of the folder see whole batches only, whatever died in between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from nearcast.pipeline.io.row_ids import delivery_id
from nearcast.pipeline.io.topic_frames import TOPIC, delivery_records
from nearcast.pipeline.io.topic_sink import FileTopicSink, KafkaTopicSink, Records
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.store import Store
from nearcast.pipeline.stream_folders import StreamArea
from nearcast.topics.topic import read_address

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DELIVERY_ID = "delivery_id"
WithId = Callable[["DataFrame", int], "DataFrame"]
"""Adds the column of ids to the rows of a batch."""


class Sink(Protocol):
    """Takes the deliveries of one batch after the other; a batch may come again."""

    @property
    def place(self) -> str:
        """Where the deliveries are, for people."""

    def has(self, batch: int) -> bool:
        """Whether a batch is known to be there, so that it need not be made again."""

    def write(self, deliveries: DataFrame, batch: int, staging: str) -> None:
        """Compute and write; `staging` is a folder of the store for this try alone."""

    def commit(self, batch: int, staging: str) -> None:
        """Make visible what `write` wrote."""


@dataclass(frozen=True, slots=True)
class ParquetSink:
    """Folders `batch=<id>` below a folder of the store."""

    store: Store
    folder: str

    @property
    def place(self) -> str:
        return self.store.address(self.folder)

    def has(self, batch: int) -> bool:
        return self.store.exists(self._target(batch))

    def write(self, deliveries: DataFrame, batch: int, staging: str) -> None:
        deliveries.write.parquet(self.store.address(staging, "deliveries"))

    def commit(self, batch: int, staging: str) -> None:
        self.store.move(f"{staging}/deliveries", self._target(batch))
        self.store.delete(staging)

    def _target(self, batch: int) -> str:
        return f"{self.folder}/batch={batch}"


@dataclass(frozen=True, slots=True)
class DeltaSink:
    """A Delta table; the batch is a transaction of the stream, and Delta skips those it has."""

    path: str
    stream: str
    options: Mapping[str, Any]

    @property
    def place(self) -> str:
        return self.path

    def has(self, batch: int) -> bool:
        return False

    def write(self, deliveries: DataFrame, batch: int, staging: str) -> None:
        options = {**self.options, "txnAppId": f"nearcast-{self.stream}", "txnVersion": str(batch)}
        deliveries.write.format("delta").options(**options).mode("append").save(self.path)

    def commit(self, batch: int, staging: str) -> None:
        """Nothing to do: Delta commits what it writes."""


@dataclass(frozen=True, slots=True)
class NamedSink:
    """Any format of Spark, appended to; each row has a delivery id, the same whenever it is written again."""

    format: str
    path: str
    options: Mapping[str, Any]
    with_id: WithId

    @property
    def place(self) -> str:
        return self.path or self.format

    def has(self, batch: int) -> bool:
        return False

    def write(self, deliveries: DataFrame, batch: int, staging: str) -> None:
        options = {str(name): str(value) for name, value in self.options.items()}
        named = self.with_id(deliveries, batch)
        frame = _as_records(named) if self.format == "kafka" else named
        writer = frame.write.format(self.format).options(**options).mode("append")
        if self.path:
            writer.save(self.path)
        else:
            writer.save()

    def commit(self, batch: int, staging: str) -> None:
        """Nothing to do: what was appended is there, perhaps twice."""


def sink_of(settings: PipelineSettings) -> Sink:
    """The sink that the settings name."""
    area = StreamArea(settings.stream)
    if settings.sink_format == "parquet":
        # The same store where none is named, so that the move stays on one file system.
        return (
            ParquetSink(Store(settings.sink), "deliveries") if settings.sink else ParquetSink(settings.store, area.deliveries)
        )
    if settings.sink_format == "delta":
        return DeltaSink(settings.sink or settings.store.address(area.deliveries), settings.stream, settings.sink_options)
    if settings.sink_format == TOPIC:
        return topic_sink(settings, delivery_records)
    return NamedSink(settings.sink_format, settings.sink, settings.sink_options, with_delivery_id)


def topic_sink(settings: PipelineSettings, records: Records) -> Sink:
    """The topic that the settings name."""
    address = read_address(settings.sink)
    if address.is_kafka:
        return KafkaTopicSink(address, settings.stream, records, settings.sink_options)
    return FileTopicSink(address, settings.stream, records)


def with_delivery_id(deliveries: DataFrame, batch: int) -> DataFrame:
    return deliveries.withColumn(DELIVERY_ID, delivery_id())


def _as_records(named: DataFrame) -> DataFrame:
    """Rows as Kafka takes them: the id as key, everything as value."""
    from pyspark.sql import functions as F  # noqa: N812

    return named.select(F.col(DELIVERY_ID).alias("key"), F.to_json(F.struct(*named.columns)).alias("value"))


def without_repeats(deliveries: DataFrame) -> DataFrame:
    """What a sink that may hold repeats really says: each delivery once."""
    return deliveries.dropDuplicates([DELIVERY_ID])
