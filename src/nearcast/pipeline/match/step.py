"""The matching step: Arrow tables of messages in, deliveries out, over the shards of one version. Knows nothing of Spark.

Two paths give the same deliveries. Everywhere: a process has all shards and matches each message in its target shards. Routed:
`route` computes the target shards, a shuffle brings each message to them, and `match_routed` matches it in one shard.

A task writes its metrics into a small file, named after its position in the job. The folder belongs to one attempt of one
batch, so those of a failed attempt are never counted.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.pipeline.index.open_version import IndexLocation
from nearcast.pipeline.index.shard_folder import SHARD_LIST, OpenShard
from nearcast.pipeline.plan.clause_view import view_messages
from nearcast.pipeline.plan.routing import reports_here, route_messages, shard_lists, shard_matrix
from nearcast.pipeline.prepare.cleaning import CORRUPT, QUARANTINE_SCHEMA, Cleaner, quarantine_rows
from nearcast.pipeline.store import Store

SHARD = "_shard"


@dataclass(slots=True)
class ShardWork:
    """The work of one shard."""

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
class StepMetrics:
    """The metrics of a task: rows read, rejected rows, the work of each shard."""

    read: int = 0
    quarantine: list[pa.Table] = field(default_factory=list)
    work: dict[int, ShardWork] = field(default_factory=dict)

    def quarantined(self) -> pa.Table:
        return pa.concat_tables([QUARANTINE_SCHEMA.empty_table(), *self.quarantine])


class MatchStep:
    """Matches tables against one version and counts its work."""

    def __init__(self, location: IndexLocation) -> None:
        self._location = location
        self._version = location.version
        plan = location.plan
        self._cleaner = Cleaner(plan.space, plan.analysis.to_dict())
        self._subscription_type = pa.int64() if location.version.id_type == "long" else pa.string()
        self.metrics = StepMetrics()
        location.warm_up()

    def match_everywhere(self, messages: pa.Table) -> pa.Table:
        """The deliveries of raw messages."""
        self.metrics.read += messages.num_rows
        if self._version.n_shards == 1 and _is_plain(messages):
            return self._match_raw(messages)
        clean, target_shards = self._route(messages)
        deliveries = [
            self._match_shard(shard, clean, target_shards)
            for shard in range(self._version.n_shards)
            if target_shards[:, shard].any()
        ]
        return pa.concat_tables([self._no_deliveries(clean), *deliveries])

    def route(self, messages: pa.Table) -> pa.Table:
        """Clean messages with the column of their target shards; those without any are left out."""
        self.metrics.read += messages.num_rows
        clean, target_shards = self._route(messages)
        has_target = target_shards.any(axis=1)
        return clean.append_column(SHARD_LIST, shard_lists(target_shards)).filter(pa.array(has_target))

    def match_routed(self, messages: pa.Table) -> pa.Table:
        """The deliveries of routed messages, each matched in the shard of its column."""
        shards = messages[SHARD].to_numpy()
        target_shards = shard_matrix(messages[SHARD_LIST].combine_chunks(), self._version.n_shards)
        clean = messages.drop_columns([SHARD, SHARD_LIST])
        deliveries = []
        for shard in np.unique(shards).tolist():
            rows = np.flatnonzero(shards == shard)
            deliveries.append(self._match_rows(self._location.shard(shard), clean, rows, target_shards))
        return pa.concat_tables([self._no_deliveries(clean), *deliveries])

    def _route(self, messages: pa.Table) -> tuple[pa.Table, NDArray[np.bool_]]:
        cleaned = self._cleaner.clean(messages)
        if cleaned.quarantine.num_rows:
            self.metrics.quarantine.append(cleaned.quarantine)
        plan, table = self._location.plan, self._location.routing_table()
        view = view_messages(cleaned.messages, table.keywords)
        return cleaned.messages, route_messages(plan.root, plan.n_shards, view, table)

    def _match_raw(self, messages: pa.Table) -> pa.Table:
        """The fast path for a single shard: the matcher reads and validates the rows itself."""
        began = time.perf_counter()
        matcher = self._location.shard(0).matcher
        deliveries = matcher.match_table(messages)
        report = matcher.report
        if report.rejected:
            self.metrics.quarantine.append(quarantine_rows(messages, report.rejected))
        work = ShardWork(report.messages, deliveries.num_rows, report.candidates, time.perf_counter() - began)
        self.metrics.work.setdefault(0, ShardWork()).add(work)
        return self._cast_ids(deliveries)

    def _match_shard(self, shard: int, clean: pa.Table, target_shards: NDArray[np.bool_]) -> pa.Table:
        return self._match_rows(self._location.shard(shard), clean, np.flatnonzero(target_shards[:, shard]), target_shards)

    def _match_rows(
        self, shard: OpenShard, clean: pa.Table, rows: NDArray[np.int64], target_shards: NDArray[np.bool_]
    ) -> pa.Table:
        """The deliveries of some rows in one shard; of pairs that several shards find, only those that this one reports."""
        began = time.perf_counter()
        # Row numbers replace the ids: two rows of a batch may have the same id, and target shards are by row.
        numbered = clean.set_column(0, "id", pa.array(np.arange(clean.num_rows))).take(pa.array(rows))
        matches = shard.matcher.match_table(numbered)
        candidates = shard.matcher.report.candidates
        row, ids = matches["message_id"].to_numpy(), matches["subscription_id"].combine_chunks()
        if shard.number > 0 and len(row):
            is_reported = reports_here(shard.number, shard.shared.target_shards(ids), target_shards[row])
            row, ids = row[is_reported], ids.filter(pa.array(is_reported))
        work = ShardWork(len(rows), len(row), candidates, time.perf_counter() - began)
        self.metrics.work.setdefault(shard.number, ShardWork()).add(work)
        return self._cast_ids(pa.table({"message_id": clean["id"].take(pa.array(row)), "subscription_id": ids}))

    def _cast_ids(self, deliveries: pa.Table) -> pa.Table:
        """Deliveries with the id type of the version: an engine without subscriptions does not know it."""
        return deliveries.set_column(1, "subscription_id", deliveries["subscription_id"].cast(self._subscription_type))

    def _no_deliveries(self, messages: pa.Table) -> pa.Table:
        schema = pa.schema({"message_id": messages.schema.field("id").type, "subscription_id": self._subscription_type})
        return schema.empty_table()


def _is_plain(messages: pa.Table) -> bool:
    """Whether an engine can read the table unchanged."""
    names = set(messages.column_names)
    return CORRUPT not in names and not {"keywords", "text"} <= names and not {"x", "x0"} <= names


_QUARANTINE = "quarantine"
_METRICS = "notes"


def write_metrics(store: Store, folder: str, task: str, metrics: StepMetrics) -> None:
    """Write the metrics of one task. A task that runs twice writes the same file twice."""
    content: dict[str, Any] = {"read": metrics.read, "work": {str(shard): asdict(work) for shard, work in metrics.work.items()}}
    quarantined = metrics.quarantined()
    content["quarantined"] = quarantined.num_rows
    if quarantined.num_rows:
        store.write_table(f"{folder}/{_QUARANTINE}/{task}.parquet", quarantined)
    store.write_json(f"{folder}/{_METRICS}/{task}.json", content)


class BatchMetrics:
    """The sum of the metrics of all tasks of one attempt of a batch."""

    def __init__(self, store: Store, folder: str) -> None:
        self.read = 0
        self.quarantined = 0
        self.work: dict[int, ShardWork] = {}
        self.quarantine_folder = f"{folder}/{_QUARANTINE}"
        for name in store.names(f"{folder}/{_METRICS}"):
            metrics = store.read_json(f"{folder}/{_METRICS}/{name}")
            self.read += metrics["read"]
            self.quarantined += metrics["quarantined"]
            for shard, work in metrics["work"].items():
                self.work.setdefault(int(shard), ShardWork()).add(ShardWork(**work))

    @property
    def deliveries(self) -> int:
        return sum(work.deliveries for work in self.work.values())
