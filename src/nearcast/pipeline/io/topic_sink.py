"""Deliveries and changes into a topic: exactly once into files, by the batch; at least once into Kafka, with ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearcast.pipeline.io.topic_frames import with_connector
from nearcast.topics.files import FileTopic
from nearcast.topics.topic import TopicAddress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


Records = Callable[["DataFrame", str, int], "DataFrame"]
"""Rows of a batch of a stream as records: `key` and `value`."""


class FileTopicSink:
    """Spark writes the files of a batch beside the topic; they get their numbers when all are there."""

    def __init__(self, address: TopicAddress, stream: str, records: Records) -> None:
        self._address, self._stream, self._records = address, stream, records
        self._aside: dict[str, Path] = {}

    @property
    def place(self) -> str:
        return str(self._address)

    def has(self, batch: int) -> bool:
        return self._topic().has_folder(self._name(batch))

    def write(self, deliveries: DataFrame, batch: int, staging: str) -> None:
        aside = self._aside[staging] = self._topic().new_staging()
        self._records(deliveries, self._stream, batch).select("value").write.option("compression", "none").text(str(aside))

    def commit(self, batch: int, staging: str) -> None:
        topic = self._topic()
        topic.append_folder(self._name(batch), self._aside.pop(staging))
        topic.forget_folders(f"{self._stream}-", self._name(batch))

    def _topic(self) -> FileTopic:
        return FileTopic(Path(self._address.name))

    def _name(self, batch: int) -> str:
        return f"{self._stream}-{batch}"


@dataclass(frozen=True, slots=True)
class KafkaTopicSink:
    """A batch that dies and runs again may come twice; the ids of its records are the same."""

    address: TopicAddress
    stream: str
    records: Records
    options: Mapping[str, Any]

    @property
    def place(self) -> str:
        return str(self.address)

    def has(self, batch: int) -> bool:
        return False

    def write(self, deliveries: DataFrame, batch: int, staging: str) -> None:
        named = {"kafka.bootstrap.servers": self.address.servers, "topic": self.address.name}
        options = {**named, **{str(name): str(value) for name, value in self.options.items()}}
        with_connector(self.records(deliveries, self.stream, batch).write.format("kafka").options(**options).save)

    def commit(self, batch: int, staging: str) -> None:
        """Nothing to do: what was sent is there."""
