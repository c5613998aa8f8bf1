"""Step "rank": batches of messages and changed subscriptions into changes of lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearcast.pipeline.io.sinks import Sink
from nearcast.pipeline.keeping.areas import RankedArea
from nearcast.pipeline.keeping.asking import AskAll
from nearcast.pipeline.keeping.batch_log import write_log
from nearcast.pipeline.keeping.layouts import Layout, ShardPlace
from nearcast.pipeline.keeping.row_blocks import rows_in
from nearcast.pipeline.keeping.row_frames import BAD, CHANGE, MESSAGE, fields_of, message_fields, schema_of
from nearcast.pipeline.keeping.runner import ReadRows, ShardedRunner, check_rules, cleaned_rows, start_sharded
from nearcast.pipeline.keeping.sequencing import latest_changes, ordered_messages
from nearcast.pipeline.keeping.shard_calls import IdKinds
from nearcast.pipeline.keeping.sinks import change_sink
from nearcast.pipeline.keeping.wishes import Wish
from nearcast.pipeline.ranked.batch_log import RankedBatch
from nearcast.pipeline.ranked.cleaning_rows import RowCleaner
from nearcast.pipeline.ranked.homes import FUSED, may_move
from nearcast.pipeline.ranked.layouts import RankedPlace, store_plan
from nearcast.pipeline.ranked.planning import plan_ranked
from nearcast.pipeline.ranked.rebalancing import move_to
from nearcast.pipeline.ranked.rules import RankingRules
from nearcast.pipeline.settings import PipelineSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


class RankedRunner(ShardedRunner[RankedBatch]):
    """A batch of a ranked stream."""

    more_columns = ", score double"

    def __init__(self, settings: PipelineSettings, rules: RankingRules, sink: Sink | None = None) -> None:
        super().__init__(settings, RankedArea(settings.stream), sink or change_sink(settings))
        self._rules = rules

    def _read(self, rows: DataFrame, number: int) -> ReadRows[RankedBatch]:
        cleaner = RowCleaner(self._settings.space, self._settings.analysis.to_dict())
        schema = schema_of({MESSAGE: message_fields(rows), CHANGE: fields_of(rows, CHANGE)})
        cleaned = cleaned_rows(rows, cleaner, schema)
        messages, changes, bad = (rows_in(cleaned, name) for name in (MESSAGE, CHANGE, BAD))
        put, removed = latest_changes(changes)
        batch = RankedBatch.of(put, removed, ordered_messages(messages))
        return ReadRows(write_log(self._store, self._shards, number, batch), cleaned.num_rows, bad)

    def _first_layout(self, batch: RankedBatch, number: int) -> Layout:
        settings = self._settings
        plan = plan_ranked(settings.mechanism, settings.shards, settings.space, batch.put, batch.messages)
        return Layout(store_plan(self._store, self._shards, plan), number, plan.mechanism, plan.n_shards)

    def _place(self, layout: Layout) -> RankedPlace:
        return RankedPlace(self._store, self._settings.shared_dir, self._settings.stream, self._rules, layout)

    def _moved(self, place: ShardPlace, number: int, ask: AskAll, wish: Wish) -> Layout:
        return move_to(self._place(place.layout), wish, number, self._settings.plan_rows, ask)

    def _has_to_tell(self, place: ShardPlace, batch: RankedBatch) -> bool:
        return place.layout.mechanism not in FUSED or (batch.put.num_rows > 0 and may_move(self._place(place.layout).plan))

    def _id_kinds(self, rows: DataFrame) -> IdKinds:
        return IdKinds(fields_of(rows, CHANGE)["id"], fields_of(rows, MESSAGE)["id"])


def start_rank(rows: DataFrame, settings: PipelineSettings) -> StreamingQuery:
    """Start ranking a stream of rows (see `sources`); what it did is told by `status`."""
    rules = RankingRules.of(settings)
    # Others would not do: lists would not follow from the window any more.
    check_rules(settings, RankedArea(settings.stream), rules)
    return start_sharded(rows, settings, RankedRunner(settings, rules))
