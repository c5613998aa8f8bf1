"""Where a ranked subscription lives: the one shard that has its list. A function of the plan and the subscription alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.pipeline.plan.clause_view import id_hashes
from nearcast.pipeline.plan.shard_plan import ShardPlan
from nearcast.pipeline.plan.shard_tree import IdNode, SpaceNode

FUSED = ("hashing", "location")
"""Mechanisms by which a shard finds the messages of its subscriptions itself."""


def homes(plan: ShardPlan, subscriptions: pa.Table) -> NDArray[np.int64]:
    """The shard that has the list of each subscription (id, x, y)."""
    root = plan.root
    if isinstance(root, SpaceNode) and plan.mechanism == "location":
        x, y = (np.asarray(subscriptions[name].combine_chunks(), np.float64) for name in ("x", "y"))
        # Tiles part the plane: a point is in one of them.
        return np.asarray(np.argmax(root.meets(np.stack([x, y, x, y])), axis=1), np.int64)
    hashes = id_hashes(subscriptions["id"].combine_chunks())
    if isinstance(root, IdNode):
        return np.asarray(root.bucket_child[hashes % len(root.bucket_child)], np.int64)
    return hashes % plan.n_shards


def may_move(plan: ShardPlan) -> bool:
    """Whether a subscription may come to live elsewhere when it is replaced."""
    return plan.mechanism == "location"
