"""Messages with their times, as objects or as a table, read for an engine that keeps them while they live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.arrow import numbers, one_chunk
from nearcast.columns.clauses import take_lists
from nearcast.columns.messages import MessageBatch
from nearcast.engines.border import Border
from nearcast.engines.reading_messages import read_message_objects, read_message_table
from nearcast.errors import SchemaError
from nearcast.kernels.layouts import MessageArrays
from nearcast.model.ids import Id
from nearcast.model.message import Message

_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


@dataclass(slots=True)
class TimedMessages:
    """The usable messages of one call: ids and times in the order of the batch. A time of nan is none, expires inf is never."""

    ids: list[Id]
    batch: MessageBatch
    time: NDArray[np.float64]
    expires: NDArray[np.float64]
    rejected: list[tuple[int, str]]

    def reject(self, reasons: dict[int, str]) -> None:
        """Leave out messages of the batch, with reasons."""
        self.rejected += [(int(self.batch.row[at]), reason) for at, reason in reasons.items()]
        self.rejected.sort()
        self.keep(np.array([at not in reasons for at in range(len(self.batch))], bool))

    def keep(self, is_kept: NDArray[np.bool_]) -> None:
        """Leave out messages of the batch."""
        if is_kept.all():
            return
        self.ids = [id for id, kept in zip(self.ids, is_kept.tolist(), strict=True) if kept]
        self.batch = _taken(self.batch, np.flatnonzero(is_kept))
        self.time, self.expires = self.time[is_kept], self.expires[is_kept]


def read_timed_objects(messages: Sequence[Message], border: Border) -> TimedMessages:
    batch, rejected = read_message_objects(messages, border, grow=True)
    listed = [messages[row] for row in batch.row.tolist()]
    time = np.array([np.nan if message.time is None else message.time for message in listed], np.float64)
    expires = np.array([np.inf if message.expires is None else message.expires for message in listed], np.float64)
    return TimedMessages([message.id for message in listed], batch, time, expires, rejected)


def read_timed_table(table: pa.Table, border: Border) -> TimedMessages:
    encoded = read_message_table(table, border, grow=True)
    rows = encoded.batch.row
    time, expires = _seconds(table, "time")[rows], _seconds(table, "expires")[rows]
    read = TimedMessages(encoded.ids.take(pa.array(rows)).to_pylist(), encoded.batch, time, expires, encoded.rejected)
    reasons = {}
    for at in np.flatnonzero(np.isinf(time) | np.isinf(expires) | (expires <= time)).tolist():
        given = f"time={time[at].item()!r} and expires={expires[at].item()!r}"
        reasons[at] = f"the message has {given}; expected finite times, expires > time, or no expires"
    read.expires[np.isnan(expires)] = np.inf
    read.reject(reasons)
    return read


def _seconds(table: pa.Table, name: str) -> NDArray[np.float64]:
    """A column of times as seconds; nan where it is null or there is no such column. A nan that is given counts as infinite."""
    if name not in table.column_names:
        return np.full(table.num_rows, np.nan)
    column = one_chunk(table[name])
    kind = column.type
    scale = 1.0
    if pa.types.is_timestamp(kind):
        column, scale = column.cast(pa.int64()), _UNITS[kind.unit]
    elif pa.types.is_null(kind):
        column = column.cast(pa.float64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise SchemaError(f"column {name!r} is of type {kind}; expected int64 or float64 (seconds since 1970) or a timestamp")
    is_null = np.asarray(column.is_null())
    seconds: NDArray[Any] = numbers(column, np.float64) / scale
    return np.where(is_null, np.nan, np.where(np.isnan(seconds), np.inf, seconds))


def _taken(batch: MessageBatch, rows: NDArray[np.int64]) -> MessageBatch:
    arrays = batch.arrays
    start, keyword = take_lists(arrays.keyword_start, arrays.keyword, rows)
    sides = (arrays.x0[rows], arrays.y0[rows], arrays.x1[rows], arrays.y1[rows])
    return MessageBatch(MessageArrays(start, keyword, *sides), batch.row[rows], batch.n_keywords)
