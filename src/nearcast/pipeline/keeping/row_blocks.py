"""Rows of several kinds in one table: a column of structs for each kind, of which a row has one, and null in the others."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa


def in_blocks(kinds: Mapping[str, pa.Table]) -> pa.Table:
    """The rows of all tables, one table after the other."""
    counts = [table.num_rows for table in kinds.values()]
    columns = {}
    for at, (name, table) in enumerate(kinds.items()):
        own = table.combine_chunks().to_struct_array().combine_chunks()
        before, behind = pa.nulls(sum(counts[:at]), own.type), pa.nulls(sum(counts[at + 1 :]), own.type)
        columns[name] = pa.concat_arrays([before, own, behind])
    return pa.table(columns)


def rows_in(rows: pa.Table, name: str) -> pa.Table:
    """The rows of one kind."""
    column = rows[name].combine_chunks()
    return pa.Table.from_struct_array(column.filter(column.is_valid()))
