"""The first slice of the pipeline: messages of a Parquet folder, matched by a saved index, deliveries into Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearcast.pipeline.match_step import match_step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What the step reads; other columns of a source stay behind.
MESSAGE_COLUMNS = ("id", "keywords", "text", "x", "y", "x0", "y0", "x1", "y1")


def match_messages(messages: DataFrame, index_folder: str, subscription_id_type: str) -> DataFrame:
    """The deliveries of a DataFrame of messages; `subscription_id_type` is "long" or "string"."""
    wanted = [name for name in messages.columns if name in MESSAGE_COLUMNS]
    message_id_type = messages.schema["id"].dataType.simpleString()
    schema = f"message_id {message_id_type}, subscription_id {subscription_id_type}"
    return messages.select(*wanted).mapInArrow(match_step(index_folder), schema)


def match_files(session: SparkSession, messages: str, index_folder: str, subscription_id_type: str, out: str) -> None:
    """Match the Parquet files at `messages` and write the deliveries to the folder `out`, replacing it."""
    deliveries = match_messages(session.read.parquet(messages), index_folder, subscription_id_type)
    deliveries.write.mode("overwrite").parquet(out)
