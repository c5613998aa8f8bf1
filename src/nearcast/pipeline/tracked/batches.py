"""A batch of a tracked stream as it is written down: what happens in it, tick by tick."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from nearcast.pipeline.keeping.arrow_bytes import tables_bytes, tables_of

CHANGES, MOVES, MESSAGES = 0, 1, 2
"""Kinds of ticks, in the order of their turns at one time."""
TICK_SCHEMA = pa.schema({"kind": pa.int8(), "first": pa.int64(), "n": pa.int64(), "now": pa.float64()})


class Clock(NamedTuple):
    """Where a stream stands between two batches: the number of its next tick, and the largest time seen."""

    tick: int = 0
    now: float = -math.inf


class Tick(NamedTuple):
    """One step: all changes of subscriptions, or so many moves or messages from row `first` on, after which it is `now`."""

    number: int
    kind: int
    first: int
    n: int
    now: float


@dataclass(frozen=True, slots=True)
class TrackedBatch:
    """Subscriptions to file, ids to forget; moves and messages by time; the ticks they are cut into.

    `mark` tells it from any other batch; `began` is where the stream stood before.
    """

    put: pa.Table
    removed: pa.Array
    moves: pa.Table
    messages: pa.Table
    tick_table: pa.Table
    began: Clock
    mark: str

    @classmethod
    def of(
        cls, put: pa.Table, removed: pa.Array, moves: pa.Table, messages: pa.Table, tick_table: pa.Table, began: Clock
    ) -> TrackedBatch:
        return cls(put, removed, moves, messages, tick_table, began, uuid.uuid4().hex)

    def ticks(self) -> Iterator[Tick]:
        columns = (self.tick_table[name].to_pylist() for name in TICK_SCHEMA.names)
        for at, row in enumerate(zip(*columns, strict=True)):
            yield Tick(self.began.tick + at, *row)

    @property
    def ended(self) -> Clock:
        """Where the stream stands after it."""
        n = self.tick_table.num_rows
        return Clock(self.began.tick + n, self.tick_table["now"][n - 1].as_py() if n else self.began.now)

    def to_bytes(self) -> bytes:
        parts = {
            "put": self.put,
            "removed": pa.table({"id": self.removed}),
            "moves": self.moves,
            "messages": self.messages,
            "ticks": self.tick_table,
        }
        return tables_bytes(parts, {"mark": self.mark, "tick": str(self.began.tick), "now": repr(self.began.now)})

    @classmethod
    def from_bytes(cls, content: bytes) -> TrackedBatch:
        parts, facts = tables_of(content)
        removed, began = parts["removed"]["id"].combine_chunks(), Clock(int(facts["tick"]), float(facts["now"]))
        return cls(parts["put"], removed, parts["moves"], parts["messages"], parts["ticks"], began, facts["mark"])
