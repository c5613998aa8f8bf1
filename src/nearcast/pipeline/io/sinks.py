"""Where deliveries go: exactly once into Parquet, Delta and topics of files; at least once, with an id, into other formats.

Parquet: a batch is written to staging and moved to `batch=<id>` in one step; a batch that exists is not written again. So
readers of the folder see only complete batches, whatever failed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from nearcast.pipeline.io.topic_frames import TOPIC, delivery_id, delivery_records, with_connector
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.store import Store, StreamFolders
from nearcast.topics.files import FileTopic
from nearcast.topics.topic import TopicAddress, read_address

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DELIVERY_ID = "delivery_id"
WithId = Callable[["DataFrame", int], "DataFrame"]
"""Adds the column of ids to the rows of a batch."""


class Sink(Protocol):
    """Writes the deliveries of batches, in order; a batch may be repeated."""

    @property
    def location(self) -> str:
        """Where the deliveries are, as a readable text."""

    def has(self, batch: int) -> bool:
        """Whether a batch is known to be written, so that it need not run again."""

    def write(self, deliveries: DataFrame, batch: int, staging: str) -> None:
        """Compute and write the deliveries; `staging` is a folder of the store for this attempt only."""

    def commit(self, batch: int, staging: str) -> None:
        """Publish what `write` wrote."""


@dataclass(frozen=True, slots=True)
class ParquetSink:
    """Folders `batch=<id>` below a folder of the store."""

    store: Store
    folder: str

    @property
    def location(self) -> str:
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
    """A Delta table. A batch is a transaction of the stream; Delta skips transactions that it has."""

    path: str
    stream: str
    options: Mapping[str, Any]

    @property
    def location(self) -> str:
        return self.path

    def has(self, batch: int) -> bool:
        return False

    def write(self, deliveries: DataFrame, batch: int, staging: str) -> None:
        options = {**self.options, "txnAppId": f"nearcast-{self.stream}", "txnVersion": str(batch)}
        deliveries.write.format("delta").options(**options).mode("append").save(self.path)

    def commit(self, batch: int, staging: str) -> None:
        """Nothing to do: Delta commits in `write`."""


@dataclass(frozen=True, slots=True)
class NamedSink:
    """Any format of Spark, in append mode. Each row has an id that is the same whenever it is written again."""

    format: str
    path: str
    options: Mapping[str, Any]
    with_id: WithId

    @property
    def location(self) -> str:
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
        """Nothing to do: the rows are written, perhaps twice."""


def sink_of(settings: PipelineSettings) -> Sink:
    """The sink of the settings."""
    folders = StreamFolders(settings.stream)
    if settings.sink_format == "parquet":
        # By default in the work folder, so that the move stays on one file system.
        return (
            ParquetSink(Store(settings.sink), "deliveries")
            if settings.sink
            else ParquetSink(settings.store, folders.deliveries)
        )
    if settings.sink_format == "delta":
        return DeltaSink(settings.sink or settings.store.address(folders.deliveries), settings.stream, settings.sink_options)
    if settings.sink_format == TOPIC:
        return topic_sink(settings, delivery_records)
    return NamedSink(settings.sink_format, settings.sink, settings.sink_options, with_delivery_id)


def topic_sink(settings: PipelineSettings, records: Records) -> Sink:
    """The sink into the topic of the settings."""
    address = read_address(settings.sink)
    if address.is_kafka:
        return KafkaTopicSink(address, settings.stream, records, settings.sink_options)
    return FileTopicSink(address, settings.stream, records)


def with_delivery_id(deliveries: DataFrame, batch: int) -> DataFrame:
    return deliveries.withColumn(DELIVERY_ID, delivery_id())


def _as_records(named: DataFrame) -> DataFrame:
    """Rows for Kafka: the id as key, all columns as value."""
    from pyspark.sql import functions as F  # noqa: N812

    return named.select(F.col(DELIVERY_ID).alias("key"), F.to_json(F.struct(*named.columns)).alias("value"))


def without_repeats(deliveries: DataFrame) -> DataFrame:
    """The deliveries of a sink that may contain repeats, each once."""
    return deliveries.dropDuplicates([DELIVERY_ID])


Records = Callable[["DataFrame", str, int], "DataFrame"]
"""Converts the rows of a batch of a stream to records: `key` and `value`."""


class FileTopicSink:
    """Exactly once: Spark writes the files of a batch to a staging folder; `commit` appends them to the topic."""

    def __init__(self, address: TopicAddress, stream: str, records: Records) -> None:
        self._address, self._stream, self._records = address, stream, records
        self._staging_folders: dict[str, Path] = {}

    @property
    def location(self) -> str:
        return str(self._address)

    def has(self, batch: int) -> bool:
        return self._topic().has_folder(self._name(batch))

    def write(self, deliveries: DataFrame, batch: int, staging: str) -> None:
        folder = self._staging_folders[staging] = self._topic().new_staging()
        self._records(deliveries, self._stream, batch).select("value").write.option("compression", "none").text(str(folder))

    def commit(self, batch: int, staging: str) -> None:
        topic = self._topic()
        topic.append_folder(self._name(batch), self._staging_folders.pop(staging))
        topic.forget_folders(f"{self._stream}-", self._name(batch))

    def _topic(self) -> FileTopic:
        return FileTopic(Path(self._address.name))

    def _name(self, batch: int) -> str:
        return f"{self._stream}-{batch}"


@dataclass(frozen=True, slots=True)
class KafkaTopicSink:
    """At least once: a batch that fails and runs again may be written twice, with the same ids."""

    address: TopicAddress
    stream: str
    records: Records
    options: Mapping[str, Any]

    @property
    def location(self) -> str:
        return str(self.address)

    def has(self, batch: int) -> bool:
        return False

    def write(self, deliveries: DataFrame, batch: int, staging: str) -> None:
        named = {"kafka.bootstrap.servers": self.address.servers, "topic": self.address.name}
        options = {**named, **{str(name): str(value) for name, value in self.options.items()}}
        with_connector(self.records(deliveries, self.stream, batch).write.format("kafka").options(**options).save)

    def commit(self, batch: int, staging: str) -> None:
        """Nothing to do: the records are in the topic."""
