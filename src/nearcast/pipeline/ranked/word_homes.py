"""Where a subscription is looked for under one of its words, and which words of messages a shard is concerned with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.pipeline.plan.routing import WordOrder, child_of_words
from nearcast.pipeline.plan.shard_plan import ShardPlan
from nearcast.pipeline.plan.shard_tree import Node, Shard, SpaceNode, WordNode, shards_of


def word_homes(
    plan: ShardPlan, order: WordOrder, word: NDArray[np.int32], x: NDArray[np.float64], y: NDArray[np.float64]
) -> NDArray[np.int64]:
    """For each word of a subscription at (x, y) the one shard where the subscription is looked for under it."""
    home = np.empty(len(word), np.int64)

    def descend(node: Node, at: NDArray[np.int64]) -> None:
        if isinstance(node, Shard):
            home[at] = node.number
        elif isinstance(node, SpaceNode):
            share_out(node.children, _tile_of(node, x[at], y[at]), at)
        elif isinstance(node, WordNode):
            share_out(node.children, child_of_words(node, order, word[at]), at)

    def share_out(children: list[Node], child: NDArray[Any], at: NDArray[np.int64]) -> None:
        leaves = [below.number for below in children if isinstance(below, Shard)]
        if len(leaves) == len(children):
            home[at] = np.array(leaves, np.int64)[child]
            return
        for number, below in enumerate(children):
            descend(below, at[child == number])

    descend(plan.root, np.arange(len(word)))
    return home


def concerns(plan: ShardPlan, order: WordOrder, word: NDArray[np.int32], shard: int) -> NDArray[np.bool_]:
    """Which words of messages may bring something to a shard. Messages go to all tiles: a far one may be among the best."""
    is_wanted = np.ones(len(word), bool)
    node = plan.root
    while not isinstance(node, Shard):
        below = next(number for number, child in enumerate(node.children) if shard in shards_of(child))
        if isinstance(node, WordNode):
            is_wanted &= child_of_words(node, order, word) == below
        node = node.children[below]
    return is_wanted


def word_ranks(order: WordOrder, word: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Keys by which words are rarest first, the same in every process: unknown ones by a hash, then by frequency."""
    is_known = word < order.n_known
    rarity, tie = np.full(len(word), -1, np.int64), word.astype(np.int64)
    rarity[is_known] = order.frequency[word[is_known]]
    tie[~is_known] = order.hashes()[word[~is_known] - order.n_known]
    return rarity, tie


def _tile_of(node: SpaceNode, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.asarray(np.argmax(node.meets(np.stack([x, y, x, y])), axis=1), np.int64)
