"""Step "plan": the shard plan of one mechanism, or of the cheapest, with its expected cost counted on a sample.

Nothing is simulated: the sample is routed and matched by the functions that run later, and their work is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from nearcast.boolean.engine import Matcher
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.engine.reading import ReadingContext
from nearcast.errors import EnvironmentProblem, PipelineError
from nearcast.model.spaces import space_of
from nearcast.pipeline.plan.clause_view import view_clauses, view_messages
from nearcast.pipeline.plan.routing import (
    NO_CHILD,
    RoutingTable,
    ShardAssignment,
    WordOrder,
    child_of_words,
    file_subscriptions,
    route_messages,
)
from nearcast.pipeline.plan.shard_plan import Estimate, ShardPlan, publish_plan
from nearcast.pipeline.plan.shard_tree import word_nodes
from nearcast.pipeline.plan.tree_building import PlanSample, build_tree
from nearcast.pipeline.prepare.keyword_statistics import KeywordStatistics, current_statistics
from nearcast.pipeline.prepare.step import HISTORY, read_history
from nearcast.pipeline.settings import MECHANISMS, PipelineSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# µs, measured on one core: a row through a shuffle, a message looked up in a shard, a candidate verified there.
ROW_US, VISIT_US, CANDIDATE_US = 3.0, 2.0, 0.02
_MAX_MATCHED = 2_000

OnProgress = Callable[[str], None]


def plan_shards(
    subscriptions: pa.Table,
    history: pa.Table,
    statistics: KeywordStatistics,
    settings: PipelineSettings,
    n_subscriptions: int | None = None,
    on_progress: OnProgress = lambda stage: None,
) -> ShardPlan:
    """The plan for a sample of the subscriptions (`n_subscriptions` in all) and of past messages.

    If the mechanism is `auto`, the cheapest one is chosen.
    """
    kind = statistics.keywords
    border = ReadingContext(space_of(settings.space), kind, settings.analysis)
    clauses = view_clauses(subscriptions, border)
    frequency = np.concatenate([statistics.frequency, np.zeros(kind.n - len(statistics.frequency), np.int64)])
    scale = (n_subscriptions or subscriptions.num_rows) / max(1, subscriptions.num_rows)
    weight = _clause_weight(subscriptions, history, len(clauses.subscription), scale, settings)
    sample = PlanSample(clauses, view_messages(history, kind), WordOrder.of(kind, frequency), weight)
    # With one shard every mechanism is the same.
    candidates = MECHANISMS if settings.shards > 1 else ("hashing",)
    plans = []
    for mechanism in candidates if settings.mechanism == "auto" else (settings.mechanism,):
        on_progress(f"planning {settings.shards} shards by {mechanism}")
        root = build_tree(mechanism, settings.shards, sample)
        plan = ShardPlan(mechanism, settings.shards, settings.space, settings.analysis, root, kind, frequency)
        plan.estimate = estimate_cost(plan, sample, subscriptions, history, scale)
        plans.append(plan)
    best = min(plans, key=lambda plan: plan.estimate.cost if plan.estimate else 0.0)
    best.others = [plan.estimate for plan in plans if plan.estimate is not None]
    return best


def estimate_cost(plan: ShardPlan, sample: PlanSample, subscriptions: pa.Table, history: pa.Table, scale: float) -> Estimate:
    """Route and match the sample and count the work. One subscription of the sample stands for `scale` subscriptions."""
    assignment = file_subscriptions(plan.root, plan.n_shards, sample.clauses, sample.order)
    table = routing_table(plan, assignment)
    target_shards = route_messages(plan.root, plan.n_shards, sample.messages, table)
    matched = history.slice(0, _MAX_MATCHED)
    load = []
    for shard in range(plan.n_shards):
        visits = float(target_shards[:, shard].mean()) if len(target_shards) else 0.0
        rows = sample.clauses.row[assignment.target_shards[:, shard]]
        visitors = np.flatnonzero(target_shards[: matched.num_rows, shard])
        shard_subscriptions, shard_messages = subscriptions.take(pa.array(rows)), matched.take(pa.array(visitors))
        candidates = scale * _n_candidates(shard_subscriptions, shard_messages, plan.border) / max(1, matched.num_rows)
        load.append(VISIT_US * visits + CANDIDATE_US * candidates)
    communication = float(target_shards.sum() / max(1, len(target_shards)))
    largest = max(load)
    return Estimate(
        mechanism=plan.mechanism,
        n_shards=plan.n_shards,
        replication=float(assignment.target_shards.sum() / max(1, len(assignment.target_shards))),
        communication=communication,
        load=load,
        balance=float(np.mean(load) / largest) if largest else 1.0,
        cost=ROW_US * communication / plan.n_shards + largest,
    )


def _clause_weight(
    subscriptions: pa.Table, history: pa.Table, n_clauses: int, scale: float, settings: PipelineSettings
) -> float:
    """The cost that one clause of the sample adds to a message, in visits."""
    matched = history.slice(0, _MAX_MATCHED)
    border = ReadingContext(space_of(settings.space), KeywordKind(settings.analysis), settings.analysis)
    candidates = _n_candidates(subscriptions, matched, border)
    return float(scale * CANDIDATE_US / VISIT_US * candidates / max(1, n_clauses * matched.num_rows))


def _n_candidates(subscriptions: pa.Table, messages: pa.Table, border: ReadingContext) -> int:
    """The number of candidates that an index verifies for these messages."""
    if subscriptions.num_rows == 0 or messages.num_rows == 0:
        return 0
    matcher = Matcher("keyword_first", border.space.value, border.analysis)
    matcher.subscribe_table(subscriptions)
    matcher.match_table(messages)
    return int(matcher.report.candidates)


def routing_table(plan: ShardPlan, assignment: ShardAssignment) -> RoutingTable:
    """The child to which each word of the plan leads, if subscriptions are filed under it."""
    order = plan.word_order()
    children = []
    for node, words in zip(word_nodes(plan.root), assignment.words, strict=True):
        child = np.full(plan.keywords.n, NO_CHILD, np.int32)
        child[words] = child_of_words(node, order, words)
        children.append(child)
    return RoutingTable(plan.keywords, children, assignment.has_wordless)


def make_plan(
    subscriptions: DataFrame, settings: PipelineSettings, on_progress: OnProgress = lambda stage: None
) -> tuple[int, ShardPlan]:
    """Plan for a table of subscriptions and the sample of history; publishes the plan and returns its version and the plan."""
    from pyspark.sql import functions as F  # noqa: N812

    store = settings.store
    history = read_history(settings)
    if history is None:
        raise PipelineError(f"{store.address(HISTORY)!r} does not exist; run first: nearcast pipeline prepare")
    on_progress("sampling subscriptions")
    n_subscriptions = subscriptions.count()
    sample = subscriptions.orderBy(F.xxhash64("id")).limit(settings.plan_rows).toArrow()
    statistics = current_statistics(store, settings.analysis)
    plan = plan_shards(sample, history, statistics, settings, n_subscriptions, on_progress)
    return publish_plan(store, plan), plan


def balance_bars(load: Sequence[float], width: int = 12) -> str:
    """The load of each shard as a bar, for a table cell."""
    blocks = "▁▂▃▄▅▆▇█"
    largest = max(load, default=0.0) or 1.0
    return "".join(blocks[min(7, int(8 * value / largest))] for value in load[: 4 * width])


def plot_estimates(estimates: list[Estimate], target: Path) -> None:
    """Write a picture of the expected cost of all mechanisms: copies, shards per message, the load of every shard."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise EnvironmentProblem("a plot needs matplotlib; install it with: pip install 'nearcast[bench]'") from None
    names = [estimate.mechanism for estimate in estimates]
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1, 2))
    left.barh(names, [estimate.replication for estimate in estimates])
    left.set_xlabel("copies per subscription")
    middle.barh(names, [estimate.communication for estimate in estimates])
    middle.set_xlabel("shards per message")
    middle.set_yticklabels([])
    for row, estimate in enumerate(estimates):
        width = 0.8 / max(1, len(estimate.load))
        offsets = [row - 0.4 + width * (shard + 0.5) for shard in range(len(estimate.load))]
        right.bar(offsets, sorted(estimate.load, reverse=True), width)
    right.set_xticks(range(len(names)), names, rotation=20)
    right.set_ylabel("expected µs per message, by shard")
    figure.savefig(target)
