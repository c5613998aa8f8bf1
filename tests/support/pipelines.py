"""Small worlds for the pipeline: subscriptions of every kind, messages, a plan, and an index published without Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.pipeline.index.shard_folder import SHARD_LIST, WORDS, build_shard, route_rows, words_table
from nearcast.pipeline.index.step import REASON, store_shard
from nearcast.pipeline.index.version import (
    IndexVersion,
    ShardBase,
    current_number,
    new_number,
    publish_index,
    routing_folder,
    rows_folder,
)
from nearcast.pipeline.plan.shard_plan import ShardPlan, publish_plan
from nearcast.pipeline.plan.step import plan_shards
from nearcast.pipeline.prepare.keyword_statistics import KeywordStatistics
from nearcast.pipeline.settings import PipelineSettings

KEYWORDS = [f"w{number}" for number in range(40)]


def make_subscriptions(n: int, seed: int, first_id: int = 0) -> pa.Table:
    """Keywords or interests, boxes, triangles or everywhere; ids s0, s1, …"""
    draw = np.random.default_rng(seed)
    rows = []
    for number in range(first_id, first_id + n):
        x, y = (float(value) for value in draw.uniform(-20, 20, 2))
        size = float(draw.uniform(0.1, 15))
        words = [str(word) for word in draw.choice(KEYWORDS, int(draw.integers(0, 4)))]
        row: dict[str, object] = {"id": f"s{number}", "keywords": words, "interest": None, "region": None}
        row |= {"x0": x - size, "y0": y - size, "x1": x + size, "y1": y + size}
        if number % 5 == 1:
            a, b, c = draw.choice(KEYWORDS, 3).tolist()
            row |= {"keywords": None, "interest": f"({a} OR {b}) AND NOT {c} OR neverseen{number}"}
        if number % 7 == 2:
            corners = [[x, y], [x + size, y], [x, y + size], [x, y]]
            row["region"] = f'{{"type": "Polygon", "coordinates": [{corners}]}}'
        if number % 11 == 3:
            row |= dict.fromkeys(("x0", "y0", "x1", "y1"))
        rows.append(row)
    kinds = {"id": pa.string(), "keywords": pa.list_(pa.string()), "interest": pa.string(), "region": pa.string()}
    schema = pa.schema({**kinds, **dict.fromkeys(("x0", "y0", "x1", "y1"), pa.float64())})
    return pa.Table.from_pylist(rows, schema=schema)


def make_messages(n: int, seed: int, has_boxes: bool = False, first_id: int = 0) -> pa.Table:
    """Points or boxes in and around the regions; no subscription has some of the words."""
    draw = np.random.default_rng(seed)
    words = [*KEYWORDS, "nobody", "asks", "neverseen6"]
    lists = [[str(word) for word in draw.choice(words, int(draw.integers(0, 7)))] for _ in range(n)]
    x, y = draw.uniform(-25, 25, (2, n))
    columns = {"id": pa.array(np.arange(first_id, first_id + n)), "keywords": pa.array(lists, pa.list_(pa.string()))}
    if not has_boxes:
        return pa.table({**columns, "x": x, "y": y})
    width, height = draw.uniform(0, 10, (2, n))
    return pa.table({**columns, "x0": x, "y0": y, "x1": x + width, "y1": y + height})


def plan_for(subscriptions: pa.Table, history: pa.Table, settings: PipelineSettings) -> ShardPlan:
    """The plan that the settings ask for, with the words of the history counted."""
    words = history["keywords"].combine_chunks().flatten()
    counted = pc.value_counts(words).flatten()
    order = np.argsort(-np.asarray(counted[1]), kind="stable")
    statistics = KeywordStatistics.from_counts(
        counted[0].take(pa.array(order)), np.asarray(counted[1])[order].astype(np.int64), history.num_rows, settings.analysis
    )
    return plan_shards(subscriptions, history, statistics, settings)


def publish_here(settings: PipelineSettings, plan: ShardPlan, subscriptions: pa.Table) -> IndexVersion:
    """Build and publish every shard as step "index" does it, in one process and without Spark."""
    store = settings.store
    number, replaced = new_number(store), current_number(store)
    plan_number = publish_plan(store, plan)
    routed = route_rows(subscriptions, plan, plan.word_order())
    shards = []
    for shard in range(plan.n_shards):
        is_of_shard = [shard in shards_of_row for shards_of_row in routed.rows[SHARD_LIST].to_pylist()]
        rows = routed.rows.filter(pa.array(is_of_shard, pa.bool_()))
        if rows.num_rows:
            facts = store_shard(store, number, build_shard(shard, rows, plan, "auto", {}, None), None, False).to_pylist()[0]
            shards.append(ShardBase(facts["folder"], facts["n_subscriptions"], facts["n_bytes"]))
        else:
            shards.append(ShardBase("", 0, 0))
    store.write_table(f"{routing_folder(number)}/{WORDS}", words_table(plan, [routed.words]))
    accepted = routed.rows.append_column(REASON, pa.nulls(routed.rows.num_rows, pa.string()))
    store.write_table(f"{rows_folder(number)}/rows.parquet", accepted)
    wordless = routed.has_wordless
    id_type = "string" if pa.types.is_string(subscriptions["id"].type) else "long"
    version = IndexVersion(number, number, number, plan_number, plan.n_shards, id_type, tuple(shards), has_wordless=wordless)
    publish_index(store, version, replaced)
    return version
