"""Where changes of lists and results go: the sinks of deliveries, with an id that follows from the change alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearcast.pipeline.io.sinks import DELIVERY_ID, NamedSink, Sink, sink_of, topic_sink
from nearcast.pipeline.io.topic_frames import TOPIC, change_id, change_records
from nearcast.pipeline.settings import PipelineSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EXACT = ("parquet", "delta")


def change_sink(settings: PipelineSettings) -> Sink:
    """The sink that the settings name."""
    if settings.sink_format in _EXACT:
        return sink_of(settings)
    if settings.sink_format == TOPIC:
        return topic_sink(settings, change_records)
    return NamedSink(settings.sink_format, settings.sink, settings.sink_options, with_change_id)


def with_change_id(changes: DataFrame, batch: int) -> DataFrame:
    return changes.withColumn(DELIVERY_ID, change_id(batch))
