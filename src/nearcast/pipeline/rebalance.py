"""Step "rebalance": split the busiest shards, merge the idlest, build the new plan and make it current.

A running stream uses the new version with its next batch. A batch leases the plan together with the shards, and matching has no
state of its own, so only the pointer moves. Offsets, checkpoint and deliveries stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from nearcast.errors import PipelineError
from nearcast.pipeline.index.deltas import current_rows
from nearcast.pipeline.index.step import build_index
from nearcast.pipeline.index.version import IndexVersion, current_index
from nearcast.pipeline.match.step import ShardWork
from nearcast.pipeline.plan.clause_view import view_clauses, view_messages
from nearcast.pipeline.plan.shard_plan import ShardPlan, open_plan, publish_plan
from nearcast.pipeline.plan.tree_building import PlanSample
from nearcast.pipeline.plan.tree_changes import merge_shards, n_mergeable, split_shard
from nearcast.pipeline.prepare.step import read_history
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.status import load_of, stream_status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OnProgress = Callable[[str], None]


def rebalance(
    session: SparkSession, settings: PipelineSettings, n_shards: int | None = None, on_progress: OnProgress = lambda stage: None
) -> IndexVersion:
    """Change the current plan to `n_shards` shards (default: as many as now) by the measured loads."""
    from pyspark.sql import functions as F  # noqa: N812

    version = current_index(settings.store)
    work = stream_status(settings).work
    plan = open_plan(settings.store, version.plan)
    rows = current_rows(session, settings, version).cache()
    try:
        sample = rows.orderBy(F.xxhash64("id")).limit(settings.plan_rows).toArrow()
        history = read_history(settings)
        if history is None:
            raise PipelineError("there is no sample of past messages; run first: nearcast pipeline prepare")
        new_plan = rebalance_plan(plan, work, n_shards or plan.n_shards, sample, history, on_progress)
        publish_plan(settings.store, new_plan)
        return build_index(session, rows, replace(settings, shards=new_plan.n_shards), on_progress, version.taken)
    finally:
        rows.unpersist()


def rebalance_plan(
    plan: ShardPlan,
    work: Mapping[int, ShardWork],
    n_shards: int,
    subscriptions: pa.Table,
    history: pa.Table,
    on_progress: OnProgress,
) -> ShardPlan:
    """The plan with its busiest shard split and its idlest pair merged until it has `n_shards`. At least one shard is split."""
    clauses = view_clauses(subscriptions, plan.border)
    sample = PlanSample(clauses, view_messages(history, plan.keywords), plan.word_order(), 0.0)
    load = [load_of(work.get(shard)) for shard in range(plan.n_shards)]
    root, n_splits = plan.root, 0
    while len(load) < n_shards or n_splits == 0:
        busiest = int(np.argmax(load))
        root, share = split_shard(root, busiest, len(load), sample)
        on_progress(f"shard {busiest} is split: {1 - share:.0%} stays, {share:.0%} goes to shard {len(load)}")
        load.append(load[busiest] * share)
        load[busiest] *= 1 - share
        n_splits += 1
    while len(load) > n_shards and n_mergeable(root):
        root, target, source = merge_shards(root, load)
        on_progress(f"shard {source} is merged into shard {target}")
        load[target] += load[source]
        # The last shard gets the number that became free.
        load[source] = load[-1]
        load.pop()
    return ShardPlan(plan.mechanism, len(load), plan.space, plan.analysis, root, plan.keywords, plan.frequency)
