"""Step "plan": the shard plan of one mechanism, or of the cheapest, with its expected cost counted on a sample.

Nothing is simulated: the sample is routed and matched by the very functions that run later, and their work is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from nearcast.boolean.engine import Matcher
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.engine.reading import Border
from nearcast.errors import PipelineError
from nearcast.model.spaces import space_of
from nearcast.pipeline.plan.clause_view import view_clauses, view_messages
from nearcast.pipeline.plan.routing import (
    NOBODY,
    Filed,
    RoutingTable,
    WordOrder,
    child_of_words,
    file_subscriptions,
    route_messages,
)
from nearcast.pipeline.plan.shard_plan import Estimate, ShardPlan, publish_plan
from nearcast.pipeline.plan.shard_tree import word_nodes
from nearcast.pipeline.plan.tree_building import PlanSample, build_tree
from nearcast.pipeline.prepare.keyword_statistics import KeywordStatistics, current_statistics
from nearcast.pipeline.prepare.step import HISTORY
from nearcast.pipeline.settings import MECHANISMS, PipelineSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# µs, measured on one core: a row through a shuffle, a message looked up in a shard, a candidate verified there.
ROW_US, VISIT_US, CANDIDATE_US = 3.0, 2.0, 0.02
_MOST_MATCHED = 2_000

Say = Callable[[str], None]


def plan_shards(
    subscriptions: pa.Table,
    history: pa.Table,
    statistics: KeywordStatistics,
    settings: PipelineSettings,
    n_subscriptions: int | None = None,
    say: Say = lambda stage: None,
) -> ShardPlan:
    """The plan for a sample of the subscriptions (`n_subscriptions` in all) and of past messages."""
    kind = statistics.keywords
    border = Border(space_of(settings.space), kind, settings.analysis)
    clauses = view_clauses(subscriptions, border)
    frequency = np.concatenate([statistics.frequency, np.zeros(kind.n - len(statistics.frequency), np.int64)])
    scale = (n_subscriptions or subscriptions.num_rows) / max(1, subscriptions.num_rows)
    weight = _clause_weight(subscriptions, history, len(clauses.owner), scale, settings)
    sample = PlanSample(clauses, view_messages(history, kind), WordOrder.of(kind, frequency), weight)
    # One shard needs no mechanism.
    choice = MECHANISMS if settings.shards > 1 else ("hashing",)
    named = choice if settings.mechanism == "auto" else (settings.mechanism,)
    plans = []
    for mechanism in named:
        say(f"planning {settings.shards} shards by {mechanism}")
        root = build_tree(mechanism, settings.shards, sample)
        plan = ShardPlan(mechanism, settings.shards, settings.space, settings.analysis, root, kind, frequency)
        plan.estimate = estimate_cost(plan, sample, subscriptions, history, scale)
        plans.append(plan)
    best = min(plans, key=lambda plan: plan.estimate.cost if plan.estimate else 0.0)
    best.others = [plan.estimate for plan in plans if plan.estimate is not None]
    return best


def estimate_cost(plan: ShardPlan, sample: PlanSample, subscriptions: pa.Table, history: pa.Table, scale: float) -> Estimate:
    """Route and match the sample, and count; `scale` is how many subscriptions each of the sample stands for."""
    filed = file_subscriptions(plan.root, plan.n_shards, sample.clauses, sample.order)
    table = routing_table(plan, filed)
    reach = route_messages(plan.root, plan.n_shards, sample.messages, table)
    matched = history.slice(0, _MOST_MATCHED)
    load = []
    for shard in range(plan.n_shards):
        visits = float(reach[:, shard].mean()) if len(reach) else 0.0
        rows = sample.clauses.row[filed.reach[:, shard]]
        visitors = np.flatnonzero(reach[: matched.num_rows, shard])
        filed_here, come_here = subscriptions.take(pa.array(rows)), matched.take(pa.array(visitors))
        candidates = scale * _n_candidates(filed_here, come_here, plan.border) / max(1, matched.num_rows)
        load.append(VISIT_US * visits + CANDIDATE_US * candidates)
    communication = float(reach.sum() / max(1, len(reach)))
    largest = max(load)
    return Estimate(
        mechanism=plan.mechanism,
        n_shards=plan.n_shards,
        replication=float(filed.reach.sum() / max(1, len(filed.reach))),
        communication=communication,
        load=load,
        balance=float(np.mean(load) / largest) if largest else 1.0,
        cost=ROW_US * communication / plan.n_shards + largest,
    )


def _clause_weight(
    subscriptions: pa.Table, history: pa.Table, n_clauses: int, scale: float, settings: PipelineSettings
) -> float:
    """What one clause of the sample adds to the cost of a message, in visits."""
    matched = history.slice(0, _MOST_MATCHED)
    border = Border(space_of(settings.space), KeywordKind(settings.analysis), settings.analysis)
    candidates = _n_candidates(subscriptions, matched, border)
    return float(scale * CANDIDATE_US / VISIT_US * candidates / max(1, n_clauses * matched.num_rows))


def _n_candidates(subscriptions: pa.Table, messages: pa.Table, border: Border) -> int:
    """How many candidates an index verifies for these messages."""
    if subscriptions.num_rows == 0 or messages.num_rows == 0:
        return 0
    matcher = Matcher("keyword_first", border.space.value, border.analysis)
    matcher.subscribe_table(subscriptions)
    matcher.match_table(messages)
    return int(matcher.report.candidates)


def routing_table(plan: ShardPlan, filed: Filed) -> RoutingTable:
    """Where the words of filed subscriptions lead, over all words of the plan."""
    order = plan.word_order()
    children = []
    for node, words in zip(word_nodes(plan.root), filed.words, strict=True):
        child = np.full(plan.keywords.n, NOBODY, np.int32)
        child[words] = child_of_words(node, order, words)
        children.append(child)
    return RoutingTable(plan.keywords, children, filed.has_wordless)


def make_plan(subscriptions: DataFrame, settings: PipelineSettings, say: Say = lambda stage: None) -> tuple[int, ShardPlan]:
    """Plan for a table of subscriptions and the history that `prepare` kept; returns the version of the plan and the plan."""
    from pyspark.sql import functions as F  # noqa: N812

    store = settings.store
    if not store.exists(HISTORY):
        raise PipelineError(f"{store.address(HISTORY)!r} is not there; run first: nearcast pipeline prepare")
    say("sampling subscriptions")
    n_subscriptions = subscriptions.count()
    sample = subscriptions.orderBy(F.xxhash64("id")).limit(settings.plan_rows).toArrow()
    statistics = current_statistics(store, settings.analysis)
    plan = plan_shards(sample, _history_of(settings), statistics, settings, n_subscriptions, say)
    return publish_plan(store, plan), plan


def _history_of(settings: PipelineSettings) -> pa.Table:
    history = settings.store.read_table(HISTORY)
    return history.select([name for name in history.column_names if name != "time"])


def balance_bars(load: Sequence[float], width: int = 12) -> str:
    """The load of each shard as one bar per shard, for a table cell."""
    blocks = "▁▂▃▄▅▆▇█"
    largest = max(load, default=0.0) or 1.0
    return "".join(blocks[min(7, int(8 * value / largest))] for value in load[: 4 * width])
