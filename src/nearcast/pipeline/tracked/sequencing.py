"""The one order of what happens in a batch of a tracked stream: a function of its rows and of the clock before it.

First the changes of subscriptions. Then moves and messages by their times, cut into ticks: those of one slot of `tick_seconds`
are one tick of moves and one of messages, in this order. A row that is late happens at the clock; one without a time happens
last. So the clock never goes back.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast.engine.reading import seconds_column
from nearcast.pipeline.keeping.sequencing import latest_changes, ordered_messages, ordered_rows
from nearcast.pipeline.tracked.batches import CHANGES, MESSAGES, MOVES, TICK_SCHEMA, Clock, TrackedBatch
from nearcast.pipeline.tracked.rules import TrackingRules


def sequenced(changes: pa.Table, moves: pa.Table, messages: pa.Table, began: Clock, rules: TrackingRules) -> TrackedBatch:
    """The batch of clean rows (see `cleaning_rows`)."""
    put, removed = latest_changes(changes, is_timed=True)
    moves, messages = ordered_rows(moves, ("time", "id")), ordered_messages(messages)
    given = {MOVES: seconds_column(moves, "time"), MESSAGES: seconds_column(messages, "time")}
    last = float(np.fmax.reduce(np.concatenate(list(given.values())), initial=began.now))
    happens = {kind: np.fmax(np.where(np.isnan(time), last, time), began.now) for kind, time in given.items()}
    messages = _with_ends(messages, np.where(np.isnan(given[MESSAGES]), last, given[MESSAGES]), rules.lifetime_seconds)
    first = [(CHANGES, 0, 0, began.now)] if put.num_rows or len(removed) else []
    rows = [*first, *_ticks(happens, rules.tick_seconds)]
    ticks = pa.table([list(column) for column in zip(*rows, strict=True)] or [[]] * 4, schema=TICK_SCHEMA)
    return TrackedBatch.of(put, removed, moves, messages, ticks, began)


def _ticks(happens: dict[int, NDArray[np.float64]], tick_seconds: float) -> list[tuple[int, int, int, float]]:
    """Kind, first row, number of rows and time of each tick; both kinds of rows are by time."""
    found: list[tuple[float, int, int, int, float]] = []
    for kind, time in happens.items():
        slot = np.floor(time / tick_seconds) if tick_seconds else time
        begin = np.flatnonzero(np.concatenate([np.ones(min(len(slot), 1), bool), slot[1:] != slot[:-1]]))
        end = np.append(begin[1:], len(slot))
        columns = (slot[begin], begin, end - begin, time[end - 1] if len(slot) else time)
        found += [(at, kind, first, n, now) for at, first, n, now in zip(*(c.tolist() for c in columns), strict=True)]
    ticks, clock = [], -np.inf
    for _, kind, first, n, now in sorted(found):
        clock = max(clock, now)
        ticks.append((kind, first, n, clock))
    return ticks


def _with_ends(messages: pa.Table, time: NDArray[np.float64], lifetime: float) -> pa.Table:
    """Messages that do not say when they end live as long as all such messages do."""
    if lifetime <= 0 or messages.num_rows == 0:
        return messages
    ends = pc.coalesce(messages["expires"], pa.array(time + lifetime))
    return messages.set_column(messages.column_names.index("expires"), "expires", ends)
