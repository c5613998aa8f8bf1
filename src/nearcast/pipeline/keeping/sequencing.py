"""The one order of what happens in a batch: a function of its rows alone, not of the order in which Spark brings them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_TIE = "_tie"


def ordered_rows(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Rows by those of the keys that they have, `id` among them; where these are the same, what else rows say decides."""
    listed = [(name, "ascending") for name in keys if name in rows.column_names]
    ordered = rows.sort_by(listed).combine_chunks()
    is_same = _is_as_next(ordered["id"].combine_chunks())
    tied = np.flatnonzero(is_same | np.roll(is_same, 1))
    if len(tied) == 0:
        return ordered
    # Of few rows only: it is dear.
    says = np.full(ordered.num_rows, "", object)
    says[tied] = _contents(ordered.take(pa.array(tied)))
    again = ordered.append_column(_TIE, pa.array(says, pa.string())).sort_by([*listed, (_TIE, "ascending")])
    return again.drop_columns([_TIE]).combine_chunks()


def ordered_messages(messages: pa.Table) -> pa.Table:
    """Messages in the order of their arrival: by time if they have one, then by id. Of two with one id the first counts."""
    return ordered_rows(messages, ("time", "id"))


def latest_changes(changes: pa.Table, is_timed: bool = False) -> tuple[pa.Table, pa.Array]:
    """Of each subscription its last change: the rows to file, and the ids to forget, both by id.

    The last is that of the largest time; at one time it is filed rather than forgotten. Rows to file are without `change`, and
    without `time` unless `is_timed`.
    """
    ordered = ordered_rows(changes, ("id", "time", "change"))
    last = ordered.filter(pa.array(~_is_as_next(ordered["id"].combine_chunks()), pa.bool_()))
    is_filed = pc.greater(last["change"], 0)
    dropped = {"change"} if is_timed else {"change", "time"}
    put = last.filter(is_filed).drop_columns([name for name in last.column_names if name in dropped])
    return put.combine_chunks(), last.filter(pc.invert(is_filed))["id"].combine_chunks()


def _is_as_next(ids: pa.Array) -> NDArray[np.bool_]:
    """Whether the id behind each is the same; never behind the last."""
    is_same = np.zeros(len(ids), bool)
    if len(ids) > 1:
        is_same[:-1] = np.asarray(pc.equal(ids.slice(0, len(ids) - 1), ids.slice(1)))
    return is_same


def _contents(table: pa.Table) -> list[str]:
    return [json.dumps(row, default=str, sort_keys=True) for row in table.to_pylist()]
