"""Streams beside that of the messages: changes of subscriptions, moves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from nearcast.errors import PipelineError
from nearcast.pipeline.io.topic_frames import TOPIC, read_topic_changes, read_topic_moves
from nearcast.pipeline.settings import PipelineSettings
from nearcast.topics.topic import read_address

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WHOLE = ("int", "smallint", "tinyint")


def read_side(session: SparkSession, settings: PipelineSettings, name: str, what: str, is_stream: bool) -> DataFrame:
    """The rows that the settings `name`, `name`_format, … say."""
    path, kind, given, schema = (getattr(settings, f"{name}{end}") for end in ("", "_format", "_options", "_schema"))
    if not path:
        raise PipelineError(f"no {what} were named; give --set {name}=PATH")
    reader: Any = session.readStream if is_stream else session.read
    options = {str(option): str(value) for option, value in given.items()}
    if kind == TOPIC:
        read = read_topic_moves if name == "moves" else read_topic_changes
        return read(reader, read_address(path), options, schema)
    if not schema and is_stream and kind == "parquet":
        # A stream of files asks for the schema first; the files that are there have it.
        schema = session.read.options(**options).parquet(path).schema
    if schema:
        reader = reader.schema(schema)
    found: DataFrame = reader.format(kind).options(**options).load(path)
    return found


def chosen(frame: DataFrame, names: Iterable[str]) -> dict[str, Any]:
    """Those of the columns that a frame has; ids that are whole numbers as long."""
    from pyspark.sql import functions as F  # noqa: N812

    kept = {name: F.col(name) for name in names if name in frame.columns}
    if "id" in kept and frame.schema["id"].dataType.simpleString() in _WHOLE:
        kept["id"] = F.col("id").cast("long")
    return kept


def with_change(frame: DataFrame) -> DataFrame:
    """Changes of which each says what to do; without a column `change` all rows are to be filed."""
    from pyspark.sql import functions as F  # noqa: N812

    change = F.col("change") if "change" in frame.columns else F.lit(1)
    # What is no such number becomes null, and is set aside with its row; a cast would end the stream.
    return frame.withColumn("change", change.try_cast("tinyint"))
