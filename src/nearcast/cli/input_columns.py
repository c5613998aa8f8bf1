"""Rows of NDJSON or CSV as typed columns; a row whose values do not fit is rejected, the others stay.

The first batch decides whether ids and keywords are numbers or texts; later batches keep to it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from nearcast.columns.schemas import BOX, POINT
from nearcast.errors import NearcastError
from nearcast.model.analysis import DEFAULT_ANALYSIS

_INT64 = range(-(2**63), 2**63)
_INT32 = range(-(2**31), 2**31)
_TEXTS = ("interest", "region")


class Row(NamedTuple):
    """A row of a file by its number from 0: its values, or why it has none."""

    number: int
    content: Mapping[str, Any] | str


class RowColumns:
    """Turns batches of rows of one file into tables of one schema; `places` are the sets of coordinates a row may have."""

    def __init__(self, is_csv: bool, places: tuple[tuple[str, ...], ...]) -> None:
        self._is_csv = is_csv
        self._places = places
        self._id_type: type | None = None
        self._keyword_type: type | None = None

    def table(self, rows: Sequence[Row]) -> tuple[pa.Table, list[int], list[tuple[int, str]]]:
        """The usable rows as a table, their numbers, and the others with a reason."""
        if self._is_csv and self._id_type is None:
            ids = [row.content["id"] for row in rows if not isinstance(row.content, str) and "id" in row.content]
            self._id_type = int if all(_is_whole(value) for value in ids) else str
        kept: list[dict[str, Any]] = []
        numbers, rejected = [], []
        for row in rows:
            assert not isinstance(row.content, str)
            try:
                kept.append(self._values(row.content))
                numbers.append(row.number)
            except NearcastError as error:
                rejected.append((row.number, str(error)))
        return self._columns(kept), numbers, rejected

    def _values(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """One row with every value in the type of its column."""
        if "id" not in content:
            raise NearcastError("there is no id")
        values = {"id": self._id(content["id"])}
        if content.get("keywords") is not None:
            values["keywords"] = self._keywords(content["keywords"])
        if content.get("text") is not None:
            if values.get("keywords"):
                raise NearcastError("there are keywords and a text; give one of them")
            values["keywords"] = DEFAULT_ANALYSIS.words(_text(content["text"], "text"))
        place = [name for name in (*POINT, *BOX) if content.get(name) is not None]
        if tuple(place) not in self._places:
            expected = " or ".join(", ".join(names) or "none" for names in self._places)
            raise NearcastError(f"the place has the columns {', '.join(place) or 'none'}; expected {expected}")
        values.update((name, _number(content[name], name)) for name in place)
        for name in _TEXTS:
            if content.get(name) is not None:
                given = content[name]
                values[name] = json.dumps(given) if isinstance(given, dict) else _text(given, name)
        if "interest" in values and not values.get("keywords"):
            values.pop("keywords", None)
        return values

    def _id(self, given: Any) -> Any:
        if self._is_csv and self._id_type is int and _is_whole(given):
            given = int(given)
        if isinstance(given, bool) or not isinstance(given, int | str) or (isinstance(given, int) and given not in _INT64):
            raise NearcastError(f"the id {given!r} is neither a whole number of 64 bits nor a text")
        self._id_type = self._id_type or type(given)
        if type(given) is not self._id_type:
            raise NearcastError(f"the id {given!r} is of another kind than the first ids of the file: keep to one kind")
        return given

    def _keywords(self, given: Any) -> list[Any]:
        words = given.split() if isinstance(given, str) else given
        if not isinstance(words, list):
            raise NearcastError(f"the keywords {given!r} are not a list")
        # A list of plain texts, by far the commonest, needs no look at each of them.
        if self._keyword_type is not str or set(map(type, words)) != {str}:
            for word in words:
                self._check_keyword(word)
        return words

    def _check_keyword(self, word: Any) -> None:
        if isinstance(word, bool) or not isinstance(word, int | str) or (isinstance(word, int) and word not in _INT32):
            raise NearcastError(f"the keyword {word!r} is neither a text nor a whole number of 32 bits")
        self._keyword_type = self._keyword_type or type(word)
        if type(word) is not self._keyword_type:
            raise NearcastError(f"the keyword {word!r} is of another kind than the first ones of the file: keep to one kind")

    def _columns(self, kept: Sequence[Mapping[str, Any]]) -> pa.Table:
        types: dict[str, pa.DataType] = {
            "id": pa.string() if self._id_type is str else pa.int64(),
            "keywords": pa.list_(pa.int32() if self._keyword_type is int else pa.string()),
            **{name: pa.float64() for name in (*POINT, *BOX)},
            **{name: pa.string() for name in _TEXTS},
        }
        present = {name for row in kept for name in row}
        if present >= {"x", "x0"}:
            kept = [_as_box(row) for row in kept]
            present -= set(POINT)
        names = [name for name in types if name in present or name in ("id", "keywords")]
        return pa.table({name: pa.array([row.get(name) for row in kept], types[name]) for name in names})


def _as_box(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row that may be a point as one with a box, for files that hold both."""
    if "x" not in row:
        return row
    x, y = row["x"], row.get("y")
    return {**{name: value for name, value in row.items() if name not in POINT}, "x0": x, "y0": y, "x1": x, "y1": y}


def _is_whole(given: Any) -> bool:
    try:
        return int(given) in _INT64 and str(int(given)) == given
    except (TypeError, ValueError):
        return False


def _number(given: Any, name: str) -> float:
    try:
        if isinstance(given, bool):
            raise ValueError
        return float(given)
    except (TypeError, ValueError, OverflowError):
        raise NearcastError(f"{name} is {given!r}; expected a number") from None


def _text(given: Any, name: str) -> str:
    if not isinstance(given, str):
        raise NearcastError(f"{name} is {given!r}; expected a text")
    return given
