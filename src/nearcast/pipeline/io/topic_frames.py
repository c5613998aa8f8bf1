"""Topics as Spark reads and writes them: lines of files or values of Kafka, without or with their CloudEvents envelope.

The ids of deliveries and changes are the same whenever a row is written again, so readers can detect repeats.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearcast.errors import PipelineError
from nearcast.pipeline.prepare.cleaning import CORRUPT
from nearcast.topics.files import ENDING, FileTopic
from nearcast.topics.records import CHANGE, ENDED, MATCH, MESSAGE, MOVE, PUT
from nearcast.topics.topic import TopicAddress

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def delivery_id() -> Column:
    """The id of a delivery: a hash of the message and the subscription, the same whenever the row is written."""
    from pyspark.sql import functions as F  # noqa: N812

    return _digest(F.struct("message_id", "subscription_id"))


def change_id(batch: int) -> Column:
    """The id of a change: a hash that includes the batch, because only different batches can repeat a change in one tick."""
    from pyspark.sql import functions as F  # noqa: N812

    return _digest(F.struct(F.lit(batch).alias("batch"), "tick", "subscription_id", "message_id", "change"))


def _digest(row: Column) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    return F.sha2(F.to_json(row), 256)


TOPIC = "topic"
"""The format of messages, changes and deliveries that are records of a topic."""
_BOX = "x0 double, y0 double, x1 double, y1 double"
MESSAGE_SCHEMA = f"id string, keywords array<string>, text string, time double, expires double, x double, y double, {_BOX}"
CHANGE_SCHEMA = (
    "id string, keywords array<string>, interest string, region string, time double, x double, y double, "
    f"{_BOX}, k int, spatial_weight double"
)
MOVE_SCHEMA = f"id string, region string, time double, {_BOX}"
"""The columns of messages, subscriptions and moves in topics, unless the settings have a schema."""


def read_topic_messages(reader: Any, address: TopicAddress, options: Mapping[str, str], schema: str) -> DataFrame:
    """The messages of a topic as a table; `reader` is that of a batch or of a stream."""
    from pyspark.sql import functions as F  # noqa: N812

    parsed = _events(reader, address, options, schema or MESSAGE_SCHEMA)
    is_message = F.coalesce(F.col("event.type") == MESSAGE, F.lit(False)) & F.col("event.data").isNotNull()
    corrupt = F.when(is_message, F.col(f"event.{CORRUPT}")).otherwise(F.col("value"))
    return parsed.select("event.data.*", corrupt.alias(CORRUPT))


def read_topic_changes(reader: Any, address: TopicAddress, options: Mapping[str, str], schema: str) -> DataFrame:
    """Changes of subscriptions with a column `change` (1 or -1). Records of other types are skipped.

    A value that is not a record has no id and is quarantined for that.
    """
    from pyspark.sql import functions as F  # noqa: N812

    parsed = _events(reader, address, options, schema or CHANGE_SCHEMA)
    change = F.when(F.col("event.type") == PUT, 1).when(F.col("event.type") == ENDED, -1)
    return parsed.where(change.isNotNull() | F.col("event.type").isNull()).select("event.data.*", change.alias("change"))


def read_topic_moves(reader: Any, address: TopicAddress, options: Mapping[str, str], schema: str) -> DataFrame:
    """Moves of subscriptions. Records of other types are skipped; a value that is not a record has no id."""
    from pyspark.sql import functions as F  # noqa: N812

    parsed = _events(reader, address, options, schema or MOVE_SCHEMA)
    return parsed.where(F.coalesce(F.col("event.type") == MOVE, F.lit(True))).select("event.data.*")


def _events(reader: Any, address: TopicAddress, options: Mapping[str, str], schema: str) -> DataFrame:
    """Each record as text, and as an event whose data has the schema."""
    from pyspark.sql import functions as F  # noqa: N812

    envelope = f"type string, data struct<{schema}>, {CORRUPT} string"
    parsing = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    line = F.col("value").cast("string")
    return _loaded(reader, address, options).select(line.alias("value"), F.from_json(line, envelope, parsing).alias("event"))


def _loaded(reader: Any, address: TopicAddress, options: Mapping[str, str]) -> DataFrame:
    loaded: DataFrame
    if not address.is_kafka:
        # A stream of files requires that the folder exists.
        FileTopic(Path(address.name))
        loaded = reader.format("text").options(pathGlobFilter=f"*{ENDING}", **options).load(address.name)
        return loaded
    all_options = {"startingOffsets": "earliest", "subscribe": address.name, **options}
    loaded = with_connector(
        reader.format("kafka").option("kafka.bootstrap.servers", address.servers).options(**all_options).load
    )
    return loaded


def with_connector(load: Any) -> Any:
    """The result of `load`; a PipelineError with a remedy if Spark has no Kafka connector."""
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


def delivery_records(deliveries: DataFrame, stream: str, batch: int) -> DataFrame:
    """Deliveries as records; `batch` does not matter."""
    from pyspark.sql import functions as F  # noqa: N812

    data = F.struct(F.col("subscription_id").cast("string").alias("subscription"), _text("message_id"))
    return _records(deliveries, stream, MATCH, delivery_id(), data)


def change_records(changes: DataFrame, stream: str, batch: int) -> DataFrame:
    """Changes of lists and results as records."""
    from pyspark.sql import functions as F  # noqa: N812

    values = [name for name in ("change", "score") if name in changes.columns]
    data = F.struct("tick", F.col("subscription_id").cast("string").alias("subscription"), _text("message_id"), *values)
    return _records(changes, stream, CHANGE, change_id(batch), data)


def _records(frame: DataFrame, stream: str, type: str, id: Column, data: Column) -> DataFrame:
    """Rows as records: `key` is the subscription, `value` the JSON."""
    from pyspark.sql import functions as F  # noqa: N812

    subscription = F.col("subscription_id").cast("string")
    event = F.struct(
        F.lit("1.0").alias("specversion"),
        id.alias("id"),
        F.lit(f"/streams/{stream}").alias("source"),
        F.lit(type).alias("type"),
        subscription.alias("subject"),
        F.lit("application/json").alias("datacontenttype"),
        data.alias("data"),
    )
    return frame.select(subscription.alias("key"), F.to_json(event).alias("value"))


def _text(name: str) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    return F.col(name).cast("string").alias(name)
