"""Raw rows of a tracked stream into clean ones: messages, moves, changes of subscriptions. Bad ones get a reason.

Times become seconds; every kind of rows has them, null where none is given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.columns.schemas import BOX, SUBSCRIPTION_COLUMNS
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.engine.reading import ReadingContext, seconds_column
from nearcast.engine.reading_subscriptions import read_subscription_table
from nearcast.model.analysis import Analysis
from nearcast.model.spaces import space_of
from nearcast.pipeline.keeping.cleaning_changes import usable_changes
from nearcast.pipeline.keeping.row_blocks import in_blocks, rows_in
from nearcast.pipeline.keeping.row_frames import BAD, CHANGE, MESSAGE
from nearcast.pipeline.prepare.cleaning import Cleaner, quarantine_rows

MOVE = "move"
CHANGE_COLUMNS = (*SUBSCRIPTION_COLUMNS, "change", "time")
MOVE_COLUMNS = ("id", *BOX, "region", "time")
_TIMES = ("time", "expires")


class RowCleaner:
    """Cleans batches of a stream; `analysis` is plain data, so that a cleaner travels."""

    def __init__(self, space: str, analysis: Mapping[str, Any]) -> None:
        self._space, self._analysis = space, json.dumps(analysis)
        self._messages = Cleaner(space, analysis, _TIMES)

    def clean(self, rows: pa.Table) -> pa.Table:
        """Columns message, subscription, move, bad, of which each row has one; other rows are null there."""
        cleaned = self._messages.clean(rows_in(rows, MESSAGE))
        messages, bad_messages = _with_times(cleaned.messages, _TIMES)
        changes, bad_changes = _with_times(rows_in(rows, CHANGE), _TIMES[:1])
        changes, unusable = usable_changes(changes, self._unusable)
        moves, bad_moves = _with_times(rows_in(rows, MOVE), _TIMES[:1])
        moves, lost = self._usable_moves(moves)
        bad = pa.concat_tables([cleaned.quarantine, bad_messages, bad_changes, unusable, bad_moves, lost])
        return in_blocks({MESSAGE: messages, CHANGE: changes, MOVE: moves, BAD: bad})

    def _usable_moves(self, moves: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Moves to a place that a subscription may have; whether there is such a subscription its shard will know."""
        wanted = {name: moves[name] for name in (*BOX, "region") if name in moves.column_names}
        no_words = pa.array([[]] * moves.num_rows, pa.list_(pa.string()))
        numbered = pa.table({"id": pa.array(np.arange(moves.num_rows)), "keywords": no_words, **wanted})
        problems = dict(self._unusable(numbered))
        nowhere = np.ones(moves.num_rows, bool)
        for name in {"x0", "region"} & set(wanted):
            nowhere &= np.asarray(moves[name].combine_chunks().is_null())
        for row in np.flatnonzero(nowhere).tolist():
            problems.setdefault(row, "a move without a place; give x0, y0, x1, y1 or a region")
        problems.update(dict.fromkeys(np.flatnonzero(np.asarray(moves["id"].is_null())).tolist(), "the id is null"))
        return _parted(moves, problems)

    def _unusable(self, filed: pa.Table) -> list[tuple[int, str]]:
        columns = {name: filed[name] for name in SUBSCRIPTION_COLUMNS if name in filed.column_names}
        analysis = Analysis.from_dict(json.loads(self._analysis))
        return read_subscription_table(
            pa.table(columns), ReadingContext(space_of(self._space), KeywordKind(analysis), analysis)
        ).rejected


def _with_times(rows: pa.Table, names: tuple[str, ...]) -> tuple[pa.Table, pa.Table]:
    """Rows with their times in seconds, and those whose times cannot be."""
    seconds = {name: seconds_column(rows, name) for name in names}
    kept = rows.drop_columns([name for name in names if name in rows.column_names])
    for name, values in seconds.items():
        kept = kept.append_column(name, pa.array(values, pa.float64(), mask=np.isnan(values)))
    time, ends = seconds["time"], seconds.get("expires", np.full(rows.num_rows, np.nan))
    problems = {}
    for row in np.flatnonzero(np.isinf(time) | np.isinf(ends) | (ends <= time)).tolist():
        given = ", ".join(f"{name}={values[row].item()!r}" for name, values in seconds.items())
        problems[row] = f"the row has {given}; expected finite times, expires > time, or no expires"
    return _parted(kept, problems)


def _parted(rows: pa.Table, problems: Mapping[int, str]) -> tuple[pa.Table, pa.Table]:
    is_kept = pa.array([row not in problems for row in range(rows.num_rows)], pa.bool_())
    return rows.filter(is_kept), quarantine_rows(rows, problems.items())
