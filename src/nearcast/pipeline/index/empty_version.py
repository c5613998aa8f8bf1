"""An index before there are subscriptions: all of them will come as changes."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from nearcast.pipeline.index.shard_folder import REACH, WORDS, words_table
from nearcast.pipeline.index.step import REASON
from nearcast.pipeline.index.version import (
    IndexVersion,
    ShardBase,
    current_number,
    new_number,
    publish_index,
    routing_folder,
    rows_folder,
)
from nearcast.pipeline.plan.shard_plan import publish_plan
from nearcast.pipeline.plan.step import plan_shards
from nearcast.pipeline.prepare.keyword_statistics import current_statistics
from nearcast.pipeline.settings import PipelineSettings

_SIDES = ("x0", "y0", "x1", "y1")
SUBSCRIPTION_SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "keywords": pa.list_(pa.string()),
        "interest": pa.string(),
        "region": pa.string(),
        **dict.fromkeys(_SIDES, pa.float64()),
    }
)
"""Subscriptions of a topic; their ids are strings."""


def publish_empty_index(settings: PipelineSettings) -> IndexVersion:
    """A plan by id (nothing is known yet that would make another better) and an index of empty shards."""
    store = settings.store
    messages = pa.table({"id": pa.array([], pa.int64()), "keywords": pa.array([], pa.list_(pa.string()))})
    for name in ("x", "y"):
        messages = messages.append_column(name, pa.array([], pa.float64()))
    by_id = replace(settings, mechanism="hashing")
    plan = plan_shards(SUBSCRIPTION_SCHEMA.empty_table(), messages, current_statistics(store, settings.analysis), by_id)
    plan_number, number, replaced = publish_plan(store, plan), new_number(store), current_number(store)
    rows = SUBSCRIPTION_SCHEMA.append(pa.field(REACH, pa.list_(pa.int32()))).append(pa.field(REASON, pa.string()))
    store.write_table(f"{rows_folder(number)}/rows.parquet", rows.empty_table())
    store.write_table(f"{routing_folder(number)}/{WORDS}", words_table(plan, []))
    shards = (ShardBase("", 0, 0),) * plan.n_shards
    version = IndexVersion(number, number, number, plan_number, plan.n_shards, "string", shards)
    publish_index(store, version, replaced)
    return version
