"""A shard of a tracked stream: an engine of one process over its share of the subscriptions, and all messages.

A subscription lives in the shard that its id says, wherever it travels, so nothing ever moves from shard to shard.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.moving.engine import MovingMatcher
from nearcast.pipeline.keeping.arrow_bytes import table_bytes, table_of
from nearcast.pipeline.keeping.shard_engine import Taken
from nearcast.pipeline.plan.clause_view import id_hashes
from nearcast.pipeline.prepare.cleaning import quarantine_rows
from nearcast.pipeline.tracked.batches import CHANGES, MESSAGES, Tick, TrackedBatch
from nearcast.pipeline.tracked.last_times import LastTimes

_MATCHER, _TIMES = "matcher", "times.arrow"
_NOTHING = pa.schema({"subscription_id": pa.int64(), "message_id": pa.int64(), "change": pa.int8()}).empty_table()


class TrackedShard:
    """Shard `number` of `n_shards`."""

    def __init__(self, number: int, n_shards: int, matcher: MovingMatcher, times: LastTimes | None = None) -> None:
        self._number, self._n_shards, self._matcher = number, n_shards, matcher
        self._times = LastTimes() if times is None else times

    @classmethod
    def open(cls, number: int, n_shards: int, folder: Path) -> TrackedShard:
        return cls(number, n_shards, *_opened(folder))

    @classmethod
    def moved(cls, number: int, n_shards: int, folders: Sequence[Path]) -> TrackedShard:
        """A shard of those subscriptions that live here of all shards that were saved in folders; messages are alike there."""
        opened = [_opened(folder) for folder in folders]
        shard = cls(number, n_shards, opened[0][0])
        sources = []
        for matcher, times in opened:
            ids = matcher.subscription_ids()
            ids = ids.filter(pa.array(shard._is_home(ids), pa.bool_()))
            sources.append((matcher, ids))
            shard._times.take_over(times, ids)
        shard._matcher.take_over(sources)
        return shard

    def tell(self, number: int, batch: TrackedBatch, floors: Sequence[pa.Table]) -> dict[int, pa.Table]:
        """Nothing: a shard has all it needs."""
        return {}

    def take(self, number: int, batch: TrackedBatch, told: Sequence[pa.Table]) -> Taken:
        taken = Taken(_NOTHING)
        found: list[tuple[int, pa.Table]] = []
        aside: list[pa.Table] = []
        rows = np.flatnonzero(self._is_home(batch.moves["id"].combine_chunks()))
        moves = batch.moves.take(pa.array(rows))
        for tick in batch.ticks():
            if tick.kind == CHANGES:
                changes = [self._change(batch)]
            elif tick.kind == MESSAGES:
                changes = [self._matcher.publish_table(batch.messages.slice(tick.first, tick.n))]
                taken.n_messages += self._matcher.report.messages
                taken.rejected += [(tick.first + row, reason) for row, reason in self._matcher.report.rejected]
            else:
                begin, end = np.searchsorted(rows, [tick.first, tick.first + tick.n]).tolist()
                changes = self._move(tick, moves.slice(begin, end - begin), aside)
            taken.candidates += self._matcher.report.candidates
            found += [(tick.number, table) for table in changes if table.num_rows]
        taken.changes = _numbered(found)
        taken.aside = pa.concat_tables(aside) if aside else None
        return taken

    def save(self, folder: Path) -> None:
        self._matcher.save(folder / _MATCHER)
        (folder / _TIMES).write_bytes(table_bytes(self._times.to_table()))

    def _change(self, batch: TrackedBatch) -> pa.Table:
        """File and forget subscriptions."""
        gone = batch.removed.to_pylist()
        self._matcher.unsubscribe(gone)
        self._times.forget(gone)
        put = batch.put.filter(pa.array(self._is_home(batch.put["id"].combine_chunks()), pa.bool_()))
        self._times.replace(put)
        return self._matcher.subscribe_table(put.drop_columns(["time"]))

    def _move(self, tick: Tick, moves: pa.Table, aside: list[pa.Table]) -> list[pa.Table]:
        """What ends by now leaves, whether somebody moves here or not; then who moves. Moves that cannot be used go aside."""
        changes = [self._matcher.advance_table(tick.now)] if math.isfinite(tick.now) else []
        moves = self._times.without_late(moves)
        if moves.num_rows:
            changes.append(self._matcher.move_table(moves.drop_columns(["time"])))
            rejected = self._matcher.report.rejected
            self._times.note(moves, {row for row, _ in rejected})
            if rejected:
                aside.append(quarantine_rows(moves, rejected))
        return changes

    def _is_home(self, ids: pa.Array) -> NDArray[np.bool_]:
        return np.asarray(id_hashes(ids) % self._n_shards == self._number)


def _opened(folder: Path) -> tuple[MovingMatcher, LastTimes]:
    return MovingMatcher.open(folder / _MATCHER), LastTimes.from_table(table_of((folder / _TIMES).read_bytes()))


def _numbered(found: Sequence[tuple[int, pa.Table]]) -> pa.Table:
    """The changes of all ticks, with the numbers of these; engines without subscriptions do not know the types of ids."""
    changes = pa.concat_tables([table for _, table in found]) if found else _NOTHING
    ticks = np.repeat([number for number, _ in found], [table.num_rows for _, table in found]).astype(np.int64)
    return changes.add_column(0, "tick", pa.array(ticks))
