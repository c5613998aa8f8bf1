"""Calls to shards as jobs of Spark: each is made by a task of its own, on whichever host that runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from nearcast.pipeline.keeping.arrow_bytes import table_of
from nearcast.pipeline.keeping.calling import call_keeper
from nearcast.pipeline.keeping.shard_calls import Call, TakeCall

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AskAll = Callable[[Sequence[Call]], None]
"""Has every call made, somewhere where shards are alive."""
MapBatches = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def take_frame(session: SparkSession, calls: Sequence[TakeCall], more_columns: str = "") -> DataFrame:
    """The changes that shards make; `more_columns` are those beside tick, ids and change."""
    kinds = calls[0].kinds
    schema = f"tick bigint, subscription_id {kinds.subscription}, message_id {kinds.message}, change tinyint{more_columns}"

    def ask(number: int) -> pa.Table:
        return table_of(call_keeper(calls[number].place.shared_dir, calls[number]))

    return _numbers(session, calls).mapInArrow(_for_each(ask), schema)


def ask_all(session: SparkSession, calls: Sequence[Call]) -> None:
    """Have every call made, for what it does."""

    def ask(number: int) -> pa.Table:
        call_keeper(calls[number].place.shared_dir, calls[number])
        return pa.table({"id": pa.array([number], pa.int64())})

    _numbers(session, calls).mapInArrow(_for_each(ask), "id long").collect()


def _numbers(session: SparkSession, calls: Sequence[Call]) -> DataFrame:
    return session.range(0, len(calls), 1, len(calls))


def _for_each(ask: Callable[[int], pa.Table]) -> MapBatches:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from ask(number).to_batches()

    return run
