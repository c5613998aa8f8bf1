"""Tables from any format of Spark, as a batch or a stream. Records that do not parse have a column of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nearcast.columns.schemas import SUBSCRIPTION_COLUMNS
from nearcast.errors import PipelineError
from nearcast.pipeline.index.deltas import current_rows
from nearcast.pipeline.index.version import current_index
from nearcast.pipeline.io.topic_frames import TOPIC, read_topic_messages, with_connector
from nearcast.pipeline.prepare.cleaning import CORRUPT, RAW_COLUMNS
from nearcast.pipeline.settings import PipelineSettings
from nearcast.topics.topic import read_address

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARSED = ("json", "csv")


def read_messages(
    session: SparkSession, settings: PipelineSettings, is_stream: bool, names: Sequence[str] = RAW_COLUMNS
) -> DataFrame:
    """Raw messages with the columns `names`, as the settings map them; others are dropped."""
    reader: Any = session.readStream if is_stream else session.read
    kind, schema = settings.messages_format, settings.messages_schema
    options = {str(name): str(value) for name, value in settings.messages_options.items()}
    if kind == TOPIC:
        messages = read_topic_messages(reader, read_address(settings.messages), options, schema)
        return _select(messages, settings.columns, names)
    if kind == "kafka":
        values = with_connector(reader.format("kafka").options(**options).load)
        return _select(_kafka_values(values, _require_schema(schema, kind)), settings.columns, names)
    if kind in _PARSED:
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT, **options}
        reader = reader.schema(f"{_require_schema(schema, kind)}, {CORRUPT} string")
    elif schema:
        reader = reader.schema(schema)
    elif is_stream and kind == "parquet":
        # A stream of files needs a schema in advance; existing files have it.
        reader = reader.schema(session.read.options(**options).parquet(settings.messages).schema)
    loaded = reader.format(kind).options(**options)
    return _select(loaded.load(settings.messages) if settings.messages else loaded.load(), settings.columns, names)


def read_subscriptions(session: SparkSession, settings: PipelineSettings) -> DataFrame:
    """The subscriptions, with the columns that engines know."""
    if settings.subscriptions_format == "index":
        return current_rows(session, settings, current_index(settings.store))
    if not settings.subscriptions:
        raise PipelineError("no subscriptions were named; give --set subscriptions=PATH")
    options = {str(name): str(value) for name, value in settings.subscriptions_options.items()}
    rows = session.read.format(settings.subscriptions_format).options(**options).load(settings.subscriptions)
    return _cast_ids(rows.select(*[name for name in rows.columns if name in SUBSCRIPTION_COLUMNS]))


def _kafka_values(frame: DataFrame, schema: str) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    parsed = F.from_json(F.col("value").cast("string"), f"{schema}, {CORRUPT} string", options)
    return frame.select(parsed.alias("value")).select("value.*")


def _select(frame: DataFrame, columns: Mapping[str, Any], names: Sequence[str]) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    missing = [theirs for theirs in columns.values() if theirs not in frame.columns]
    if missing:
        raise PipelineError(f"the messages have no columns {missing}; they have {frame.columns}: correct 'columns'")
    mapped = {name: columns.get(name, name) for name in names}
    present = {ours: theirs for ours, theirs in mapped.items() if theirs in frame.columns}
    if "id" not in present:
        raise PipelineError(f"the messages have no column 'id'; they have {frame.columns}: name it with columns = {{id = ...}}")
    return _cast_ids(frame.select(*[F.col(theirs).alias(ours) for ours, theirs in present.items()]))


def _cast_ids(frame: DataFrame) -> DataFrame:
    """Ids as long or string, whatever integer type the source has."""
    kind = frame.schema["id"].dataType.simpleString()
    return frame.withColumn("id", frame["id"].cast("long")) if kind in ("int", "smallint", "tinyint") else frame


def _require_schema(schema: str, kind: str) -> str:
    if not schema:
        raise PipelineError(f"format {kind!r} needs messages_schema, for example 'id long, text string, x double, y double'")
    return schema
