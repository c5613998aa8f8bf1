"""How many of some messages each shard gets to look at: counted by the tables that route them, for any number of shards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.pipeline.plan.routing import child_of_words
from nearcast.pipeline.plan.shard_plan import ShardPlan
from nearcast.pipeline.plan.shard_tree import IdNode, Node, Shard, WordNode
from nearcast.pipeline.ranked.homes import FUSED


def visits_of(plan: ShardPlan, messages: pa.Table) -> NDArray[np.int64]:
    """By shard. `plan` is the caller's own: words of the messages are added to it."""
    if plan.mechanism in FUSED:
        return np.full(plan.n_shards, messages.num_rows, np.int64)
    order = plan.word_order()
    lists = messages["keywords"].combine_chunks()
    words = plan.keywords.encode(lists.flatten(), grow=True).ids
    counted = np.zeros(plan.n_shards, np.int64)

    def descend(node: Node, row: NDArray[np.int64], word: NDArray[np.int32]) -> None:
        if isinstance(node, Shard):
            counted[node.number] += len(np.unique(row))
        elif not isinstance(node, WordNode):
            # A far message may be among the best: it goes to all tiles.
            every = _leaves(node)
            if every is not None:
                counted[every] += len(np.unique(row))
                return
            for below in node.children:
                descend(below, row, word)
        else:
            child = child_of_words(node, order, word)
            leaves = _leaves(node)
            if leaves is not None:
                visited = np.unique(row * len(leaves) + child) % len(leaves)
                counted[leaves] += np.bincount(visited, minlength=len(leaves))
                return
            for number, below in enumerate(node.children):
                descend(below, row[child == number], word[child == number])

    descend(plan.root, np.repeat(np.arange(len(lists)), np.diff(np.asarray(lists.offsets))), words)
    return counted


def _leaves(node: Node) -> NDArray[np.int64] | None:
    """The shards below a node that has nothing but shards below it."""
    children: Sequence[Node] = [] if isinstance(node, Shard | IdNode) else node.children
    numbers = [child.number for child in children if isinstance(child, Shard)]
    return np.array(numbers, np.int64) if children and len(numbers) == len(children) else None
