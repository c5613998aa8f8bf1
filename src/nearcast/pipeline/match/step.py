"""The matching step: Arrow tables of messages in, deliveries out, over the shards of one version. Knows nothing of Spark.

Two ways lead to the same deliveries. Everywhere: a process has all shards and takes each message through those it needs.
Routed: `route` says which shards each message needs, somebody brings it there, and `match_routed` goes through one shard.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.pipeline.index.open_version import IndexPlace
from nearcast.pipeline.index.shard_folder import REACH, OpenShard
from nearcast.pipeline.plan.clause_view import view_messages
from nearcast.pipeline.plan.routing import is_reporter, reach_lists, reach_matrix, route_messages
from nearcast.pipeline.prepare.cleaning import CORRUPT, QUARANTINE_SCHEMA, Cleaner, quarantine_rows

SHARD = "_shard"


@dataclass(slots=True)
class ShardWork:
    """What one shard did."""

    messages: int = 0
    deliveries: int = 0
    candidates: int = 0
    seconds: float = 0.0

    def add(self, other: ShardWork) -> None:
        self.messages += other.messages
        self.deliveries += other.deliveries
        self.candidates += other.candidates
        self.seconds += other.seconds


@dataclass(slots=True)
class StepNotes:
    """What a task tells besides its deliveries: rows read, rows that could not be used, the work of each shard."""

    read: int = 0
    quarantine: list[pa.Table] = field(default_factory=list)
    work: dict[int, ShardWork] = field(default_factory=dict)

    def quarantined(self) -> pa.Table:
        return pa.concat_tables([QUARANTINE_SCHEMA.empty_table(), *self.quarantine])


class MatchStep:
    """Matches tables against one version, and notes what it does."""

    def __init__(self, place: IndexPlace) -> None:
        self._place = place
        self._version = place.version
        plan = place.plan
        self._cleaner = Cleaner(plan.space, plan.analysis.to_dict())
        self._subscription_type = pa.int64() if place.version.id_type == "long" else pa.string()
        self.notes = StepNotes()
        place.warm_up()

    def match_everywhere(self, messages: pa.Table) -> pa.Table:
        """The deliveries of raw messages."""
        self.notes.read += messages.num_rows
        if self._version.n_shards == 1 and _is_plain(messages):
            return self._match_raw(messages)
        clean, reach = self._route(messages)
        found = [self._match_shard(shard, clean, reach) for shard in range(self._version.n_shards) if reach[:, shard].any()]
        return pa.concat_tables([self._nothing(clean), *found])

    def route(self, messages: pa.Table) -> pa.Table:
        """Clean messages with the column of the shards they need; those that need none are left out."""
        self.notes.read += messages.num_rows
        clean, reach = self._route(messages)
        is_needed = reach.any(axis=1)
        return clean.append_column(REACH, reach_lists(reach)).filter(pa.array(is_needed))

    def match_routed(self, messages: pa.Table) -> pa.Table:
        """The deliveries of routed messages, each in the shard its column says."""
        shards = messages[SHARD].to_numpy()
        reach = reach_matrix(messages[REACH].combine_chunks(), self._version.n_shards)
        clean = messages.drop_columns([SHARD, REACH])
        found = []
        for shard in np.unique(shards).tolist():
            rows = np.flatnonzero(shards == shard)
            found.append(self._match_rows(self._place.shard(shard), clean, rows, reach))
        return pa.concat_tables([self._nothing(clean), *found])

    def _route(self, messages: pa.Table) -> tuple[pa.Table, NDArray[np.bool_]]:
        cleaned = self._cleaner.clean(messages)
        if cleaned.quarantine.num_rows:
            self.notes.quarantine.append(cleaned.quarantine)
        plan, table = self._place.plan, self._place.routing_table()
        view = view_messages(cleaned.messages, table.keywords)
        return cleaned.messages, route_messages(plan.root, plan.n_shards, view, table)

    def _match_raw(self, messages: pa.Table) -> pa.Table:
        """The short way of a single shard: the matcher reads and judges the rows itself."""
        began = time.perf_counter()
        matcher = self._place.shard(0).matcher
        found = matcher.match_table(messages)
        report = matcher.report
        if report.rejected:
            self.notes.quarantine.append(quarantine_rows(messages, report.rejected))
        done = ShardWork(report.messages, found.num_rows, report.candidates, time.perf_counter() - began)
        self.notes.work.setdefault(0, ShardWork()).add(done)
        return self._typed(found)

    def _match_shard(self, shard: int, clean: pa.Table, reach: NDArray[np.bool_]) -> pa.Table:
        return self._match_rows(self._place.shard(shard), clean, np.flatnonzero(reach[:, shard]), reach)

    def _match_rows(self, shard: OpenShard, clean: pa.Table, rows: NDArray[np.int64], reach: NDArray[np.bool_]) -> pa.Table:
        """Match some rows in one shard; of pairs that several shards find, only those that this one reports."""
        began = time.perf_counter()
        # Rows stand in for ids: two rows of one batch may have the same id, and the reach is by row.
        numbered = clean.set_column(0, "id", pa.array(np.arange(clean.num_rows))).take(pa.array(rows))
        found = shard.matcher.match_table(numbered)
        candidates = shard.matcher.report.candidates
        row, ids = found["message_id"].to_numpy(), found["subscription_id"].combine_chunks()
        if shard.number > 0 and len(row):
            is_kept = is_reporter(shard.number, shard.shared.reach(ids), reach[row])
            row, ids = row[is_kept], ids.filter(pa.array(is_kept))
        done = ShardWork(len(rows), len(row), candidates, time.perf_counter() - began)
        self.notes.work.setdefault(shard.number, ShardWork()).add(done)
        return self._typed(pa.table({"message_id": clean["id"].take(pa.array(row)), "subscription_id": ids}))

    def _typed(self, found: pa.Table) -> pa.Table:
        """An engine without subscriptions does not know the type of their ids; the version does."""
        return found.set_column(1, "subscription_id", found["subscription_id"].cast(self._subscription_type))

    def _nothing(self, messages: pa.Table) -> pa.Table:
        schema = pa.schema({"message_id": messages.schema.field("id").type, "subscription_id": self._subscription_type})
        return schema.empty_table()


def _is_plain(messages: pa.Table) -> bool:
    """Whether an engine reads such a table as it is."""
    names = set(messages.column_names)
    return CORRUPT not in names and not {"keywords", "text"} <= names and not {"x", "x0"} <= names
