"""Columns of times as seconds since 1970."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.arrow import numbers, one_chunk
from nearcast.errors import SchemaError

_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


def seconds_column(table: pa.Table, name: str) -> NDArray[np.float64]:
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
    seconds: NDArray[Any] = numbers(column, np.float64) / scale
    seconds[np.isnan(seconds)] = np.inf
    if column.null_count:
        seconds[np.asarray(column.is_null())] = np.nan
    return seconds
