"""A shard in two roles: it looks for messages under its words, and it has the lists of the subscriptions that live in it.

Paper: Wang et al. 2017 (Skype), §7.3.3 to §7.3.5: by keyword, by prefix, and both with location. What copies find goes to the
one owner of a subscription within the batch; the floors of owners go to the copies between two batches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from nearcast.model.inputs import Id
from nearcast.pipeline.keeping.arrow_bytes import table_bytes, table_of
from nearcast.pipeline.keeping.shard_engine import Taken
from nearcast.pipeline.plan.shard_plan import ShardPlan
from nearcast.pipeline.ranked.batch_log import RankedBatch
from nearcast.pipeline.ranked.fused_shard import RANKER, bytes_of, joined, move_in
from nearcast.pipeline.ranked.homes import homes
from nearcast.pipeline.ranked.owner import Owner
from nearcast.pipeline.ranked.scout import Scout

_COPIES = "copies.arrow"


class SplitShard:
    """Shard `number` of a plan by words. `lag` is after how many batches floors are known to copies."""

    def __init__(self, number: int, plan: ShardPlan, owner: Owner, scout: Scout, lag: int = 1) -> None:
        self._number, self._plan, self._lag = number, plan, lag
        self._owner, self.scout = owner, scout
        self._waiting: deque[tuple[int, Sequence[pa.Table]]] = deque()
        self._changed_in: dict[Id, int] = {}

    @classmethod
    def new(cls, number: int, plan: ShardPlan, settings: Mapping[str, Any]) -> SplitShard:
        return cls(number, plan, Owner(**settings), Scout(number, plan, settings))

    @classmethod
    def open(cls, number: int, plan: ShardPlan, settings: Mapping[str, Any], folder: Path) -> SplitShard:
        shard = cls(number, plan, Owner.open(folder / RANKER), Scout(number, plan, settings))
        shard.scout.learn_floors(table_of((folder / _COPIES).read_bytes()))
        return shard

    @classmethod
    def moved(
        cls, number: int, plan: ShardPlan, settings: Mapping[str, Any], folder: Path, subscriptions: Sequence[pa.Table]
    ) -> SplitShard:
        shard = cls(number, plan, Owner.open(folder / RANKER), Scout(number, plan, settings))
        move_in(shard._owner, number, plan, subscriptions)
        for table in subscriptions:
            # Without a floor until their owners tell them.
            shard.scout.file(table)
        return shard

    def tell(self, number: int, batch: RankedBatch, floors: Sequence[pa.Table]) -> dict[int, pa.Table]:
        """What was found in the messages of the batch, for the owners."""
        self._waiting.append((number - 1, floors))
        while self._waiting and self._waiting[0][0] <= number - self._lag:
            made_in, tables = self._waiting.popleft()
            filled = [self._still_true(table, made_in) for table in tables if table.num_rows]
            if filled:
                self.scout.learn_floors(pa.concat_tables(filled))
        if self._lag > 1:
            self._changed_in.update(dict.fromkeys(batch.touched.to_pylist(), number))
        self.scout.forget(batch.removed)
        self.scout.file(batch.put)
        return self.scout.look(batch.messages)

    def take(self, number: int, batch: RankedBatch, told: Sequence[pa.Table]) -> Taken:
        self._owner.begin(number, number - self._lag)
        self._owner.unsubscribe(batch.removed.to_pylist())
        is_here = homes(self._plan, batch.put) == self._number
        filed = self._owner.subscribe_table(batch.put.filter(pa.array(is_here)))
        ticked = self._owner.publish_reported(batch.messages, told)
        report = self._owner.report
        found = Taken(joined([filed, ticked]), list(report.rejected), report.messages, report.candidates)
        found.floors = self._owner.new_floors()
        return found

    def _still_true(self, floors: pa.Table, made_in: int) -> pa.Table:
        """Floors without those of subscriptions that were replaced or removed since."""
        if not self._changed_in:
            return floors
        is_true = [self._changed_in.get(id, -1) <= made_in for id in floors["id"].to_pylist()]
        return floors.filter(pa.array(is_true, pa.bool_()))

    @property
    def n_copies(self) -> int:
        return self.scout.n_copies

    def n_bytes(self) -> dict[str, int]:
        return {**bytes_of(self._owner), "copies": self.scout.n_bytes}

    def subscriptions(self) -> pa.Table:
        return self._owner.subscription_table()

    def save(self, folder: Path) -> None:
        self._owner.save(folder / RANKER)
        (folder / _COPIES).write_bytes(table_bytes(self.scout.copies()))
