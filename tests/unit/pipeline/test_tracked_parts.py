"""Parts of a tracked stream: the order of a batch and its ticks, what is written down, positions that come late."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from nearcast.errors import PipelineError
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.tracked.batches import CHANGES, MESSAGES, MOVES, Clock, Tick, TrackedBatch
from nearcast.pipeline.tracked.last_times import LastTimes
from nearcast.pipeline.tracked.rules import TrackingRules
from nearcast.pipeline.tracked.sequencing import sequenced

Row = tuple[int, float | None]


def changes_of(rows: list[tuple[int, int]]) -> pa.Table:
    ids, change = [row[0] for row in rows], [row[1] for row in rows]
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "change": pa.array(change, pa.int8()), "time": pa.nulls(len(rows), pa.float64())}
    )


def rows_of(rows: list[Row], **more: pa.Array) -> pa.Table:
    ids, time = [row[0] for row in rows], [row[1] for row in rows]
    return pa.table({"id": pa.array(ids, pa.int64()), "time": pa.array(time, pa.float64()), **more})


def batch_of(
    moves: list[Row],
    messages: list[Row],
    began: Clock,
    tick_seconds: float,
    changes: pa.Table | None = None,
    lifetime: float = 0.0,
    expires: list[float | None] | None = None,
) -> TrackedBatch:
    ends = pa.array(expires or [None] * len(messages), pa.float64())
    rules = TrackingRules("plane", tick_seconds=tick_seconds, lifetime_seconds=lifetime)
    given = changes_of([]) if changes is None else changes
    return sequenced(given, rows_of(moves), rows_of(messages, expires=ends), began, rules)


def test_changes_come_first_then_in_each_slot_moves_before_messages() -> None:
    moves: list[Row] = [(1, 12.5), (2, 10.2), (1, 10.9)]
    messages: list[Row] = [(8, 10.1), (9, 12.5), (7, 11.0)]
    changes = changes_of([(5, 1), (4, -1)])
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        batch = batch_of([moves[at] for at in order], [messages[at] for at in order], Clock(40, 9.0), 1.0, changes)
        assert batch.put["id"].to_pylist() == [5]
        assert batch.removed.to_pylist() == [4]
        assert batch.moves["id"].to_pylist() == [2, 1, 1]
        assert batch.messages["id"].to_pylist() == [8, 7, 9]
        assert list(batch.ticks()) == [
            Tick(40, CHANGES, 0, 0, 9.0),
            Tick(41, MOVES, 0, 2, 10.9),
            # The clock does not go back to the time of the message.
            Tick(42, MESSAGES, 0, 1, 10.9),
            Tick(43, MESSAGES, 1, 1, 11.0),
            Tick(44, MOVES, 2, 1, 12.5),
            Tick(45, MESSAGES, 2, 1, 12.5),
        ]
        assert batch.ended == Clock(46, 12.5)


def test_late_rows_happen_at_the_clock_and_those_without_a_time_last() -> None:
    batch = batch_of([(1, 3.0), (2, None), (3, 11.0)], [(7, 5.0), (8, None)], Clock(0, 10.0), 0.0)
    assert list(batch.ticks()) == [
        Tick(0, MOVES, 0, 1, 10.0),
        Tick(1, MESSAGES, 0, 1, 10.0),
        Tick(2, MOVES, 1, 2, 11.0),
        Tick(3, MESSAGES, 1, 1, 11.0),
    ]
    assert batch.moves["id"].to_pylist() == [1, 3, 2]
    # Before any time is known there is none.
    timeless = batch_of([(1, None)], [(7, None)], Clock(), 1.0)
    assert [tick.now for tick in timeless.ticks()] == [-math.inf, -math.inf]
    assert timeless.ended == Clock(2)
    assert batch_of([], [], Clock(3, 4.0), 1.0).ended == Clock(3, 4.0)


def test_messages_that_do_not_say_when_they_end_live_as_long_as_all_such() -> None:
    batch = batch_of([(1, 20.0)], [(7, 5.0), (8, None), (9, 6.0)], Clock(0, 10.0), 1.0, lifetime=8.0, expires=[None, None, 7.0])
    ends = dict(zip(batch.messages["id"].to_pylist(), batch.messages["expires"].to_pylist(), strict=True))
    assert ends == {7: 13.0, 8: 28.0, 9: 7.0}


def test_what_is_written_down_is_read_again() -> None:
    for began in (Clock(), Clock(7, 0.1 + 0.2)):
        batch = batch_of([(1, 1.5)], [(7, 2.5)], began, 1.0, changes_of([(3, 1), (4, -1)]))
        found = TrackedBatch.from_bytes(batch.to_bytes())
        assert (found.mark, found.began, found.ended) == (batch.mark, began, batch.ended)
        assert list(found.ticks()) == list(batch.ticks())
        for name in ("put", "moves", "messages"):
            assert getattr(found, name).equals(getattr(batch, name))
        assert found.removed.equals(batch.removed)


def test_a_position_that_is_older_than_the_last_is_late() -> None:
    times = LastTimes()
    times.replace(rows_of([(1, 5.0), (2, None)]))
    moves = rows_of([(1, 4.0), (1, 5.0), (2, 1.0), (1, None)])
    kept = times.without_late(moves)
    assert list(zip(kept["id"].to_pylist(), kept["time"].to_pylist(), strict=True)) == [(1, 5.0), (2, 1.0), (1, None)]
    times.note(rows_of([(1, 6.0), (2, 3.0), (2, 9.0)]), without={2})
    saved = LastTimes.from_table(times.to_table())
    saved.forget([1, 99])
    assert times.without_late(rows_of([(1, 5.5), (2, 2.5), (2, 3.0)])).num_rows == 1
    assert saved.without_late(rows_of([(1, 5.5), (2, 2.5)]))["id"].to_pylist() == [1]
    # Filed anew without a time, it may be anywhere.
    times.replace(rows_of([(2, None)]))
    assert times.without_late(rows_of([(2, 0.0)])).num_rows == 1
    assert LastTimes.from_table(LastTimes().to_table()).to_table().num_rows == 0


@pytest.mark.parametrize("seconds", [-1.0, math.inf, np.nan])
def test_seconds_must_be_possible(seconds: float) -> None:
    with pytest.raises(PipelineError, match="give 0 or more seconds"):
        PipelineSettings(tick_seconds=seconds)
