"""A shard that finds the messages of its subscriptions itself: an engine of one process over its share of them.

Paper: Wang et al. 2017 (Skype), §7.3.1 and §7.3.2: subscriptions by hashing and by location, messages to every shard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.pipeline.keeping.shard_engine import Taken
from nearcast.pipeline.plan.shard_plan import ShardPlan
from nearcast.pipeline.ranked.batch_log import RankedBatch
from nearcast.pipeline.ranked.homes import homes, may_move
from nearcast.ranked.engine import Ranker

RANKER = "ranker"


class FusedShard:
    """Shard `number` of a plan by hashing or by location."""

    def __init__(self, number: int, plan: ShardPlan, ranker: Ranker) -> None:
        self._number, self._plan, self._ranker = number, plan, ranker

    @classmethod
    def new(cls, number: int, plan: ShardPlan, settings: Mapping[str, Any]) -> FusedShard:
        return cls(number, plan, Ranker(**settings))

    @classmethod
    def open(cls, number: int, plan: ShardPlan, settings: Mapping[str, Any], folder: Path) -> FusedShard:
        return cls(number, plan, Ranker.open(folder / RANKER))

    @classmethod
    def moved(
        cls, number: int, plan: ShardPlan, settings: Mapping[str, Any], folder: Path, subscriptions: Sequence[pa.Table]
    ) -> FusedShard:
        ranker = Ranker.open(folder / RANKER, index="auto")
        move_in(ranker, number, plan, subscriptions)
        return cls(number, plan, ranker)

    def tell(self, number: int, batch: RankedBatch, floors: Sequence[pa.Table]) -> dict[int, pa.Table]:
        """The lists of subscriptions that move away, for the shards they move to."""
        if not may_move(self._plan) or batch.put.num_rows == 0:
            return {}
        home = homes(self._plan, batch.put)
        told = {}
        for target in np.unique(home[home != self._number]).tolist():
            ids = batch.put["id"].filter(pa.array(home == target)).to_pylist()
            lists = self._ranker.top_table(ids)
            if lists.num_rows:
                told[target] = lists
        return told

    def take(self, number: int, batch: RankedBatch, told: Sequence[pa.Table]) -> Taken:
        is_here = homes(self._plan, batch.put) == self._number
        gone = batch.removed.to_pylist()
        if may_move(self._plan):
            gone += batch.put["id"].filter(pa.array(~is_here)).to_pylist()
        self._ranker.unsubscribe(gone)
        filed = self._ranker.subscribe_table(batch.put.filter(pa.array(is_here)))
        filed = with_lists_left(filed, told, self._ranker.tick)
        ticked = self._ranker.publish_table(batch.messages)
        report = self._ranker.report
        return Taken(joined([filed, ticked]), list(report.rejected), report.messages, report.candidates)

    def subscriptions(self) -> pa.Table:
        return self._ranker.subscription_table()

    @property
    def n_copies(self) -> int:
        """Subscriptions that are looked for here."""
        return int(self._ranker.stats()["subscriptions"])

    def n_bytes(self) -> dict[str, int]:
        return bytes_of(self._ranker)

    def save(self, folder: Path) -> None:
        self._ranker.save(folder / RANKER)


def bytes_of(ranker: Ranker) -> dict[str, int]:
    """What an engine holds: for its window, which every shard has, and for its subscriptions."""
    stats = ranker.stats()
    of_window = sum(int(stats[f"{part}_bytes"]) for part in ("window", "window_index", "keywords"))
    return {"window": of_window, "lists": int(stats["bytes"]) - of_window, "copies": 0}


def move_in(ranker: Ranker, number: int, plan: ShardPlan, subscriptions: Sequence[pa.Table]) -> None:
    """Have an engine give up all subscriptions and take in those that live in a shard; nobody is told."""
    ranker.unsubscribe(ranker.subscription_table()["id"].to_pylist())
    for table in subscriptions:
        ranker.subscribe_table(table.filter(pa.array(homes(plan, table) == number)))


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Changes one after the other; engines without subscriptions or messages do not know the types of ids."""
    filled = [table for table in tables if table.num_rows]
    return pa.concat_tables(filled) if filled else tables[0]


def with_lists_left(filed: pa.Table, left: Sequence[pa.Table], tick: int) -> pa.Table:
    """The changes of subscriptions that came from elsewhere: their old lists are left, but for what is as it was."""
    old = [(row["subscription_id"], row["message_id"], row["score"]) for lists in left for row in lists.to_pylist()]
    if not old:
        return filed
    new = list(zip(*(filed[name].to_pylist() for name in ("subscription_id", "message_id", "score")), strict=True))
    same = set(old) & set(new)
    entered = filed.filter(pa.array([row not in same for row in new], pa.bool_()))
    rows = [row for row in old if row not in same]
    kinds = left[0].schema
    leaving = pa.table(
        {
            "tick": pa.array([tick] * len(rows), pa.int64()),
            "subscription_id": pa.array([row[0] for row in rows], kinds.field("subscription_id").type),
            "message_id": pa.array([row[1] for row in rows], kinds.field("message_id").type),
            "change": pa.array([-1] * len(rows), pa.int8()),
            "score": pa.array([row[2] for row in rows], pa.float64()),
        }
    )
    return joined([leaving, entered])
