"""Raw rows of a ranked stream into clean ones. A row is a message or a change of a subscription; bad ones get a reason.

All words take their normal form here, so that engines need not know of stems.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from nearcast.engine.keyword_kind import KeywordKind
from nearcast.engine.reading import ReadingContext
from nearcast.model.analysis import DEFAULT_ANALYSIS, Analysis
from nearcast.model.spaces import space_of
from nearcast.pipeline.keeping.cleaning_changes import usable_changes
from nearcast.pipeline.keeping.row_blocks import in_blocks, rows_in
from nearcast.pipeline.keeping.row_frames import BAD, CHANGE, MESSAGE
from nearcast.pipeline.prepare.cleaning import Cleaner, normal_forms
from nearcast.ranked.reading import SUBSCRIPTION_COLUMNS, read_ranked_table

CHANGE_COLUMNS = (*SUBSCRIPTION_COLUMNS, "change", "time")


class RowCleaner:
    """Cleans batches of a stream; `analysis` is plain data, so that a cleaner travels."""

    def __init__(self, space: str, analysis: Mapping[str, Any]) -> None:
        self._space, self._analysis = space, json.dumps(analysis)
        self._messages = Cleaner(space, analysis)

    def clean(self, rows: pa.Table) -> pa.Table:
        """Columns message, subscription, bad, of which each row has one; other rows are null there."""
        cleaned = self._messages.clean(rows_in(rows, MESSAGE))
        changes, bad = usable_changes(self._normal(rows_in(rows, CHANGE)), self._unusable)
        return in_blocks({MESSAGE: cleaned.messages, CHANGE: changes, BAD: pa.concat_tables([cleaned.quarantine, bad])})

    def _normal(self, changes: pa.Table) -> pa.Table:
        analysis = Analysis.from_dict(json.loads(self._analysis))
        keywords = normal_forms(changes["keywords"].combine_chunks(), analysis)
        return changes.set_column(changes.column_names.index("keywords"), "keywords", keywords)

    def _unusable(self, filed: pa.Table) -> list[tuple[int, str]]:
        columns = {name: filed[name] for name in SUBSCRIPTION_COLUMNS if name in filed.column_names}
        border = ReadingContext(space_of(self._space), KeywordKind(DEFAULT_ANALYSIS), DEFAULT_ANALYSIS)
        return read_ranked_table(pa.table(columns), border).rejected
