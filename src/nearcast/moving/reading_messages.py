"""Messages with their times, as objects or as a table, read for an engine that keeps them while they live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.clauses import take_lists
from nearcast.columns.identifiers import id_array, id_kind
from nearcast.columns.messages import MessageBatch
from nearcast.engine.reading import ReadingContext, seconds_column
from nearcast.engine.reading_messages import read_message_objects, read_message_table
from nearcast.kernels.layouts import MessageArrays
from nearcast.model.inputs import Id
from nearcast.model.message import Message
from nearcast.moving.live_ids import LiveIds


@dataclass(slots=True)
class TimedMessages:
    """The usable messages of one call: ids and times in the order of the batch. A time of nan is none, expires inf is never."""

    ids: pa.Array
    batch: MessageBatch
    time: NDArray[np.float64]
    expires: NDArray[np.float64]
    rejected: list[tuple[int, str]]

    def reject(self, reasons: dict[int, str]) -> None:
        """Leave out messages of the batch, with reasons."""
        if not reasons:
            return
        self.rejected += [(int(self.batch.row[at]), reason) for at, reason in reasons.items()]
        self.rejected.sort()
        self.keep(np.array([at not in reasons for at in range(len(self.batch))], bool))

    def keep(self, is_kept: NDArray[np.bool_]) -> None:
        """Leave out messages of the batch."""
        if is_kept.all():
            return
        self.ids = self.ids.filter(pa.array(is_kept))
        self.batch = _taken(self.batch, np.flatnonzero(is_kept))
        self.time, self.expires = self.time[is_kept], self.expires[is_kept]


def read_timed_objects(messages: Sequence[Message], context: ReadingContext, known: LiveIds) -> TimedMessages:
    """Messages as objects; those with ids of another kind than those before are rejected."""
    batch, rejected = read_message_objects(messages, context, grow=True)
    given = [messages[row] for row in batch.row.tolist()]
    time = np.array([np.nan if message.time is None else message.time for message in given], np.float64)
    expires = np.array([np.inf if message.expires is None else message.expires for message in given], np.float64)
    kinds = ["string" if isinstance(message.id, str) else "int" for message in given]
    known.kind = known.kind or (kinds[0] if kinds else None)
    others = {at: _other_kind(message.id) for at, message in enumerate(given) if kinds[at] != known.kind}
    # Something of the right kind in the place of those that are left out.
    nothing: Id = "" if known.kind == "string" else 0
    ids = id_array([nothing if at in others else message.id for at, message in enumerate(given)])
    read = TimedMessages(ids, batch, time, expires, rejected)
    read.reject(others)
    return read


def read_timed_table(table: pa.Table, context: ReadingContext, known: LiveIds) -> TimedMessages:
    """Messages as a table; as `read_timed_objects`."""
    encoded = read_message_table(table, context, grow=True)
    rows = encoded.batch.row
    ids = encoded.ids if len(rows) == len(encoded.ids) else encoded.ids.take(pa.array(rows))
    time, expires = seconds_column(table, "time")[rows], seconds_column(table, "expires")[rows]
    read = TimedMessages(ids, encoded.batch, time, expires, encoded.rejected)
    kind = id_kind(ids.type)
    known.kind = known.kind or (kind if len(rows) else None)
    reasons = {}
    for at in np.flatnonzero(np.isinf(time) | np.isinf(expires) | (expires <= time)).tolist():
        given = f"time={time[at].item()!r} and expires={expires[at].item()!r}"
        reasons[at] = f"the message has {given}; expected finite times, expires > time, or no expires"
    read.expires[np.isnan(expires)] = np.inf
    if known.kind not in (kind, None):
        reasons = {at: _other_kind(id) for at, id in enumerate(ids.to_pylist())}
    read.reject(reasons)
    if known.kind not in (kind, None):
        read.ids = id_array([])
    return read


def _other_kind(id: Id) -> str:
    return f"the id {id!r} is of another kind than the ids of the messages before it: keep to one kind"


def _taken(batch: MessageBatch, rows: NDArray[np.int64]) -> MessageBatch:
    arrays = batch.arrays
    start, keyword = take_lists(arrays.keyword_start, arrays.keyword, rows)
    sides = (arrays.x0[rows], arrays.y0[rows], arrays.x1[rows], arrays.y1[rows])
    return MessageBatch(MessageArrays(start, keyword, *sides), batch.row[rows], batch.n_keywords)
