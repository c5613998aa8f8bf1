"""Step "index": subscriptions into shards built by executors, published as one version."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearcast.pipeline.index.open_version import open_plan_here
from nearcast.pipeline.index.shard_folder import REACH, WORDS, OpenShard, build_shard, route_rows, words_table
from nearcast.pipeline.index.version import (
    BASES,
    IndexVersion,
    ShardBase,
    current_number,
    new_number,
    publish_index,
    routing_folder,
    rows_folder,
)
from nearcast.pipeline.index.version_leases import collect_versions
from nearcast.pipeline.plan.shard_plan import AREA as PLANS
from nearcast.pipeline.prepare.step import HISTORY
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.store import Store
from nearcast.pipeline.versions import needed_version, version_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Say = Callable[[str], None]
Step = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

REASON = "reason"
SUMMARY = "shard int, folder string, n_subscriptions long, n_bytes long, has_wordless boolean"


def build_index(
    session: SparkSession,
    subscriptions: DataFrame,
    settings: PipelineSettings,
    say: Say = lambda stage: None,
    taken: str = "",
) -> IndexVersion:
    """Build every shard of the plan in force and publish them as the next version.

    `taken`: the position in the topic of changes up to which the subscriptions have them.
    """
    store = settings.store
    replaced = current_number(store)
    plan_number = needed_version(store, PLANS, "plan")
    number = new_number(store)
    say("routing subscriptions to shards")
    rows = rows_folder(number)
    route_subscriptions(subscriptions, settings, plan_number).write.mode("overwrite").parquet(store.address(rows))
    say("building shards")
    version = _build_shards(session, settings, plan_number, number, accepted_rows(session, store, rows))
    version = replace(version, taken=taken)
    publish_index(store, version, replaced)
    collect_versions(store, settings.keep_versions)
    return version


def route_subscriptions(subscriptions: DataFrame, settings: PipelineSettings, plan_number: int) -> DataFrame:
    """Subscriptions, one per id, with their shards; rows that cannot be used have a reason instead."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    # Of several rows with one id the same is taken on every run, whatever order they come in.
    order = F.xxhash64(*[F.col(name) for name in subscriptions.columns])
    ranked = subscriptions.withColumn("_place", F.row_number().over(Window.partitionBy("id").orderBy(order)))
    single = ranked.where("_place = 1").drop("_place")
    schema = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in subscriptions.schema.fields)
    step = _routing_step(settings.store, settings.shared_dir, plan_number)
    return single.mapInArrow(step, f"{schema}, {REACH} array<int>, {REASON} string")


def _routing_step(store: Store, shared_dir: str, plan_number: int) -> Step:
    def route_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = open_plan_here(store, shared_dir, plan_number)
        order = plan.word_order()
        for batch in batches:
            table = pa.Table.from_batches([batch])
            routed = route_rows(table, plan, order)
            good = routed.rows.append_column(REASON, pa.nulls(routed.rows.num_rows, pa.string()))
            yield from good.combine_chunks().to_batches()
            if routed.rejected:
                bad = table.take(pa.array([row for row, _ in routed.rejected]))
                bad = bad.append_column(REACH, pa.nulls(bad.num_rows, pa.list_(pa.int32())))
                reasons = pa.array([reason for _, reason in routed.rejected], pa.string())
                yield from bad.append_column(REASON, reasons).combine_chunks().to_batches()

    return route_batches


def accepted_rows(session: SparkSession, store: Store, rows: str) -> DataFrame:
    """The usable rows of a table of routed subscriptions, with their shards."""
    from pyspark.sql import functions as F  # noqa: N812

    return session.read.parquet(store.address(rows)).where(F.col(REASON).isNull()).drop(REASON)


def _build_shards(
    session: SparkSession, settings: PipelineSettings, plan_number: int, number: int, rows: DataFrame
) -> IndexVersion:
    from pyspark.sql import functions as F  # noqa: N812

    store = settings.store
    plan = open_plan_here(store, settings.shared_dir, plan_number)
    spread = rows.withColumn("_shard", F.explode(REACH)).repartitionById(plan.n_shards, "_shard")
    built = spread.mapInArrow(_building_step(settings, plan_number, number), SUMMARY).collect()
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
        listed = list(batches)
        if not listed:
            return
        table = pa.Table.from_batches(listed)
        plan = open_plan_here(store, settings.shared_dir, plan_number)
        for shard in np.unique(table["_shard"].to_numpy()).tolist():
            rows = table.filter(pc.equal(table["_shard"], shard)).drop_columns(["_shard"]).combine_chunks()
            built = build_shard(shard, rows, plan, settings.index, settings.index_parameters, stored_history(settings))
            routed = route_rows(rows.drop_columns([REACH]), plan, plan.word_order())
            yield stored_shard(store, number, built, routed.words, routed.has_wordless)

    return build_batches


def stored_shard(store: Store, number: int, shard: OpenShard, words: pa.Table | None, has_wordless: bool) -> pa.RecordBatch:
    """Upload a shard under a name of its own (a task may run twice) and give its summary."""
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


def stored_history(settings: PipelineSettings) -> pa.Table | None:
    """The sample of past messages that `prepare` kept, for indexes with a cost model."""
    if not settings.store.exists(HISTORY):
        return None
    history = settings.store.read_table(HISTORY)
    return history.select([name for name in history.column_names if name != "time"])
