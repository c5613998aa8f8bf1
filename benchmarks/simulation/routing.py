"""The loads of shards, counted by the tables of a plan for a sample of subscriptions and messages; any number of shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.experiments.shared.ranked_input import RankedInput
from benchmarks.simulation.cost_model import ShardLoads
from nearcast.engine.reading import ReadingContext
from nearcast.model.analysis import DEFAULT_ANALYSIS
from nearcast.model.spaces import space_of
from nearcast.pipeline.plan.routing import child_of_words
from nearcast.pipeline.plan.shard_plan import ShardPlan
from nearcast.pipeline.plan.shard_tree import IdNode, Node, Shard, WordNode
from nearcast.pipeline.ranked.filed_words import filed_words
from nearcast.pipeline.ranked.homes import FUSED, homes
from nearcast.pipeline.ranked.owner import FLOOR, Owner
from nearcast.pipeline.ranked.planning import plan_ranked
from nearcast.ranked.reading import read_ranked_table
from nearcast.ranked.score_parameters import WordWeights

_ROWS_AT_ONCE = 5_000
_SAMPLED_MESSAGES = 20_000


@dataclass(frozen=True, slots=True)
class Sample:
    """Subscriptions with the thresholds of their lists over a full window, and messages."""

    subscriptions: pa.Table
    messages: pa.Table
    weights: WordWeights
    space: str

    @classmethod
    def of(cls, input: RankedInput) -> Sample:
        owner = Owner(**input.engine_settings)
        owner.publish_table(input.first_window)
        owner.subscribe_table(input.subscriptions)
        messages = input.first_window.slice(0, _SAMPLED_MESSAGES).combine_chunks()
        return cls(owner.new_floors(), messages, WordWeights(input.idf, input.window_messages), input.space)


def loads_of(sample: Sample, mechanism: str, n_shards: int, n_subscriptions: int) -> ShardLoads:
    """The loads of all shards, as if there were `n_subscriptions` like those of the sample."""
    plain = sample.subscriptions.drop_columns([FLOOR])
    plan = plan_ranked(mechanism, n_shards, sample.space, plain, sample.messages)
    scale = n_subscriptions / sample.subscriptions.num_rows
    if mechanism == "location":
        owned = np.bincount(_homes(plan, sample.subscriptions), minlength=n_shards) * scale
    else:
        # A hash distributes as evenly as can be.
        owned = np.full(n_shards, n_subscriptions / n_shards)
    if mechanism in FUSED:
        return ShardLoads(owned, owned, np.ones(n_shards))
    copies = _copies(plan, sample) * scale
    return ShardLoads(owned, copies, visits_of(plan, sample.messages) / sample.messages.num_rows)


def _homes(plan: ShardPlan, subscriptions: pa.Table) -> NDArray[np.int64]:
    # Each row is compared with every tile, so rows are taken in parts.
    parts = range(0, subscriptions.num_rows, _ROWS_AT_ONCE)
    return np.concatenate([homes(plan, subscriptions.slice(first, _ROWS_AT_ONCE)) for first in parts])


def _copies(plan: ShardPlan, sample: Sample) -> NDArray[np.int64]:
    border = ReadingContext(space_of(sample.space), plan.keywords, DEFAULT_ANALYSIS)
    read = read_ranked_table(sample.subscriptions.drop_columns([FLOOR]), border)
    floor = sample.subscriptions[FLOOR].to_numpy()
    filed = filed_words(plan, plan.word_order(), sample.weights.of(plan.keywords), read.batch, floor)
    row = np.repeat(np.arange(len(filed.start) - 1), np.diff(filed.start))
    # A subscription has one copy in a shard, however many of its words are there.
    distinct = np.unique(row * plan.n_shards + filed.home)
    return np.bincount(distinct % plan.n_shards, minlength=plan.n_shards)


def visits_of(plan: ShardPlan, messages: pa.Table) -> NDArray[np.int64]:
    """The number of messages that come to each shard to be matched. Words of the messages are added to `plan`."""
    if plan.mechanism in FUSED:
        return np.full(plan.n_shards, messages.num_rows, np.int64)
    order = plan.word_order()
    lists = messages["keywords"].combine_chunks()
    words = plan.keywords.encode(lists.flatten(), grow=True).ids
    n_visits = np.zeros(plan.n_shards, np.int64)

    def descend(node: Node, row: NDArray[np.int64], word: NDArray[np.int32]) -> None:
        if isinstance(node, Shard):
            n_visits[node.number] += len(np.unique(row))
        elif not isinstance(node, WordNode):
            # A far message may be among the best: it goes to all tiles.
            tiles = _leaves(node)
            if tiles is not None:
                n_visits[tiles] += len(np.unique(row))
                return
            for below in node.children:
                descend(below, row, word)
        else:
            child = child_of_words(node, order, word)
            leaves = _leaves(node)
            if leaves is not None:
                visited = np.unique(row * len(leaves) + child) % len(leaves)
                n_visits[leaves] += np.bincount(visited, minlength=len(leaves))
                return
            for number, below in enumerate(node.children):
                descend(below, row[child == number], word[child == number])

    descend(plan.root, np.repeat(np.arange(len(lists)), np.diff(np.asarray(lists.offsets))), words)
    return n_visits


def _leaves(node: Node) -> NDArray[np.int64] | None:
    """The numbers of the children of a node if all of them are shards, else None."""
    children: Sequence[Node] = [] if isinstance(node, Shard | IdNode) else node.children
    numbers = [child.number for child in children if isinstance(child, Shard)]
    return np.array(numbers, np.int64) if children and len(numbers) == len(children) else None
