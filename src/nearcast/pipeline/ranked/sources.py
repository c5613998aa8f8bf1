"""The two streams of a ranked stream as one: messages, and changes of subscriptions, so that a batch has one place in both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nearcast.errors import PipelineError
from nearcast.pipeline.ranked.cleaning_rows import CHANGE, CHANGE_COLUMNS, MESSAGE
from nearcast.pipeline.settings_table import PipelineSettings
from nearcast.pipeline.sources import read_messages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WHOLE = ("int", "smallint", "tinyint")


def read_rows(session: SparkSession, settings: PipelineSettings, is_stream: bool = True) -> DataFrame:
    """Rows with a message or with a change of a subscription."""
    return rows_of(read_messages(session, settings, is_stream), read_changes(session, settings, is_stream))


def read_changes(session: SparkSession, settings: PipelineSettings, is_stream: bool) -> DataFrame:
    """Changes of ranked subscriptions; without a column `change` all rows are to be filed."""
    if not settings.changes:
        raise PipelineError("no changes of subscriptions were named; give --set changes=PATH")
    reader: Any = session.readStream if is_stream else session.read
    kind, options = settings.changes_format, {str(name): str(value) for name, value in settings.changes_options.items()}
    schema: Any = settings.changes_schema
    if not schema and is_stream and kind == "parquet":
        schema = session.read.options(**options).parquet(settings.changes).schema
    if schema:
        reader = reader.schema(schema)
    return named_changes(reader.format(kind).options(**options).load(settings.changes))


def named_changes(frame: DataFrame) -> DataFrame:
    """The columns of changes, and no others, with types that are the same whatever the source has."""
    from pyspark.sql import functions as F  # noqa: N812

    missing = [name for name in ("id", "keywords", "x", "y") if name not in frame.columns]
    if missing:
        raise PipelineError(f"the changes have no columns {missing}; they have {frame.columns}: expected id, keywords, x, y")
    if "change" not in frame.columns:
        frame = frame.withColumn("change", F.lit(1))
    kept = {name: F.col(name) for name in CHANGE_COLUMNS if name in frame.columns}
    if frame.schema["id"].dataType.simpleString() in _WHOLE:
        kept["id"] = F.col("id").cast("long")
    # Where one of the two is not given, it is that of everybody else.
    for name, default, kind in (("k", 20, "int"), ("spatial_weight", 0.5, "double")):
        kept[name] = F.coalesce(F.col(name), F.lit(default)).cast(kind) if name in kept else F.lit(default).cast(kind)
    kept["change"] = F.col("change").cast("tinyint")
    return frame.select(*[column.alias(name) for name, column in kept.items()])


def rows_of(messages: DataFrame, changes: DataFrame) -> DataFrame:
    """Both as rows of one frame."""
    from pyspark.sql import functions as F  # noqa: N812

    def empty(frame: DataFrame) -> str:
        return frame.select(F.struct(*frame.columns).alias("row")).schema["row"].dataType.simpleString()

    kinds = {MESSAGE: empty(messages), CHANGE: empty(changes)}
    as_messages = messages.select(F.struct(*messages.columns).alias(MESSAGE), F.lit(None).cast(kinds[CHANGE]).alias(CHANGE))
    as_changes = changes.select(F.lit(None).cast(kinds[MESSAGE]).alias(MESSAGE), F.struct(*changes.columns).alias(CHANGE))
    return as_messages.unionByName(as_changes)
