"""Tables as bytes: in files of the store, and between processes."""

from __future__ import annotations

import pyarrow as pa


def table_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def table_of(content: bytes | pa.Buffer) -> pa.Table:
    with pa.ipc.open_stream(content) as reader:
        return reader.read_all()


def tables_bytes(parts: dict[str, pa.Table], facts: dict[str, str]) -> bytes:
    """Several tables, and words about them, as one."""
    content = pa.array([table_bytes(table) for table in parts.values()], pa.large_binary())
    schema = pa.schema({"part": pa.string(), "content": pa.large_binary()}, metadata=facts)
    return table_bytes(pa.table([list(parts), content], schema=schema))


def tables_of(content: bytes | pa.Buffer) -> tuple[dict[str, pa.Table], dict[str, str]]:
    """What `tables_bytes` was given."""
    stored = table_of(content)
    parts = {name.as_py(): table_of(part.as_buffer()) for name, part in zip(stored["part"], stored["content"], strict=True)}
    return parts, {key.decode(): value.decode() for key, value in (stored.schema.metadata or {}).items()}
