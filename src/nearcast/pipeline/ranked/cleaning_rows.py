"""Raw rows of a ranked stream into clean ones. A row is a message or a change of a subscription; bad ones get a reason.

All words take their normal form here, so that engines need not know of stems.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.engines.border import Border
from nearcast.engines.keyword_kind import KeywordKind
from nearcast.engines.ranked.reading_ranked import SUBSCRIPTION_COLUMNS, read_ranked_table
from nearcast.model.analysis import DEFAULT_ANALYSIS, Analysis
from nearcast.model.spaces import space_of
from nearcast.pipeline.cleaning import QUARANTINE_SCHEMA, Cleaner, normal_forms, quarantine_rows

MESSAGE, CHANGE, BAD = "message", "subscription", "bad"
CHANGE_COLUMNS = (*SUBSCRIPTION_COLUMNS, "change", "time")


class RowCleaner:
    """Cleans batches of a stream; `analysis` is plain data, so that a cleaner travels."""

    def __init__(self, space: str, analysis: Mapping[str, Any]) -> None:
        self._space, self._analysis = space, json.dumps(analysis)
        self._messages = Cleaner(space, analysis)

    def clean(self, rows: pa.Table) -> pa.Table:
        """Columns message, subscription, bad, of which each row has one; other rows are null there."""
        message, subscription = rows[MESSAGE].combine_chunks(), rows[CHANGE].combine_chunks()
        raw = pa.Table.from_struct_array(message.filter(message.is_valid()))
        cleaned = self._messages.clean(raw)
        changes, bad = self._clean_changes(pa.Table.from_struct_array(subscription.filter(subscription.is_valid())))
        bad = pa.concat_tables([cleaned.quarantine, bad])
        blocks = {MESSAGE: cleaned.messages, CHANGE: changes, BAD: bad}
        counts = [table.num_rows for table in blocks.values()]
        columns = {}
        for at, (name, table) in enumerate(blocks.items()):
            own = table.combine_chunks().to_struct_array().combine_chunks()
            before, behind = pa.nulls(sum(counts[:at]), own.type), pa.nulls(sum(counts[at + 1 :]), own.type)
            columns[name] = pa.concat_arrays([before, own, behind])
        return pa.table(columns)

    def _clean_changes(self, changes: pa.Table) -> tuple[pa.Table, pa.Table]:
        if changes.num_rows == 0:
            return changes, QUARANTINE_SCHEMA.empty_table()
        analysis = Analysis.from_dict(json.loads(self._analysis))
        keywords = normal_forms(changes["keywords"].combine_chunks(), analysis)
        changes = changes.set_column(changes.column_names.index("keywords"), "keywords", keywords)
        problems: dict[int, str] = dict.fromkeys(_rows(pc.is_null(changes["id"])), "the id is null")
        is_known = pc.fill_null(pc.is_in(changes["change"], value_set=pa.array([-1, 1], pa.int8())), False)
        for row in _rows(pc.invert(is_known)):
            problems.setdefault(row, f"change is {changes['change'][row].as_py()!r}; expected 1 (file) or -1 (forget)")
        for row, reason in self._unusable(changes):
            problems.setdefault(row, reason)
        is_kept = pa.array([row not in problems for row in range(changes.num_rows)], pa.bool_())
        return changes.filter(is_kept), quarantine_rows(changes, problems.items())

    def _unusable(self, changes: pa.Table) -> list[tuple[int, str]]:
        """Rows to be filed that an engine would not take. One id may be there several times: the last one counts, later."""
        filed = np.flatnonzero(np.asarray(pc.fill_null(pc.greater(changes["change"], 0), False)))
        if len(filed) == 0:
            return []
        columns = {name: changes[name] for name in SUBSCRIPTION_COLUMNS if name in changes.column_names}
        columns["id"] = pa.chunked_array([pa.array(np.arange(changes.num_rows))])
        border = Border(space_of(self._space), KeywordKind(DEFAULT_ANALYSIS), DEFAULT_ANALYSIS)
        read = read_ranked_table(pa.table(columns).take(pa.array(filed)), border)
        return [(int(filed[row]), reason) for row, reason in read.rejected]


def split_rows(rows: pa.Table) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Clean rows as three tables: messages, changes, bad ones."""

    def of(name: str) -> pa.Table:
        column = rows[name].combine_chunks()
        return pa.Table.from_struct_array(column.filter(column.is_valid()))

    return of(MESSAGE), of(CHANGE), of(BAD)


def _rows(mask: pa.ChunkedArray | pa.Array) -> list[int]:
    found: list[int] = pc.indices_nonzero(mask).to_pylist()
    return found
