"""Topics as Spark reads and writes them: lines of files or values of Kafka, their CloudEvents envelope taken off or put on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearcast.errors import PipelineError
from nearcast.pipeline.cleaning import CORRUPT
from nearcast.topics.files import ENDING, FileTopic
from nearcast.topics.records import MATCH, MESSAGE
from nearcast.topics.topic import TopicAddress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOPIC = "topic"
"""The format of messages, changes and deliveries that are records of a topic."""
MESSAGE_SCHEMA = (
    "id string, keywords array<string>, text string, time double, "
    "x double, y double, x0 double, y0 double, x1 double, y1 double"
)
"""What a message in a topic may have, unless the settings say otherwise."""


def read_topic_messages(reader: Any, address: TopicAddress, options: Mapping[str, str], schema: str) -> DataFrame:
    """Messages of a topic under the names of their table; `reader` is that of a batch or of a stream."""
    from pyspark.sql import functions as F  # noqa: N812

    columns = schema or MESSAGE_SCHEMA
    envelope = f"type string, data struct<{columns}>, {CORRUPT} string"
    parsing = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    line = F.col("value").cast("string")
    parsed = _loaded(reader, address, options).select(line.alias("value"), F.from_json(line, envelope, parsing).alias("event"))
    is_message = F.coalesce(F.col("event.type") == MESSAGE, F.lit(False)) & F.col("event.data").isNotNull()
    corrupt = F.when(is_message, F.col(f"event.{CORRUPT}")).otherwise(F.col("value"))
    return parsed.select("event.data.*", corrupt.alias(CORRUPT))


def _loaded(reader: Any, address: TopicAddress, options: Mapping[str, str]) -> DataFrame:
    loaded: DataFrame
    if not address.is_kafka:
        # A stream of files asks for the folder.
        FileTopic(Path(address.name))
        loaded = reader.format("text").options(pathGlobFilter=f"*{ENDING}", **options).load(address.name)
        return loaded
    chosen = {"startingOffsets": "earliest", "subscribe": address.name, **options}
    loaded = with_connector(reader.format("kafka").option("kafka.bootstrap.servers", address.servers).options(**chosen).load)
    return loaded


def with_connector(load: Any) -> Any:
    """What `load` gives; a PipelineError with the way out if Spark has no Kafka connector."""
    from pyspark.errors import AnalysisException

    try:
        return load()
    except AnalysisException as error:
        if "kafka" not in str(error).lower() or "data source" not in str(error).lower():
            raise
        raise PipelineError(
            "Spark has no Kafka connector; give its jars with --set kafka_jars=FOLDER, or let Spark fetch them with "
            "--set kafka_jars=org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION"
        ) from None


def delivery_records(deliveries: DataFrame, stream: str) -> DataFrame:
    """Deliveries as records: `key` is the subscription, `value` the JSON; the id follows from message and subscription."""
    from pyspark.sql import functions as F  # noqa: N812

    message, subscription = F.col("message_id").cast("string"), F.col("subscription_id").cast("string")
    event = F.struct(
        F.lit("1.0").alias("specversion"),
        F.sha2(F.to_json(F.struct("message_id", "subscription_id")), 256).alias("id"),
        F.lit(f"/streams/{stream}").alias("source"),
        F.lit(MATCH).alias("type"),
        subscription.alias("subject"),
        F.lit("application/json").alias("datacontenttype"),
        F.struct(subscription.alias("subscription"), message.alias("message_id")).alias("data"),
    )
    return deliveries.select(subscription.alias("key"), F.to_json(event).alias("value"))
