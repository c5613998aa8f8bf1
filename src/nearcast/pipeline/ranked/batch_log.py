"""A batch of a ranked stream as it is written down."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import pyarrow as pa

from nearcast.pipeline.keeping.areas import ShardArea
from nearcast.pipeline.keeping.arrow_bytes import tables_bytes, tables_of
from nearcast.pipeline.store import Store


@dataclass(frozen=True, slots=True)
class RankedBatch:
    """Subscriptions to file, ids to forget, messages in the order of their arrival; `mark` tells it from any other batch."""

    put: pa.Table
    removed: pa.Array
    messages: pa.Table
    mark: str

    @classmethod
    def of(cls, put: pa.Table, removed: pa.Array, messages: pa.Table) -> RankedBatch:
        return cls(put, removed, messages, uuid.uuid4().hex)

    @property
    def touched(self) -> pa.Array:
        """The ids of all subscriptions that are filed or forgotten."""
        return pa.concat_arrays([self.removed, self.put["id"].combine_chunks().cast(self.removed.type)])

    def to_bytes(self) -> bytes:
        parts = {"put": self.put, "removed": pa.table({"id": self.removed}), "messages": self.messages}
        return tables_bytes(parts, {"mark": self.mark})

    @classmethod
    def from_bytes(cls, content: bytes) -> RankedBatch:
        parts, facts = tables_of(content)
        return cls(parts["put"], parts["removed"]["id"].combine_chunks(), parts["messages"], facts["mark"])


def read_log(store: Store, area: ShardArea, batch: int) -> RankedBatch:
    return RankedBatch.from_bytes(store.read_bytes(area.log(batch)))
