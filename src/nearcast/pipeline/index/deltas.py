"""Subscriptions that change while a stream runs: deltas on top of the shards, merged into them when there are many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.errors import PipelineError
from nearcast.pipeline.index.open_version import REMOVED, IndexLocation, open_plan_on_host, shard_file
from nearcast.pipeline.index.shard_folder import SHARD_LIST, WORDS, route_rows, words_table
from nearcast.pipeline.index.step import SUMMARY, read_accepted_rows, route_subscriptions, store_shard
from nearcast.pipeline.index.version import (
    IndexVersion,
    ShardBase,
    collect_versions,
    current_index,
    delta_folder,
    new_number,
    publish_index,
    routing_folder,
    rows_folder,
)
from nearcast.pipeline.prepare.cleaning import quarantine_rows
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.store import version_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS = "rows.parquet"
QUARANTINE = "quarantined_changes"
_MANY = 4


def publish_changes(changes: pa.Table, settings: PipelineSettings, topic_position: str | None = None) -> IndexVersion:
    """Publish changed subscriptions as a delta of the current version.

    `changes` is a table of subscriptions with a column `change`: 1 adds a row (an existing id is replaced), -1 removes the id.
    A row that cannot be used is an error; but for changes from a topic, read up to `topic_position`, it is quarantined with the
    reason and its id is removed.
    """
    if "change" not in changes.column_names:
        raise PipelineError(f"the changes have the columns {changes.column_names}; expected 'change' (1 or -1) in addition")
    store = settings.store
    before = current_index(store)
    plan = open_plan_on_host(store, settings.shared_dir, before.plan)
    is_added = pc.greater(changes["change"], 0)
    rows = changes.filter(is_added).drop_columns(["change"])
    routed = route_rows(rows, plan, plan.word_order())
    number = new_number(store)
    if routed.rejected:
        if topic_position is None:
            row, reason = routed.rejected[0]
            raise PipelineError(
                f"{len(routed.rejected)} changes cannot be used; the first, row {row} of those with change 1: {reason}"
            )
        store.write_table(f"{QUARANTINE}/{version_name(number)}.parquet", quarantine_rows(rows, routed.rejected))
    folder = delta_folder(number)
    store.write_table(f"{folder}/{REMOVED}", pa.table({"id": changes["id"].combine_chunks().unique()}))
    store.write_table(f"{folder}/{_ROWS}", routed.rows)
    store.write_table(f"{folder}/{WORDS}", routed.words)
    lists = routed.rows[SHARD_LIST].combine_chunks()
    parent, shard = np.asarray(pc.list_parent_indices(lists)), np.asarray(lists.flatten())
    for target in range(before.n_shards):
        store.write_table(f"{folder}/{shard_file(target)}", routed.rows.take(pa.array(parent[shard == target])))
    version = before.with_delta(number, routed.has_wordless, topic_position)
    publish_index(store, version, before.number)
    collect_versions(store, settings.keep_versions)
    return version


def pack_deltas(session: SparkSession, settings: PipelineSettings) -> IndexVersion:
    """Rewrite the shards of the current version with their deltas merged, so that opening them takes no work."""
    store = settings.store
    before = current_index(store)
    if not before.deltas:
        return before
    number = new_number(store)
    location = IndexLocation(store, settings.shared_dir, before)

    def pack_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for shard in batch.column(0).to_pylist():
                yield store_shard(store, number, location.shard(shard), None, False)

    numbered = session.range(0, before.n_shards, 1, before.n_shards)
    built = numbered.mapInArrow(pack_batches, SUMMARY).collect()
    shards = list(before.shards)
    for row in built:
        shards[row["shard"]] = ShardBase(row["folder"], row["n_subscriptions"], row["n_bytes"])
    folders = [routing_folder(before.base), *[delta_folder(delta) for delta in before.deltas]]
    words = [store.read_table(f"{folder}/{WORDS}") for folder in folders]
    store.write_table(f"{routing_folder(number)}/{WORDS}", words_table(location.plan, words))
    version = replace(before, number=number, base=number, shards=tuple(shards), deltas=())
    if len(before.changes) >= _MANY * settings.max_deltas:
        # Only a new plan needs the table of all subscriptions, but the number of its parts must stay bounded.
        rows = route_subscriptions(current_rows(session, settings, before), settings, before.plan)
        rows.write.mode("overwrite").parquet(store.address(rows_folder(number)))
        version = replace(version, rows=number, changes=())
    publish_index(store, version, before.number)
    collect_versions(store, settings.keep_versions)
    return version


def current_rows(session: SparkSession, settings: PipelineSettings, version: IndexVersion) -> DataFrame:
    """The subscriptions of a version as rows: those it was built from, with all later changes."""
    store = settings.store
    rows = read_accepted_rows(session, store, rows_folder(version.rows)).drop(SHARD_LIST)
    for number in version.changes:
        removed = session.read.parquet(store.address(delta_folder(number), REMOVED))
        added = session.read.parquet(store.address(delta_folder(number), _ROWS)).drop(SHARD_LIST)
        rows = rows.join(removed, "id", "left_anti").unionByName(added, allowMissingColumns=True)
    return rows
