"""The log of a ranked stream: what each batch brings, written down once before any shard takes it.

A batch that runs again finds its own words here. So every shard, at whatever time and in whatever process, goes through the
same ticks.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import pyarrow as pa

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
        content = pa.array([table_bytes(table) for table in parts.values()], pa.large_binary())
        schema = pa.schema({"part": pa.string(), "content": pa.large_binary()}, metadata={"mark": self.mark})
        return table_bytes(pa.table([list(parts), content], schema=schema))

    @classmethod
    def from_bytes(cls, content: bytes) -> RankedBatch:
        stored = table_of(content)
        put, removed, messages = (table_of(part.as_buffer()) for part in stored["content"])
        return cls(put, removed["id"].combine_chunks(), messages, stored.schema.metadata[b"mark"].decode())


@dataclass(frozen=True, slots=True)
class RankedArea:
    """Where a ranked stream keeps what its shards need, beside the folders of every stream."""

    stream: str

    @property
    def root(self) -> str:
        return f"streams/{self.stream}/ranked"

    def log(self, batch: int) -> str:
        return f"{self.root}/log/{batch:08d}.arrow"

    def told(self, batch: int) -> str:
        """What shards told each other in a batch."""
        return f"{self.root}/told/{batch:08d}"

    @property
    def layouts(self) -> str:
        return f"{self.root}/layouts"

    @property
    def wish(self) -> str:
        """Which layout somebody asked for."""
        return f"{self.root}/wish.json"

    def snapshots(self, layout: int) -> str:
        return f"{self.root}/snapshots/{layout:06d}"

    def snapshot(self, layout: int, batch: int, shard: int) -> str:
        return f"{self.snapshots(layout)}/{batch:08d}/{shard}"


def write_log(store: Store, area: RankedArea, batch: int, content: RankedBatch) -> RankedBatch:
    """Write a batch down, unless it is: then what was written counts."""
    name = area.log(batch)
    if not store.exists(name):
        store.write_bytes(name, content.to_bytes())
        return content
    return read_log(store, area, batch)


def read_log(store: Store, area: RankedArea, batch: int) -> RankedBatch:
    return RankedBatch.from_bytes(store.read_bytes(area.log(batch)))


def table_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def table_of(content: bytes | pa.Buffer) -> pa.Table:
    with pa.ipc.open_stream(content) as reader:
        return reader.read_all()
