"""Where changes of lists go: the sinks of deliveries, with an id that follows from the change alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nearcast.pipeline.settings_table import PipelineSettings
from nearcast.pipeline.sinks import DELIVERY_ID, Sink, sink_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EXACT = ("parquet", "delta")


@dataclass(frozen=True, slots=True)
class NamedChangeSink:
    """Any format of Spark, appended to; a batch that comes again brings the same ids again."""

    format: str
    path: str
    options: Mapping[str, Any]

    @property
    def place(self) -> str:
        return self.path or self.format

    def has(self, batch: int) -> bool:
        return False

    def write(self, deliveries: DataFrame, batch: int, staging: str) -> None:
        options = {str(name): str(value) for name, value in self.options.items()}
        frame = with_change_id(deliveries, batch)
        if self.format == "kafka":
            frame = _as_records(frame)
        writer = frame.write.format(self.format).options(**options).mode("append")
        if self.path:
            writer.save(self.path)
        else:
            writer.save()

    def commit(self, batch: int, staging: str) -> None:
        """Nothing to do: what was appended is there, perhaps twice."""


def change_sink(settings: PipelineSettings) -> Sink:
    """The sink that the settings name."""
    if settings.sink_format in _EXACT:
        return sink_of(settings)
    return NamedChangeSink(settings.sink_format, settings.sink, settings.sink_options)


def with_change_id(changes: DataFrame, batch: int) -> DataFrame:
    """Changes with an id: a list may gain the same message twice at one tick, but only in different batches."""
    from pyspark.sql import functions as F  # noqa: N812

    what = F.struct(F.lit(batch).alias("batch"), "tick", "subscription_id", "message_id", "change")
    return changes.withColumn(DELIVERY_ID, F.sha2(F.to_json(what), 256))


def _as_records(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    return frame.select(F.col(DELIVERY_ID).alias("key"), F.to_json(F.struct(*frame.columns)).alias("value"))
