"""Flat arrays as the tables that engines read: messages, range messages, subscriptions; keyword ids as words.

A table shares the memory of the arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.errors import WorkloadError


class KeywordLists(NamedTuple):
    """Keywords of row i: `keyword[start[i]:start[i + 1]]`."""

    start: NDArray[np.int32]  # int32[n_rows + 1]
    keyword: NDArray[np.int32]  # int32[start[-1]]

    def array(self) -> pa.ListArray:
        return pa.ListArray.from_arrays(pa.array(self.start), pa.array(self.keyword))

    def take(self, rows: NDArray[np.int64]) -> KeywordLists:
        """The lists of `rows`, in that order."""
        length = np.diff(self.start)[rows]
        start = starts_of(length)
        source = np.repeat(self.start[rows].astype(np.int64) - start[:-1], length) + np.arange(int(start[-1]))
        return KeywordLists(start, self.keyword[source])


class Boxes(NamedTuple):
    """Closed rectangles."""

    x0: NDArray[np.float64]
    y0: NDArray[np.float64]
    x1: NDArray[np.float64]
    y1: NDArray[np.float64]


def starts_of(length: NDArray[np.int64]) -> NDArray[np.int32]:
    """The offsets of consecutive lists with these lengths."""
    start = np.zeros(length.size + 1, np.int64)
    np.cumsum(length, out=start[1:])
    if start[-1] > np.iinfo(np.int32).max:
        raise WorkloadError(f"{start[-1]} keywords are too many for one table with int32 offsets; ask for fewer rows at a time")
    return start.astype(np.int32)


def concat_lists(parts: list[KeywordLists]) -> KeywordLists:
    """The lists of all parts, in order."""
    if len(parts) == 1:
        return parts[0]
    length = np.concatenate([np.diff(part.start) for part in parts]) if parts else np.empty(0, np.int64)
    keyword = np.concatenate([part.keyword for part in parts]) if parts else np.empty(0, np.int32)
    return KeywordLists(starts_of(length), keyword)


def message_table(
    ids: NDArray[np.int64],
    keywords: KeywordLists,
    locations: tuple[NDArray[np.float64], NDArray[np.float64]] | Boxes,
    times: NDArray[np.float64],
) -> pa.Table:
    """Messages at points (`x`, `y`) or over boxes (`x0` ... `y1`)."""
    names = Boxes._fields if isinstance(locations, Boxes) else ("x", "y")
    columns = dict(zip(names, locations, strict=True))
    return pa.table({"id": ids, "keywords": keywords.array(), **columns, "time": times})


def subscription_table(ids: NDArray[np.int64], keywords: KeywordLists, boxes: Boxes) -> pa.Table:
    """Subscriptions with keywords that must all be present, inside a box."""
    return pa.table({"id": ids, "keywords": keywords.array(), **boxes._asdict()})


def keywords_as_words(table: pa.Table, words: pa.Array) -> pa.Table:
    """The same table with `keywords` as list<string>: id i becomes `words[i]`."""
    column = table.column("keywords")
    if not pa.types.is_integer(column.type.value_type):
        return table
    lists = column.combine_chunks()
    start = lists.offsets.to_numpy()
    as_words = pa.ListArray.from_arrays(pa.array(start - start[0] if start.size else start), words.take(lists.flatten()))
    return table.set_column(table.schema.get_field_index("keywords"), "keywords", as_words)
