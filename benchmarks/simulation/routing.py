"""Who gets what with thousands of shards: counted by the tables of a plan, for a sample of subscriptions and messages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.experiments.shared.ranked_input import RankedStory
from benchmarks.experiments.shared.shard_visits import visits_of
from benchmarks.simulation.cost_model import ShardLoads
from nearcast.engine.reading_context import Border
from nearcast.model.analysis import DEFAULT_ANALYSIS
from nearcast.model.spaces import space_of
from nearcast.pipeline.plan.shard_plan import ShardPlan
from nearcast.pipeline.ranked.filed_words import filed_words
from nearcast.pipeline.ranked.homes import FUSED, homes
from nearcast.pipeline.ranked.owner import FLOOR, Owner
from nearcast.pipeline.ranked.planning import plan_ranked
from nearcast.ranked.reading import read_ranked_table
from nearcast.ranked.word_weights import WordWeights

_ROWS_AT_ONCE = 5_000
_SAMPLED_MESSAGES = 20_000


@dataclass(frozen=True, slots=True)
class Sample:
    """Subscriptions with the floors of their lists over a full window, and messages."""

    subscriptions: pa.Table
    messages: pa.Table
    weights: WordWeights
    space: str

    @classmethod
    def of(cls, story: RankedStory) -> Sample:
        owner = Owner(**story.engine_settings)
        owner.publish_table(story.first_window)
        owner.subscribe_table(story.subscriptions)
        messages = story.first_window.slice(0, _SAMPLED_MESSAGES).combine_chunks()
        return cls(owner.new_floors(), messages, WordWeights(story.idf, story.window_messages), story.space)


def routed(sample: Sample, mechanism: str, n_shards: int, n_subscriptions: int) -> ShardLoads:
    """The loads of all shards, as if there were `n_subscriptions` like those of the sample."""
    plain = sample.subscriptions.drop_columns([FLOOR])
    plan = plan_ranked(mechanism, n_shards, sample.space, plain, sample.messages)
    scale = n_subscriptions / sample.subscriptions.num_rows
    if mechanism == "location":
        owned = np.bincount(_homes(plan, sample.subscriptions), minlength=n_shards) * scale
    else:
        # A hash shares out as evenly as can be.
        owned = np.full(n_shards, n_subscriptions / n_shards)
    if mechanism in FUSED:
        return ShardLoads(owned, owned, np.ones(n_shards))
    copies = _copies(plan, sample) * scale
    return ShardLoads(owned, copies, visits_of(plan, sample.messages) / sample.messages.num_rows)


def _homes(plan: ShardPlan, subscriptions: pa.Table) -> NDArray[np.int64]:
    # Each row is compared with every tile: some rows at a time.
    parts = range(0, subscriptions.num_rows, _ROWS_AT_ONCE)
    return np.concatenate([homes(plan, subscriptions.slice(first, _ROWS_AT_ONCE)) for first in parts])


def _copies(plan: ShardPlan, sample: Sample) -> NDArray[np.int64]:
    border = Border(space_of(sample.space), plan.keywords, DEFAULT_ANALYSIS)
    read = read_ranked_table(sample.subscriptions.drop_columns([FLOOR]), border)
    floor = sample.subscriptions[FLOOR].to_numpy()
    filed = filed_words(plan, plan.word_order(), sample.weights.of(plan.keywords), read.batch, floor)
    row = np.repeat(np.arange(len(filed.start) - 1), np.diff(filed.start))
    # A subscription has one copy in a shard, under however many words.
    distinct = np.unique(row * plan.n_shards + filed.home)
    return np.bincount(distinct % plan.n_shards, minlength=plan.n_shards)
