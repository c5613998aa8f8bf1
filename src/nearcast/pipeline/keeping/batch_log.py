"""The log of a stream: what each batch brings, written down once before any shard takes it.

A batch that runs again finds its own words here. So every shard, at whatever time and in whatever process, goes through the
same ticks.
"""

from __future__ import annotations

from typing import Protocol, Self, TypeVar

import pyarrow as pa

from nearcast.pipeline.keeping.areas import ShardArea
from nearcast.pipeline.store import Store


class LoggedBatch(Protocol):
    """What happens in a batch, in order; `mark` tells it from any other batch."""

    @property
    def mark(self) -> str: ...

    @property
    def messages(self) -> pa.Table:
        """Messages in the order of their arrival."""

    def to_bytes(self) -> bytes: ...

    @classmethod
    def from_bytes(cls, content: bytes) -> Self: ...


Batch = TypeVar("Batch", bound=LoggedBatch)


def write_log(store: Store, area: ShardArea, batch: int, content: Batch) -> Batch:
    """Write a batch down, unless it is: then what was written counts."""
    name = area.log(batch)
    if not store.exists(name):
        store.write_bytes(name, content.to_bytes())
        return content
    return type(content).from_bytes(store.read_bytes(name))
