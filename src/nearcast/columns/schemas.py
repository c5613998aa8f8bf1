"""The columns of every table that nearcast reads or writes, and checks of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.arrow import is_string, numbers, one_chunk
from nearcast.columns.identifiers import id_kind
from nearcast.errors import SchemaError

POINT = ("x", "y")
BOX = ("x0", "y0", "x1", "y1")
MESSAGE_COLUMNS = ("id", "keywords", "text", *POINT, *BOX, "time", "expires")
SUBSCRIPTION_COLUMNS = ("id", "keywords", "interest", "region", *BOX)


def delivery_table(message_ids: pa.Array, subscription_ids: pa.Array) -> pa.Table:
    """The table of deliveries: one row for each message that reaches a subscription."""
    return pa.table({"message_id": message_ids, "subscription_id": subscription_ids})


def check_columns(table: pa.Table, allowed: Iterable[str], what: str) -> None:
    """Raise SchemaError unless `table` is a table of known, distinct columns with an id."""
    if not isinstance(table, pa.Table):
        raise SchemaError(f"{what} were given as {type(table).__name__}; expected a pyarrow.Table")
    known = tuple(allowed)
    if len(set(table.column_names)) < table.num_columns:
        raise SchemaError(f"the table of {what} has a column twice: {table.column_names}; rename or drop one")
    unknown = [name for name in table.column_names if name not in known]
    if unknown:
        raise SchemaError(
            f"the table of {what} has unknown columns {unknown}; expected some of {', '.join(known)}; "
            f"drop them with table.drop_columns({unknown})"
        )
    if "id" not in table.column_names:
        raise SchemaError(f"the table of {what} has no column 'id'; its columns are {table.column_names}")


def id_column(table: pa.Table) -> pa.Array:
    """The ids, as int64 or string."""
    column = one_chunk(table["id"])
    return column.cast(pa.int64() if id_kind(column.type) == "int" else pa.string())


def text_column(table: pa.Table, name: str) -> pa.Array | None:
    """A column of strings, or None if the table has none of that name."""
    if name not in table.column_names:
        return None
    column = one_chunk(table[name])
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_null(column.type):
        return column.cast(pa.string())
    if not is_string(column.type):
        raise SchemaError(f"column {name!r} is of type {column.type}; expected string")
    return column


def keyword_column(table: pa.Table) -> pa.Array | None:
    """The lists of keywords (strings or integers), or None if the table has no such column."""
    if "keywords" not in table.column_names:
        return None
    column = one_chunk(table["keywords"])
    kind = column.type
    if pa.types.is_null(kind):
        return column.cast(pa.list_(pa.string()))
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list_view(kind):
        column = column.cast(pa.list_(kind.value_type))
    elif not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        raise SchemaError(f"column 'keywords' is of type {kind}; expected list<string> or list<int32>")
    member = column.type.value_type
    if pa.types.is_null(member) or pa.types.is_dictionary(member):
        column = column.cast(pa.list_(pa.string()))
    elif not (is_string(member) or (pa.types.is_integer(member) and member.bit_width <= 32 and member != pa.uint32())):
        raise SchemaError(f"column 'keywords' is of type {kind}; expected list<string> or list<int32>")
    return column


def number_columns(table: pa.Table, names: Iterable[str]) -> tuple[list[NDArray[np.float64]], NDArray[np.bool_]] | None:
    """The columns as float64, and which rows have a null. None if the table has none of the columns, SchemaError if only
    some."""
    expected = list(names)
    present = [name for name in expected if name in table.column_names]
    if not present:
        return None
    if len(present) < len(expected):
        missing = [name for name in expected if name not in present]
        raise SchemaError(f"the table has columns {present} but not {missing}; expected all of {expected} or none")
    columns, is_null = [], np.zeros(table.num_rows, bool)
    for name in expected:
        column = one_chunk(table[name])
        kind = column.type
        if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
            raise SchemaError(f"column {name!r} is of type {kind}; expected a number (float64)")
        if column.null_count:
            is_null |= np.asarray(column.is_null())
        columns.append(numbers(column if kind == pa.float64() else column.cast(pa.float64(), safe=False), np.float64))
    return columns, is_null
