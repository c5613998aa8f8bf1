"""What all readers of input share: the context, rows that cannot be used, columns of times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.arrow import numbers, one_chunk
from nearcast.columns.schemas import BOX
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.errors import SchemaError
from nearcast.model.analysis import Analysis
from nearcast.model.spaces import Space

_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


class ReadingContext(NamedTuple):
    """What a reader needs to know of the engine it reads for."""

    space: Space
    keywords: KeywordKind
    analysis: Analysis


class Rejections:
    """Rows of a batch that cannot be used, with the first reason for each. One bad row never sinks its batch."""

    def __init__(self, n_rows: int) -> None:
        self._n_rows = n_rows
        self._reasons: dict[int, str] = {}

    def add(self, row: int, reason: str) -> None:
        self._reasons.setdefault(row, reason)

    def add_where(self, is_bad: NDArray[np.bool_], reason: Callable[[int], str]) -> None:
        for row in np.flatnonzero(is_bad).tolist():
            self.add(row, reason(row))

    def add_members(self, list_start: NDArray[np.int64], problems: Mapping[int, str]) -> None:
        """Reject the rows whose lists hold these members (positions count from the first list's first member)."""
        for position, reason in problems.items():
            self.add(int(np.searchsorted(list_start - list_start[0], position, side="right")) - 1, reason)

    def is_usable(self) -> NDArray[np.bool_]:
        """Which rows have not been rejected so far."""
        is_usable = np.ones(self._n_rows, bool)
        is_usable[list(self._reasons)] = False
        return is_usable

    def as_list(self) -> list[tuple[int, str]]:
        return sorted(self._reasons.items())


def reject_bad_boxes(
    rejections: Rejections, boxes: list[NDArray[np.float64]], is_considered: NDArray[np.bool_], space: Space
) -> None:
    """Reject rows whose box is not finite, inverted or outside the space."""
    x0, y0, x1, y1 = boxes

    def shown(row: int) -> str:
        return f"({', '.join(f'{name}={box[row].item()!r}' for name, box in zip(BOX, boxes, strict=True))})"

    is_finite = np.isfinite(x0) & np.isfinite(y0) & np.isfinite(x1) & np.isfinite(y1)
    is_bad = is_considered & ~is_finite
    rejections.add_where(is_bad, lambda row: f"the location {shown(row)} is not finite; give finite numbers")
    is_inverted = (x0 > x1) | (y0 > y1)
    rejections.add_where(
        is_considered & is_inverted, lambda row: f"the box {shown(row)} is inverted; expected x0 <= x1 and y0 <= y1"
    )
    if space.is_lonlat:
        is_outside = (x0 < -180.0) | (x1 > 180.0) | (y0 < -90.0) | (y1 > 90.0)
        rejections.add_where(
            is_considered & is_outside,
            lambda row: f"the location {shown(row)} lies outside lonlat: expected |x| <= 180 and |y| <= 90",
        )


def seconds_column(table: pa.Table, name: str) -> NDArray[np.float64]:
    """A column of times as seconds since 1970; nan where it is null or missing. A nan in the table counts as infinite."""
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
