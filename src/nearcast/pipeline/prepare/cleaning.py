"""Raw messages into clean ones: text into keywords, one form of place, bad rows aside with the reason. Pure Arrow.

The same validation as an engine's own: what passes here, `Matcher.match_table` takes.
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
_LONGEST_SHOWN = 4096


class Cleaned(NamedTuple):
    """Usable messages (id, keywords, place, times if there are some), and the other rows with what is wrong with them."""

    messages: pa.Table
    quarantine: pa.Table


class Cleaner:
    """Cleans batches of one source; `analysis` is plain data (`Analysis.to_dict`), so that a cleaner travels.

    Columns of `times` stay as they are.
    """

    def __init__(self, space: str, analysis: Mapping[str, Any], times: Sequence[str] = ("time",)) -> None:
        self._space, self._times = space, times
        self._analysis = json.dumps(analysis, sort_keys=True)

    def clean(self, table: pa.Table) -> Cleaned:
        """The rows of one batch, each in one of the two tables."""
        analysis, validator = _tools(self._space, self._analysis)
        problems = _corrupt_rows(table)
        keywords = _keyword_lists(table, analysis, problems)
        columns = {"id": table["id"], "keywords": keywords, **_places(table)}
        columns |= {name: table[name] for name in self._times if name in table.column_names}
        clean = pa.table(columns)
        for row, reason in validator.encode_table(clean).rejected:
            problems.setdefault(row, reason)
        if not problems:
            return Cleaned(clean, QUARANTINE_SCHEMA.empty_table())
        is_kept = pa.array([row not in problems for row in range(table.num_rows)], pa.bool_())
        return Cleaned(clean.filter(is_kept), quarantine_rows(table, problems.items()))


def quarantine_rows(table: pa.Table, rejected: Iterable[tuple[int, str]]) -> pa.Table:
    """Rejected rows of a raw table as rows of the quarantine: id, reason, and the row as JSON, cut where it is long."""
    listed = sorted(rejected)
    rows = table.take(pa.array([row for row, _ in listed], pa.int64())).to_pylist()
    shown = [json.dumps(row, default=str, ensure_ascii=False)[:_LONGEST_SHOWN] for row in rows]
    ids = [None if row["id"] is None else str(row["id"]) for row in rows]
    return pa.table([ids, [reason for _, reason in listed], shown], schema=QUARANTINE_SCHEMA)


@lru_cache(maxsize=4)
def _tools(space: str, analysis: str) -> tuple[Analysis, Matcher]:
    """The analysis, and an engine without subscriptions that knows what a usable message is."""
    made = Analysis.from_dict(json.loads(analysis))
    return made, Matcher("scan", space, made)


def _corrupt_rows(table: pa.Table) -> dict[int, str]:
    if CORRUPT not in table.column_names:
        return {}
    rows = pc.indices_nonzero(table[CORRUPT].is_valid())
    return dict.fromkeys(rows.to_pylist(), "the record cannot be parsed with the schema of the source")


def _keyword_lists(table: pa.Table, analysis: Analysis, problems: dict[int, str]) -> pa.Array:
    """Keywords in their normal form; texts where there are no keywords."""
    given = table["keywords"].combine_chunks() if "keywords" in table.column_names else None
    if "text" not in table.column_names:
        if given is None:
            raise SchemaError(f"the messages have the columns {table.column_names}; expected 'keywords' or 'text'")
        return normal_forms(given, analysis)
    lists: list[Any] = given.to_pylist() if given is not None else [None] * table.num_rows
    for row, text in enumerate(table["text"].to_pylist()):
        if lists[row] is not None or row in problems:
            continue
        try:
            if text is None:
                raise NearcastError("neither a text nor keywords are given")
            lists[row] = analysis.words(text)
        except NearcastError as error:
            problems[row] = str(error)
    found = pa.array(lists, pa.list_(pa.string()) if given is None else given.type)
    return found if given is None else normal_forms(found, analysis)


def normal_forms(lists: pa.Array, analysis: Analysis) -> pa.Array:
    """Words as they are compared, each distinct one looked at once; words that cannot be keywords are left as they are."""
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


def _places(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Points, or boxes where the source has boxes; a row with a point only becomes a box without area."""
    has_point = set(POINT) <= set(table.column_names)
    if not set(BOX) <= set(table.column_names):
        if not has_point:
            raise SchemaError(f"the messages have the columns {table.column_names}; expected x, y or x0, y0, x1, y1")
        return {name: table[name] for name in POINT}
    if not has_point:
        return {name: table[name] for name in BOX}
    has_box = pc.is_valid(table["x0"])
    return {name: pc.if_else(has_box, table[name], table[name[0]]) for name in BOX}
