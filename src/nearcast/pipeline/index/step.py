"""Step "index": executors build the shards of a table of subscriptions, which are published as one version."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearcast.pipeline.index.open_version import open_plan_on_host
from nearcast.pipeline.index.shard_folder import SHARD_LIST, WORDS, OpenShard, build_shard, route_rows, words_table
from nearcast.pipeline.index.version import (
    BASES,
    IndexVersion,
    ShardBase,
    collect_versions,
    current_number,
    new_number,
    publish_index,
    routing_folder,
    rows_folder,
)
from nearcast.pipeline.plan.shard_plan import PLANS, publish_plan
from nearcast.pipeline.plan.step import plan_shards
from nearcast.pipeline.prepare.keyword_statistics import current_statistics
from nearcast.pipeline.prepare.step import read_history
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.store import Store, needed_version, version_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OnProgress = Callable[[str], None]
Step = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

REASON = "reason"
SUMMARY = "shard int, folder string, n_subscriptions long, n_bytes long, has_wordless boolean"


def build_index(
    session: SparkSession,
    subscriptions: DataFrame,
    settings: PipelineSettings,
    on_progress: OnProgress = lambda stage: None,
    topic_position: str = "",
) -> IndexVersion:
    """Build every shard of the current plan and publish them as the next version.

    `topic_position`: the position in the topic of changes up to which the subscriptions include them.
    """
    store = settings.store
    replaced = current_number(store)
    plan_number = needed_version(store, PLANS, "plan")
    number = new_number(store)
    on_progress("routing subscriptions to shards")
    rows = rows_folder(number)
    route_subscriptions(subscriptions, settings, plan_number).write.mode("overwrite").parquet(store.address(rows))
    on_progress("building shards")
    version = _build_shards(session, settings, plan_number, number, read_accepted_rows(session, store, rows))
    version = replace(version, taken=topic_position)
    publish_index(store, version, replaced)
    collect_versions(store, settings.keep_versions)
    return version


def route_subscriptions(subscriptions: DataFrame, settings: PipelineSettings, plan_number: int) -> DataFrame:
    """Subscriptions, one per id, with their shards. Rows that cannot be used have a reason instead."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    # Of several rows with one id every run uses the same one, whatever their order.
    order = F.xxhash64(*[F.col(name) for name in subscriptions.columns])
    ranked = subscriptions.withColumn("_rank", F.row_number().over(Window.partitionBy("id").orderBy(order)))
    single = ranked.where("_rank = 1").drop("_rank")
    schema = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in subscriptions.schema.fields)
    step = _routing_step(settings.store, settings.shared_dir, plan_number)
    return single.mapInArrow(step, f"{schema}, {SHARD_LIST} array<int>, {REASON} string")


def _routing_step(store: Store, shared_dir: str, plan_number: int) -> Step:
    def route_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = open_plan_on_host(store, shared_dir, plan_number)
        order = plan.word_order()
        for batch in batches:
            table = pa.Table.from_batches([batch])
            routed = route_rows(table, plan, order)
            good = routed.rows.append_column(REASON, pa.nulls(routed.rows.num_rows, pa.string()))
            yield from good.combine_chunks().to_batches()
            if routed.rejected:
                bad = table.take(pa.array([row for row, _ in routed.rejected]))
                bad = bad.append_column(SHARD_LIST, pa.nulls(bad.num_rows, pa.list_(pa.int32())))
                reasons = pa.array([reason for _, reason in routed.rejected], pa.string())
                yield from bad.append_column(REASON, reasons).combine_chunks().to_batches()

    return route_batches


def read_accepted_rows(session: SparkSession, store: Store, rows: str) -> DataFrame:
    """The usable rows of a stored table of routed subscriptions, with their shards."""
    from pyspark.sql import functions as F  # noqa: N812

    return session.read.parquet(store.address(rows)).where(F.col(REASON).isNull()).drop(REASON)


