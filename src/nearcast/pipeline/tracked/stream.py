"""Step "track": batches of messages, moves and changed subscriptions into changes of results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearcast.errors import PipelineError
from nearcast.pipeline.io.sinks import Sink
from nearcast.pipeline.keeping.areas import TrackedArea
from nearcast.pipeline.keeping.asking import AskAll
from nearcast.pipeline.keeping.batch_log import write_log
from nearcast.pipeline.keeping.layouts import Layout, ShardPlace, reserve_layout
from nearcast.pipeline.keeping.row_blocks import rows_in
from nearcast.pipeline.keeping.row_frames import BAD, CHANGE, MESSAGE, fields_of, message_fields, schema_of
from nearcast.pipeline.keeping.runner import ReadRows, ShardedRunner, check_rules, cleaned_rows, start_sharded
from nearcast.pipeline.keeping.shard_calls import IdKinds
from nearcast.pipeline.keeping.sinks import change_sink
from nearcast.pipeline.keeping.wishes import Wish
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.tracked.batches import Clock, TrackedBatch
from nearcast.pipeline.tracked.cleaning_rows import MOVE, RowCleaner
from nearcast.pipeline.tracked.layouts import MECHANISM, TrackedPlace
from nearcast.pipeline.tracked.rebalancing import move_to
from nearcast.pipeline.tracked.rules import TrackingRules
from nearcast.pipeline.tracked.sequencing import sequenced

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_SECONDS = {"time": "double"}


class TrackedRunner(ShardedRunner[TrackedBatch]):
    """A batch of a tracked stream."""

    def __init__(self, settings: PipelineSettings, rules: TrackingRules, sink: Sink | None = None) -> None:
        super().__init__(settings, TrackedArea(settings.stream), sink or change_sink(settings))
        self._rules = rules

    def _read(self, rows: DataFrame, number: int) -> ReadRows[TrackedBatch]:
        cleaner = RowCleaner(self._settings.space, self._settings.analysis.to_dict())
        fields = {
            MESSAGE: message_fields(rows, {**_SECONDS, "expires": "double"}),
            CHANGE: {**_untimed(rows, CHANGE), **_SECONDS},
            MOVE: {**_untimed(rows, MOVE), **_SECONDS},
        }
        cleaned = cleaned_rows(rows, cleaner, schema_of(fields))
        changes, moves, messages = (rows_in(cleaned, name) for name in (CHANGE, MOVE, MESSAGE))
        began = self._before(number).ended if number else Clock()
        batch = sequenced(changes, moves, messages, began, self._rules)
        return ReadRows(write_log(self._store, self._shards, number, batch), cleaned.num_rows, rows_in(cleaned, BAD))

    def _before(self, number: int) -> TrackedBatch:
        return TrackedBatch.from_bytes(self._store.read_bytes(self._shards.log(number - 1)))

    def _first_layout(self, batch: TrackedBatch, number: int) -> Layout:
        return Layout(reserve_layout(self._store, self._shards), number, MECHANISM, self._settings.shards)

    def _place(self, layout: Layout) -> TrackedPlace:
        return TrackedPlace(self._store, self._settings.shared_dir, self._settings.stream, self._rules, layout)

    def _moved(self, place: ShardPlace, number: int, ask: AskAll, wish: Wish) -> Layout:
        return move_to(self._place(place.layout), wish, number, ask)

    def _id_kinds(self, rows: DataFrame) -> IdKinds:
        return IdKinds(fields_of(rows, CHANGE)["id"], fields_of(rows, MESSAGE)["id"])


def _untimed(rows: DataFrame, name: str) -> dict[str, str]:
    """Fields without the time, which comes last in clean rows."""
    return {field: kind for field, kind in fields_of(rows, name).items() if field != "time"}


def start_track(rows: DataFrame, settings: PipelineSettings) -> StreamingQuery:
    """Start tracking a stream of rows (see `sources`); what it did is told by `status`."""
    if settings.mechanism not in ("auto", MECHANISM):
        raise PipelineError(f"mechanism = {settings.mechanism!r} was given; track shares out by {MECHANISM}: leave it out")
    rules = TrackingRules.of(settings)
    # An index that cannot be is told here: a stream keeps what it was given when it began.
    rules.matcher()
    check_rules(settings, TrackedArea(settings.stream), rules)
    return start_sharded(rows, settings, TrackedRunner(settings, rules))
