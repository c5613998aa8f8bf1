"""The one order of what happens in a batch: a function of its rows alone, not of the order in which Spark brings them."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_TIE = "_tie"


def ordered_messages(messages: pa.Table) -> pa.Table:
    """Messages in the order of their arrival: by time if they have one, then by id."""
    keys = [(name, "ascending") for name in ("time", "id") if name in messages.column_names]
    if len(messages["id"].unique()) < messages.num_rows:
        # Two with one id, of which the first counts: what else they say decides.
        messages = messages.append_column(_TIE, pa.array(_contents(messages), pa.string()))
        return messages.sort_by([*keys, (_TIE, "ascending")]).drop_columns([_TIE]).combine_chunks()
    return messages.sort_by(keys).combine_chunks()


def latest_changes(changes: pa.Table) -> tuple[pa.Table, pa.Array]:
    """Of each subscription its last change: the rows to file, and the ids to forget, both by id.

    The last is that of the largest time; at one time it is filed rather than forgotten.
    """
    keys = [(name, "ascending") for name in ("id", "time", "change") if name in changes.column_names]
    contents = pa.array(_contents(changes), pa.string()) if len(changes["id"].unique()) < changes.num_rows else None
    if contents is not None:
        changes, keys = changes.append_column(_TIE, contents), [*keys, (_TIE, "ascending")]
    ordered = changes.sort_by(keys).combine_chunks()
    ids = ordered["id"].combine_chunks()
    is_last = np.ones(len(ids), bool)
    if len(ids) > 1:
        is_last[:-1] = np.asarray(pc.not_equal(ids.slice(0, len(ids) - 1), ids.slice(1)))
    last = ordered.filter(pa.array(is_last, pa.bool_()))
    is_filed = pc.greater(last["change"], 0)
    put = last.filter(is_filed).drop_columns([name for name in ("change", "time", _TIE) if name in last.column_names])
    return put.combine_chunks(), last.filter(pc.invert(is_filed))["id"].combine_chunks()


def _contents(table: pa.Table) -> list[str]:
    return [json.dumps(row, default=str, sort_keys=True) for row in table.to_pylist()]
