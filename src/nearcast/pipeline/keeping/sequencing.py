"""The one order of what happens in a batch: a function of its rows alone, not of the order in which Spark brings them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_TIE = "_tie"


def ordered_rows(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Rows by those of the keys that they have; what else they say decides where two have the same id."""
    listed = [(name, "ascending") for name in keys if name in rows.column_names]
    is_tied = len(rows["id"].unique()) < rows.num_rows
    if is_tied:
        rows, listed = rows.append_column(_TIE, pa.array(_contents(rows), pa.string())), [*listed, (_TIE, "ascending")]
    ordered = rows.sort_by(listed)
    return (ordered.drop_columns([_TIE]) if is_tied else ordered).combine_chunks()


def ordered_messages(messages: pa.Table) -> pa.Table:
    """Messages in the order of their arrival: by time if they have one, then by id. Of two with one id the first counts."""
    return ordered_rows(messages, ("time", "id"))


def latest_changes(changes: pa.Table, is_timed: bool = False) -> tuple[pa.Table, pa.Array]:
    """Of each subscription its last change: the rows to file, and the ids to forget, both by id.

    The last is that of the largest time; at one time it is filed rather than forgotten. Rows to file are without `change`, and
    without `time` unless `is_timed`.
    """
    ordered = ordered_rows(changes, ("id", "time", "change"))
    ids = ordered["id"].combine_chunks()
    is_last = np.ones(len(ids), bool)
    if len(ids) > 1:
        is_last[:-1] = np.asarray(pc.not_equal(ids.slice(0, len(ids) - 1), ids.slice(1)))
    last = ordered.filter(pa.array(is_last, pa.bool_()))
    is_filed = pc.greater(last["change"], 0)
    dropped = {"change"} if is_timed else {"change", "time"}
    put = last.filter(is_filed).drop_columns([name for name in last.column_names if name in dropped])
    return put.combine_chunks(), last.filter(pc.invert(is_filed))["id"].combine_chunks()


def _contents(table: pa.Table) -> list[str]:
    return [json.dumps(row, default=str, sort_keys=True) for row in table.to_pylist()]
