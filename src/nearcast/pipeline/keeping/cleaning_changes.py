"""Changes of subscriptions that can be used, and those that cannot, with the reason."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.pipeline.prepare.cleaning import QUARANTINE_SCHEMA, quarantine_rows

Judge = Callable[[pa.Table], list[tuple[int, str]]]
"""Which rows an engine would not file, and why."""


def usable_changes(changes: pa.Table, judge: Judge) -> tuple[pa.Table, pa.Table]:
    """The usable rows, and the others as rows of the quarantine. Rows to be forgotten need an id and nothing else."""
    if changes.num_rows == 0:
        return changes, QUARANTINE_SCHEMA.empty_table()
    problems: dict[int, str] = dict.fromkeys(_rows(pc.is_null(changes["id"])), "the id is null")
    is_known = pc.fill_null(pc.is_in(changes["change"], value_set=pa.array([-1, 1], pa.int8())), False)
    for row in _rows(pc.invert(is_known)):
        problems.setdefault(row, f"change is {changes['change'][row].as_py()!r}; expected 1 (file) or -1 (forget)")
    filed = np.flatnonzero(np.asarray(pc.fill_null(pc.greater(changes["change"], 0), False)))
    if len(filed):
        # One id may be there several times: the last one counts, later. So numbers stand in for ids.
        numbered = changes.set_column(changes.column_names.index("id"), "id", pa.array(np.arange(changes.num_rows)))
        for row, reason in judge(numbered.take(pa.array(filed))):
            problems.setdefault(int(filed[row]), reason)
    is_kept = pa.array([row not in problems for row in range(changes.num_rows)], pa.bool_())
    return changes.filter(is_kept), quarantine_rows(changes, problems.items())


def _rows(mask: pa.ChunkedArray | pa.Array) -> list[int]:
    found: list[int] = pc.indices_nonzero(mask).to_pylist()
    return found
