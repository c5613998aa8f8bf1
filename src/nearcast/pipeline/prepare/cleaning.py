"""Raw messages into clean ones: texts into keywords, points or boxes, bad rows into a quarantine. Arrow only, no Spark.

An engine validates the rows: `Matcher.match_table` accepts every clean message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from nearcast.boolean.engine import Matcher
from nearcast.columns.arrow import is_string, list_offsets
from nearcast.columns.schemas import BOX, POINT
from nearcast.errors import NearcastError, SchemaError
from nearcast.model.analysis import Analysis

CORRUPT = "_corrupt_record"  # where Spark puts a record that it could not parse
RAW_COLUMNS = ("id", "keywords", "text", *POINT, *BOX, "time", CORRUPT)
QUARANTINE_SCHEMA = pa.schema({"id": pa.string(), "reason": pa.string(), "row": pa.string()})
_MAX_ROW_CHARACTERS = 4096


class CleaningResult(NamedTuple):
    """The usable messages (id, keywords, location, times if there are any), and the other rows with reasons."""

    messages: pa.Table
    quarantine: pa.Table


class Cleaner:
    """Cleans batches of one source. `analysis` is plain data (`Analysis.to_dict`), so a cleaner can be pickled.

    The columns in `times` stay unchanged.
    """

    def __init__(self, space: str, analysis: Mapping[str, Any], times: Sequence[str] = ("time",)) -> None:
        self._space, self._times = space, times
        self._analysis = json.dumps(analysis, sort_keys=True)

    def clean(self, table: pa.Table) -> CleaningResult:
        """The rows of one batch, each either clean or quarantined."""
        analysis, validator = _tools(self._space, self._analysis)
        problems = _corrupt_rows(table)
        keywords = _keyword_lists(table, analysis, problems)
        columns = {"id": table["id"], "keywords": keywords, **_locations(table)}
        columns |= {name: table[name] for name in self._times if name in table.column_names}
        clean = pa.table(columns)
        for row, reason in validator.encode_table(clean).rejected:
            problems.setdefault(row, reason)
        if not problems:
            return CleaningResult(clean, QUARANTINE_SCHEMA.empty_table())
        is_kept = pa.array([row not in problems for row in range(table.num_rows)], pa.bool_())
        return CleaningResult(clean.filter(is_kept), quarantine_rows(table, problems.items()))


def quarantine_rows(table: pa.Table, rejected: Iterable[tuple[int, str]]) -> pa.Table:
    """Rejected rows of a raw table as rows of the quarantine: id, reason, and the row as JSON, truncated if it is long."""
    in_order = sorted(rejected)
    rows = table.take(pa.array([row for row, _ in in_order], pa.int64())).to_pylist()
    texts = [json.dumps(row, default=str, ensure_ascii=False)[:_MAX_ROW_CHARACTERS] for row in rows]
    ids = [None if row["id"] is None else str(row["id"]) for row in rows]
    return pa.table([ids, [reason for _, reason in in_order], texts], schema=QUARANTINE_SCHEMA)


@lru_cache(maxsize=4)
def _tools(space: str, analysis: str) -> tuple[Analysis, Matcher]:
    """The analysis, and an engine without subscriptions that validates messages."""
    opened_analysis = Analysis.from_dict(json.loads(analysis))
    return opened_analysis, Matcher("scan", space, opened_analysis)


def _corrupt_rows(table: pa.Table) -> dict[int, str]:
    if CORRUPT not in table.column_names:
        return {}
    rows = pc.indices_nonzero(table[CORRUPT].is_valid())
    return dict.fromkeys(rows.to_pylist(), "the record cannot be parsed with the schema of the source")


def _keyword_lists(table: pa.Table, analysis: Analysis, problems: dict[int, str]) -> pa.Array:
    """The keywords of each row in their normal form; the words of its text if it has no keywords."""
    keywords = table["keywords"].combine_chunks() if "keywords" in table.column_names else None
    if "text" not in table.column_names:
        if keywords is None:
            raise SchemaError(f"the messages have the columns {table.column_names}; expected 'keywords' or 'text'")
        return normal_forms(keywords, analysis)
    lists: list[Any] = keywords.to_pylist() if keywords is not None else [None] * table.num_rows
    for row, text in enumerate(table["text"].to_pylist()):
        if lists[row] is not None or row in problems:
            continue
        try:
            if text is None:
                raise NearcastError("neither a text nor keywords are given")
            lists[row] = analysis.words(text)
        except NearcastError as error:
            problems[row] = str(error)
    filled = pa.array(lists, pa.list_(pa.string()) if keywords is None else keywords.type)
    return filled if keywords is None else normal_forms(filled, analysis)


def normal_forms(lists: pa.Array, analysis: Analysis) -> pa.Array:
    """The words in their normal form, computed once per distinct word. Words that cannot be keywords stay unchanged."""
    if not is_string(lists.type.value_type) or len(lists) == 0:
        return lists
    start = list_offsets(lists)
    members = lists.values.slice(start[0], start[-1] - start[0]).dictionary_encode()
    forms = pa.array([_form(word, analysis) for word in members.dictionary.to_pylist()], pa.string())
    offsets = pa.array(start - start[0], pa.int32())
    mask = lists.is_null() if lists.null_count else None
    return pa.ListArray.from_arrays(offsets, forms.take(members.indices), mask=mask)


def _form(word: str, analysis: Analysis) -> str:
    try:
        return analysis.keyword(word)
    except NearcastError:
        return word


def _locations(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """The points; or boxes if the source has boxes, where a point becomes a box of zero area."""
    has_point = set(POINT) <= set(table.column_names)
    if not set(BOX) <= set(table.column_names):
        if not has_point:
            raise SchemaError(f"the messages have the columns {table.column_names}; expected x, y or x0, y0, x1, y1")
        return {name: table[name] for name in POINT}
    if not has_point:
        return {name: table[name] for name in BOX}
    has_box = pc.is_valid(table["x0"])
    return {name: pc.if_else(has_box, table[name], table[name[0]]) for name in BOX}