def _build_shards(
    session: SparkSession, settings: PipelineSettings, plan_number: int, number: int, rows: DataFrame
) -> IndexVersion:
    from pyspark.sql import functions as F  # noqa: N812

    store = settings.store
    plan = open_plan_on_host(store, settings.shared_dir, plan_number)
    by_shard = rows.withColumn("_shard", F.explode(SHARD_LIST)).repartitionById(plan.n_shards, "_shard")
    built = by_shard.mapInArrow(_building_step(settings, plan_number, number), SUMMARY).collect()
    shards = [ShardBase("", 0, 0)] * plan.n_shards
    for row in built:
        shards[row["shard"]] = ShardBase(row["folder"], row["n_subscriptions"], row["n_bytes"])
    words = [store.read_table(f"{shard.folder}/{WORDS}") for shard in shards if shard.folder]
    store.write_table(f"{routing_folder(number)}/{WORDS}", words_table(plan, words))
    id_type = "long" if rows.schema["id"].dataType.simpleString() == "bigint" else "string"
    has_wordless = any(row["has_wordless"] for row in built)
    return IndexVersion(number, number, number, plan_number, plan.n_shards, id_type, tuple(shards), has_wordless=has_wordless)


def _building_step(settings: PipelineSettings, plan_number: int, number: int) -> Step:
    store = settings.store

    def build_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        all_batches = list(batches)
        if not all_batches:
            return
        table = pa.Table.from_batches(all_batches)
        plan = open_plan_on_host(store, settings.shared_dir, plan_number)
        for shard in np.unique(table["_shard"].to_numpy()).tolist():
            rows = table.filter(pc.equal(table["_shard"], shard)).drop_columns(["_shard"]).combine_chunks()
            built = build_shard(shard, rows, plan, settings.index, settings.index_parameters, read_history(settings))
            routed = route_rows(rows.drop_columns([SHARD_LIST]), plan, plan.word_order())
            yield store_shard(store, number, built, routed.words, routed.has_wordless)

    return build_batches


def store_shard(store: Store, number: int, shard: OpenShard, words: pa.Table | None, has_wordless: bool) -> pa.RecordBatch:
    """Store a shard under a unique name, because a task may run twice; returns its summary."""
    name = f"{BASES}/{version_name(number)}/{shard.number}-{uuid.uuid4().hex}"
    with store.new_folder(name) as folder:
        shard.save(folder)
        if words is not None:
            pq.write_table(words, folder / WORDS)
    stats = shard.matcher.stats()
    values: list[Any] = [shard.number, name, stats["subscriptions"], stats["bytes"], has_wordless]
    types = (pa.int32(), pa.string(), pa.int64(), pa.int64(), pa.bool_())
    names = ["shard", "folder", "n_subscriptions", "n_bytes", "has_wordless"]
    return pa.record_batch([pa.array([value], kind) for value, kind in zip(values, types, strict=True)], names=names)


SUBSCRIPTION_SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "keywords": pa.list_(pa.string()),
        "interest": pa.string(),
        "region": pa.string(),
        **dict.fromkeys(("x0", "y0", "x1", "y1"), pa.float64()),
    }
)
"""The subscriptions of a topic; their ids are strings."""


def publish_empty_index(settings: PipelineSettings) -> IndexVersion:
    """Publish an index of empty shards, whose subscriptions will come as changes. The plan is by id: nothing else is known."""
    store = settings.store
    messages = pa.table({"id": pa.array([], pa.int64()), "keywords": pa.array([], pa.list_(pa.string()))})
    for name in ("x", "y"):
        messages = messages.append_column(name, pa.array([], pa.float64()))
    by_id = replace(settings, mechanism="hashing")
    plan = plan_shards(SUBSCRIPTION_SCHEMA.empty_table(), messages, current_statistics(store, settings.analysis), by_id)
    plan_number, number, replaced = publish_plan(store, plan), new_number(store), current_number(store)
    rows = SUBSCRIPTION_SCHEMA.append(pa.field(SHARD_LIST, pa.list_(pa.int32()))).append(pa.field(REASON, pa.string()))
    store.write_table(f"{rows_folder(number)}/rows.parquet", rows.empty_table())
    store.write_table(f"{routing_folder(number)}/{WORDS}", words_table(plan, []))
    shards = (ShardBase("", 0, 0),) * plan.n_shards
    version = IndexVersion(number, number, number, plan_number, plan.n_shards, "string", shards)
    publish_index(store, version, replaced)
    return version
