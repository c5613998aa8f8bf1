"""Step "rank": batches of messages and changed subscriptions into changes of lists.

A batch: clean and put in order → write it down → let shards tell each other what they must → let them take it → changes appear.
What dies in between runs again with the same words (the log), and leaves no trace of the first try.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nearcast.errors import PipelineError
from nearcast.pipeline.ranked.batch_log import RankedArea, RankedBatch, read_log, table_of, write_log
from nearcast.pipeline.ranked.calling import call_keeper
from nearcast.pipeline.ranked.cleaning_rows import BAD, CHANGE, MESSAGE, RowCleaner, split_rows
from nearcast.pipeline.ranked.homes import FUSED, may_move
from nearcast.pipeline.ranked.layouts import Layout, RankedPlace, layout_of, publish_layout, store_plan
from nearcast.pipeline.ranked.live_shards import Step
from nearcast.pipeline.ranked.planning import plan_ranked
from nearcast.pipeline.ranked.rebalancing import layout_for
from nearcast.pipeline.ranked.retention import is_snapshot_due, remove_old
from nearcast.pipeline.ranked.rules import RankingRules
from nearcast.pipeline.ranked.sequencing import latest_changes, ordered_messages
from nearcast.pipeline.ranked.shard_calls import Call, IdKinds, TakeCall, TellCall
from nearcast.pipeline.ranked.sinks import change_sink
from nearcast.pipeline.settings_table import PipelineSettings
from nearcast.pipeline.sinks import Sink
from nearcast.pipeline.stream_area import StreamArea
from nearcast.pipeline.task_notes import BatchNotes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_RULES = "rules.json"
_TOLD = "told"
_STORED = "stored_bad.parquet"


@dataclass(frozen=True, slots=True)
class _Rows:
    """A batch as it was read: in order, and what could not be used."""

    batch: RankedBatch
    n_read: int
    bad: pa.Table


class RankedRunner:
    """What `foreachBatch` calls; plain data, so that it also runs inside a Spark Connect server."""

    def __init__(self, settings: PipelineSettings, rules: RankingRules, sink: Sink | None = None) -> None:
        self._settings, self._rules = settings, rules
        self._store = settings.store
        self._area, self._ranked = StreamArea(settings.stream), RankedArea(settings.stream)
        self._sink: Sink = sink or change_sink(settings)

    def __call__(self, rows: DataFrame, number: int) -> None:
        began = time.time()
        if self._sink.has(number):
            return
        read = self._read(rows, number)
        place = self._place(rows.sparkSession, read.batch, number)
        step = Step(number, read.batch.mark, read_log(self._store, self._ranked, number - 1).mark if number else "")
        staging = f"{self._area.staging}/{number}-{uuid.uuid4().hex}"
        told = f"{staging}/{_TOLD}"
        shards = range(place.layout.n_shards)
        if place.layout.mechanism not in FUSED or (may_move(place.plan) and read.batch.put.num_rows):
            ask_all(rows.sparkSession, [TellCall(place, shard, step, told) for shard in shards])
        is_saved = is_snapshot_due(place, number, self._settings.snapshot_batches)
        kinds = _id_kinds(rows)
        calls = [TakeCall(place, shard, step, told, staging, kinds, is_saved) for shard in shards]
        self._sink.write(take_frame(rows.sparkSession, calls), number, staging)
        notes = BatchNotes(self._store, staging)
        self._keep_quarantine(notes, read.bad, number)
        self._keep_told(told, number)
        self._store.write_json(self._area.batch_file(number), self._facts(number, place.layout, read, notes, began))
        self._sink.commit(number, staging)
        self._store.delete(staging)
        remove_old(place, number)

    # --- before shards take it ---------------------------------------------------------------------------------------

    def _read(self, rows: DataFrame, number: int) -> _Rows:
        """Clean the rows in tasks; here they are put in order and written down."""
        cleaner = RowCleaner(self._settings.space, self._settings.analysis.to_dict())
        cleaned = rows.mapInArrow(_cleaning(cleaner), _clean_schema(rows)).toArrow()
        messages, changes, bad = split_rows(cleaned)
        put, removed = latest_changes(changes)
        batch = RankedBatch.of(put, removed, ordered_messages(messages))
        return _Rows(write_log(self._store, self._ranked, number, batch), cleaned.num_rows, bad)

    def _place(self, session: SparkSession, batch: RankedBatch, number: int) -> RankedPlace:
        """Where the shards of the batch are; the first batch decides how they are cut."""
        layout = layout_of(self._store, self._ranked, number)
        settings = self._settings
        if layout is None:
            plan = plan_ranked(settings.mechanism, settings.shards, settings.space, batch.put, batch.messages)
            layout = Layout(store_plan(self._store, self._ranked, plan), number, plan.mechanism, plan.n_shards)
            publish_layout(self._store, self._ranked, layout)
        place = RankedPlace(self._store, settings.shared_dir, settings.stream, self._rules, layout)
        return replace(place, layout=layout_for(place, number, settings.plan_rows, lambda calls: ask_all(session, calls)))

    # --- after they did ----------------------------------------------------------------------------------------------

    def _keep_quarantine(self, notes: BatchNotes, bad: pa.Table, number: int) -> None:
        target = f"{self._area.quarantine}/batch={number}"
        self._store.delete(target)
        if notes.quarantined:
            self._store.move(notes.quarantine_folder, target)
        if bad.num_rows:
            self._store.write_table(f"{target}/{_STORED}", bad)

    def _keep_told(self, told: str, number: int) -> None:
        """Keep what shards told each other, for those who go through the batch again."""
        target = self._ranked.told(number)
        self._store.delete(target)
        if self._store.exists(told):
            self._store.move(told, target)

    def _facts(self, number: int, layout: Layout, read: _Rows, notes: BatchNotes, began: float) -> dict[str, Any]:
        return {
            "batch": number,
            "version": layout.number,
            "plan": layout.number,
            "mode": layout.mechanism,
            "read": read.n_read,
            "quarantined": notes.quarantined + read.bad.num_rows,
            "deliveries": notes.deliveries,
            "work": {str(shard): asdict(work) for shard, work in sorted(notes.work.items())},
            "began": began,
            "seconds": time.time() - began,
        }


def take_frame(session: SparkSession, calls: list[TakeCall]) -> DataFrame:
    """The changes that shards make, each asked by a task of its own."""
    kinds = calls[0].kinds
    schema = f"tick bigint, subscription_id {kinds.subscription}, message_id {kinds.message}, change tinyint, score double"

    def ask(number: int) -> pa.Table:
        return table_of(call_keeper(calls[number].place.shared_dir, calls[number]))

    return _numbers(session, calls).mapInArrow(_for_each(ask), schema)


def ask_all(session: SparkSession, calls: Sequence[Call]) -> None:
    """Have every call made by a task of its own."""

    def ask(number: int) -> pa.Table:
        call_keeper(calls[number].place.shared_dir, calls[number])
        return pa.table({"id": pa.array([number], pa.int64())})

    _numbers(session, calls).mapInArrow(_for_each(ask), "id long").collect()


def _numbers(session: SparkSession, calls: Sequence[Call]) -> DataFrame:
    return session.range(0, len(calls), 1, len(calls))


def _for_each(ask: Callable[[int], pa.Table]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from ask(number).to_batches()

    return run


def _cleaning(cleaner: RowCleaner) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from cleaner.clean(pa.Table.from_batches([batch])).to_batches()

    return run


def _fields(rows: DataFrame, name: str) -> dict[str, str]:
    struct: Any = rows.schema[name].dataType
    return {field.name: field.dataType.simpleString() for field in struct.fields}


def _clean_schema(rows: DataFrame) -> str:
    """What `RowCleaner` makes of such rows."""
    raw = _fields(rows, MESSAGE)
    position = ("x0", "y0", "x1", "y1") if "x0" in raw else ("x", "y")
    message = {"id": raw["id"], "keywords": raw.get("keywords", "array<string>"), **dict.fromkeys(position, "double")}
    message |= {"time": raw["time"]} if "time" in raw else {}
    bad = dict.fromkeys(("id", "reason", "row"), "string")
    structs = {MESSAGE: message, CHANGE: _fields(rows, CHANGE), BAD: bad}
    listed = {name: ", ".join(f"{field}: {kind}" for field, kind in fields.items()) for name, fields in structs.items()}
    return ", ".join(f"{name} struct<{fields}>" for name, fields in listed.items())


def _id_kinds(rows: DataFrame) -> IdKinds:
    return IdKinds(_fields(rows, CHANGE)["id"], _fields(rows, MESSAGE)["id"])


def start_rank(rows: DataFrame, settings: PipelineSettings) -> StreamingQuery:
    """Start ranking a stream of rows (see `sources`); what it did is told by `status`."""
    store, area = settings.store, StreamArea(settings.stream)
    rules = _rules_of(settings)
    # Tries that died left these; no try of this stream is alive now.
    store.delete(area.staging)
    if store.names(area.batches) and not store.exists(area.checkpoint):
        raise PipelineError(
            f"the stream {settings.stream!r} has delivered, but its checkpoint {store.address(area.checkpoint)!r} is gone; "
            "restore it, or give the stream another name: --set stream=NAME"
        )
    writer = rows.writeStream.queryName(settings.stream).foreachBatch(RankedRunner(settings, rules))
    writer = writer.option("checkpointLocation", store.address(area.checkpoint))
    is_finite = settings.trigger == "available_now"
    return (writer.trigger(availableNow=True) if is_finite else writer.trigger(processingTime=settings.trigger)).start()


def _rules_of(settings: PipelineSettings) -> RankingRules:
    """The rules that the stream began with; they cannot change, as lists would not follow from the window any more."""
    store, name = settings.store, f"{RankedArea(settings.stream).root}/{_RULES}"
    rules = RankingRules.of(settings)
    if not store.exists(name):
        store.write_json(name, rules.to_dict())
    began_with = RankingRules.from_dict(store.read_json(name))
    if rules != began_with:
        raise PipelineError(
            f"the stream {settings.stream!r} began with {began_with}; now it was given {rules}: "
            "go on with those, or give the stream another name: --set stream=NAME"
        )
    return began_with
