"""The plan of a ranked stream, made from the subscriptions and messages that are there when it is needed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nearcast.engine.keyword_kind import KeywordKind
from nearcast.engine.reading import ReadingContext
from nearcast.model.analysis import DEFAULT_ANALYSIS
from nearcast.model.spaces import space_of
from nearcast.pipeline.plan.clause_view import ClauseView, id_hashes, view_messages
from nearcast.pipeline.plan.routing import WordOrder
from nearcast.pipeline.plan.shard_plan import ShardPlan
from nearcast.pipeline.plan.tree_building import PlanSample, build_tree
from nearcast.ranked.reading import read_ranked_table

AUTO = "hashing"
"""What "auto" means: nothing is told between shards, and they share the work evenly whatever people ask for."""
# What a subscription of a shard adds to the cost of a message, in visits: scores are dear, visits are not.
_SUBSCRIPTION_WEIGHT = 0.001


def plan_ranked(
    mechanism: str, n_shards: int, space: str, subscriptions: pa.Table, messages: pa.Table, n_groups: int = 0
) -> ShardPlan:
    """A plan with `n_shards` shards that share the work of this sample evenly; `n_groups` as in `build_tree`."""
    chosen = AUTO if mechanism == "auto" else mechanism
    keywords = KeywordKind(DEFAULT_ANALYSIS)
    view = _view(subscriptions, ReadingContext(space_of(space), keywords, DEFAULT_ANALYSIS))
    _learn(messages, keywords)
    seen = view_messages(messages, keywords)
    frequency = np.bincount(seen.word, minlength=keywords.n).astype(np.int64)
    # How long prefixes will be is not known yet, but most are nearly as long as can be.
    sample = PlanSample(view, seen, WordOrder.of(keywords, frequency), _SUBSCRIPTION_WEIGHT, is_ranked=True)
    root = build_tree(chosen, n_shards, sample, n_groups)
    return ShardPlan(chosen, n_shards, space, DEFAULT_ANALYSIS, root, keywords, frequency)


def _view(subscriptions: pa.Table, border: ReadingContext) -> ClauseView:
    """Ranked subscriptions as a router of clauses sees them: at a point, each of its words wanted."""
    read = read_ranked_table(subscriptions, border)
    n = len(read.ids)
    x, y = read.batch.x, read.batch.y
    rows = np.arange(n, dtype=np.int64)
    words = (read.batch.keyword_start, read.batch.keyword)
    return ClauseView(rows, id_hashes(read.ids), rows.astype(np.int32), *words, np.stack([x, y, x, y]), read.rejected)


def _learn(messages: pa.Table, keywords: KeywordKind) -> None:
    """Take in the words of messages."""
    keywords.encode(messages["keywords"].combine_chunks().flatten(), grow=True)
