"""Step "prepare": raw messages into a clean table, a quarantine, keyword statistics and a sample of history.

Reads the source, writes `prepared/` of the store.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from nearcast.pipeline.prepare.cleaning import QUARANTINE_SCHEMA, Cleaner
from nearcast.pipeline.prepare.keyword_statistics import KeywordStatistics, publish_statistics
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MESSAGES, QUARANTINE, HISTORY = "prepared/messages", "prepared/quarantine", "prepared/history"
STATISTICS = "prepared/statistics.json"
_BAD = "quarantined"


@dataclass(frozen=True, slots=True)
class PrepareSummary:
    """The counts of a run: read = kept + quarantined + repeated."""

    read: int
    kept: int
    quarantined: int
    repeated: int
    reasons: dict[str, int]
    keywords_per_message: float
    distinct_keywords: int
    bounds: list[float]
    keyword_version: int


def clean_messages(raw: DataFrame, cleaner: Cleaner) -> DataFrame:
    """Clean messages, and quarantined rows: those have only the column `quarantined` (id, reason, row)."""
    fields = {field.name: field.dataType.simpleString() for field in raw.schema.fields}
    keywords = fields.get("keywords", "array<string>")
    coordinates = ("x0", "y0", "x1", "y1") if "x0" in fields else ("x", "y")
    columns = {"id": fields["id"], "keywords": keywords, **dict.fromkeys(coordinates, "double")}
    if "time" in fields:
        columns["time"] = fields["time"]
    schema = ", ".join(f"{name} {kind}" for name, kind in columns.items())

    def clean_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            cleaned = cleaner.clean(pa.Table.from_batches([batch]))
            yield from _with_quarantine(cleaned.messages, cleaned.quarantine).to_batches()

    return raw.mapInArrow(clean_batches, f"{schema}, {_BAD} struct<id: string, reason: string, row: string>")


def prepare(session: SparkSession, raw: DataFrame, settings: PipelineSettings) -> PrepareSummary:
    """Run the step; replaces the contents of `prepared/`."""
    from pyspark.sql import functions as F  # noqa: N812

    store = settings.store
    # Cleaning is the expensive part: done once, into a temporary folder that the rest reads.
    staging = f"prepared/.staging-{uuid.uuid4().hex}"
    try:
        clean_messages(raw, Cleaner(settings.space, settings.analysis.to_dict())).write.parquet(store.address(staging))
        staged = session.read.parquet(store.address(staging))
        bad = staged.where(F.col(_BAD).isNotNull()).select(f"{_BAD}.*")
        bad.write.mode("overwrite").parquet(store.address(QUARANTINE))
        good = staged.where(F.col(_BAD).isNull()).drop(_BAD)
        _first_of_each_id(good).write.mode("overwrite").parquet(store.address(MESSAGES))
        n_good = good.count()
    finally:
        store.delete(staging)
    return _write_statistics(session, settings, store, n_good)


def _write_statistics(session: SparkSession, settings: PipelineSettings, store: Store, n_good: int) -> PrepareSummary:
    """Count the clean messages; write keyword statistics, the sample of history and the summary."""
    from pyspark.sql import functions as F  # noqa: N812

    messages = session.read.parquet(store.address(MESSAGES))
    low, high = (("x0", "y0"), ("x1", "y1")) if "x0" in messages.columns else (("x", "y"), ("x", "y"))
    measured = [*[F.min(name) for name in low], *[F.max(name) for name in high], F.avg(F.size("keywords")), F.count("*")]
    extent = messages.agg(*measured).first()
    assert extent is not None
    kept = int(extent[5])
    statistics = keyword_statistics(messages, kept, settings)
    version = publish_statistics(store, statistics, settings.analysis)
    # The same rows on every run: the smallest by a hash of the id.
    history = messages.orderBy(F.xxhash64("id")).limit(settings.history_rows)
    history.coalesce(1).write.mode("overwrite").parquet(store.address(HISTORY))
    quarantine = session.read.parquet(store.address(QUARANTINE))
    reasons = {row["kind"]: row["count"] for row in _kinds_of_reasons(quarantine).collect()}
    prepared = PrepareSummary(
        read=n_good + sum(reasons.values()),
        kept=kept,
        quarantined=sum(reasons.values()),
        repeated=n_good - kept,
        reasons=reasons,
        keywords_per_message=float(extent[4] or 0.0),
        distinct_keywords=statistics.keywords.n,
        bounds=[float(value) for value in extent[:4] if value is not None],
        keyword_version=version,
    )
    store.write_json(STATISTICS, asdict(prepared))
    return prepared


def keyword_statistics(messages: DataFrame, n_messages: int, settings: PipelineSettings) -> KeywordStatistics:
    """The number of messages with each keyword."""
    from pyspark.sql import functions as F  # noqa: N812

    words = messages.select(F.explode(F.array_distinct("keywords")).alias("keyword"))
    counts = words.groupBy("keyword").count().orderBy(F.desc("count"), "keyword").toArrow()
    frequency = counts["count"].to_numpy().astype(np.int64)
    return KeywordStatistics.from_counts(counts["keyword"].combine_chunks(), frequency, n_messages, settings.analysis)


def _first_of_each_id(messages: DataFrame) -> DataFrame:
    """One row per id: the earliest, or without times an arbitrary but reproducible one."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    order = [F.col("time")] if "time" in messages.columns else []
    order.append(F.xxhash64(*[F.col(name) for name in messages.columns]))
    ranked = messages.withColumn("_rank", F.row_number().over(Window.partitionBy("id").orderBy(*order)))
    return ranked.where(F.col("_rank") == 1).drop("_rank")


def _kinds_of_reasons(quarantine: DataFrame) -> DataFrame:
    """Counts of the reasons, without the parts that differ from row to row (numbers, quoted values)."""
    from pyspark.sql import functions as F  # noqa: N812

    kind = F.regexp_replace(F.regexp_replace("reason", r"'[^']*'|\([^)]*\)", "…"), r"\d+", "#")
    return quarantine.groupBy(kind.alias("kind")).count().orderBy(F.desc("count"), "kind")


def _with_quarantine(messages: pa.Table, quarantine: pa.Table) -> pa.Table:
    """One table of both: a row is a message or a quarantined row."""
    kind = pa.struct(list(QUARANTINE_SCHEMA))
    with_messages = messages.append_column(_BAD, pa.nulls(messages.num_rows, kind))
    if quarantine.num_rows == 0:
        return with_messages.combine_chunks()
    nulls = [pa.nulls(quarantine.num_rows, column.type) for column in messages.schema]
    bad = pa.StructArray.from_arrays([column.combine_chunks() for column in quarantine.columns], fields=list(kind))
    with_bad = pa.table([*nulls, bad], schema=with_messages.schema)
    return pa.concat_tables([with_messages, with_bad]).combine_chunks()


def read_history(settings: PipelineSettings) -> pa.Table | None:
    """The sample of past messages without their times; None before the first run of this step."""
    if not settings.store.exists(HISTORY):
        return None
    history = settings.store.read_table(HISTORY)
    return history.select([name for name in history.column_names if name != "time"])
