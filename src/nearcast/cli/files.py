"""Tables of messages and subscriptions from files, and tables of results into files: Parquet, NDJSON, CSV, standard streams.

Parquet is read as it is. NDJSON and CSV are read row by row: a bad row is rejected, the others are used.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from nearcast.columns.schemas import BOX, MESSAGE_COLUMNS, POINT, SUBSCRIPTION_COLUMNS
from nearcast.errors import NearcastError
from nearcast.model.analysis import DEFAULT_ANALYSIS

RowKind = Literal["messages", "subscriptions"]
Rejected = list[tuple[int, str]]
SAMPLE, STDIN = "sample", "-"
NDJSON_SUFFIXES = (".ndjson", ".jsonl", ".json")
# A boolean match ignores times, so they may have any form.
_IGNORED = ("time", "expires")
_COLUMNS: dict[RowKind, tuple[str, ...]] = {"messages": MESSAGE_COLUMNS, "subscriptions": SUBSCRIPTION_COLUMNS}


@dataclass(slots=True)
class Batch:
    """A table, the number of each row in the file, and the rows that could not be read."""

    table: pa.Table
    rows: list[int] | range
    rejected: Rejected = field(default_factory=list)

    def in_file(self, rejected: Rejected) -> Rejected:
        """The rejections of an engine, with the row numbers of the file, together with those of reading."""
        return sorted([*self.rejected, *((self.rows[row], reason) for row, reason in rejected)])


def read_all(source: str, kind: RowKind) -> Batch:
    """A whole file as one batch."""
    for batch in read_batches(source, kind, sys.maxsize):
        return batch
    raise NearcastError(f"{_source_name(source)} is empty; expected {kind}")


def read_batches(source: str, kind: RowKind, size: int) -> Iterator[Batch]:
    """A file in batches of at most `size` rows."""
    if source == SAMPLE:
        return _slices(_sample(kind), kind, size)
    if source != STDIN and not Path(source).is_file():
        raise NearcastError(f"there is no file {source!r}; expected a file of {kind}, or 'sample'")
    suffix = Path(source).suffix.lower()
    if suffix == ".parquet":
        return _parquet_batches(source, kind, size)
    if source == STDIN or suffix in NDJSON_SUFFIXES:
        return _row_batches(source, kind, size, is_csv=False)
    if suffix == ".csv":
        return _row_batches(source, kind, size, is_csv=True)
    raise NearcastError(f"{source!r}: the suffix {suffix!r} is unknown; expected .parquet, .ndjson, .jsonl, .json or .csv")


def n_rows(source: str, kind: RowKind) -> int | None:
    """The number of rows, if it can be read without the rows."""
    if source == SAMPLE:
        return int(_sample(kind).num_rows)
    if source.endswith(".parquet") and Path(source).is_file():
        with _as_errors(source, kind):
            return int(pq.read_metadata(source).num_rows)
    return None


def _sample(kind: RowKind) -> pa.Table:
    from nearcast.workloads.sample import sample_messages, sample_subscriptions

    return sample_messages() if kind == "messages" else sample_subscriptions()


def _slices(table: pa.Table, kind: RowKind, size: int) -> Iterator[Batch]:
    table = table.select(_used(table.column_names, kind))
    for first in range(0, table.num_rows, size):
        chunk = table.slice(first, size)
        yield Batch(chunk, range(first, first + chunk.num_rows))


def _parquet_batches(source: str, kind: RowKind, size: int) -> Iterator[Batch]:
    first = 0
    with _as_errors(source, kind), pq.ParquetFile(source) as file:
        used = _used(file.schema_arrow.names, kind)
        if size >= file.metadata.num_rows:
            yield Batch(file.read(used), range(file.metadata.num_rows))
            return
        for record_batch in file.iter_batches(size, columns=used):
            yield Batch(pa.Table.from_batches([record_batch]), range(first, first + record_batch.num_rows))
            first += record_batch.num_rows


def _used(names: list[str], kind: RowKind) -> list[str]:
    return [name for name in names if name in _COLUMNS[kind] and name not in _IGNORED]


def _row_batches(source: str, kind: RowKind, size: int, is_csv: bool) -> Iterator[Batch]:
    used = set(_used(list(_COLUMNS[kind]), kind))
    columns = RowColumns(is_csv, (POINT, BOX) if kind == "messages" else (BOX, ()))
    with _as_errors(source, kind), _open_text(source) as stream:
        rows = _csv_rows(stream, source, kind) if is_csv else _ndjson_rows(stream)
        while batch := list(islice(rows, size)):
            usable, rejected = [], []
            for row in batch:
                if isinstance(row.content, str):
                    rejected.append((row.number, row.content))
                else:
                    usable.append(Row(row.number, {name: value for name, value in row.content.items() if name in used}))
            table, numbers, unusable = columns.table(usable)
            yield Batch(table, numbers, sorted([*rejected, *unusable]))


def _ndjson_rows(stream: IO[str]) -> Iterator[Row]:
    number = -1
    for line in stream:
        if not line.strip():
            continue
        number += 1
        try:
            content = json.loads(line)
        except json.JSONDecodeError as error:
            yield Row(number, f"not JSON: {error}")
            continue
        is_object = isinstance(content, dict)
        yield Row(number, content if is_object else f"a JSON object was expected, not {type(content).__name__}")


def _csv_rows(stream: IO[str], source: str, kind: RowKind) -> Iterator[Row]:
    reader = csv.DictReader(stream)
    if not reader.fieldnames or "id" not in reader.fieldnames:
        raise NearcastError(
            f"{source!r} has the columns {reader.fieldnames}; expected a header with {', '.join(_COLUMNS[kind])}"
        )
    for number, content in enumerate(reader):
        if None in content:
            yield Row(number, "more values than the header has columns")
        else:
            yield Row(number, {name: value for name, value in content.items() if value not in (None, "") or name == "keywords"})


@contextmanager
def _open_text(source: str) -> Iterator[IO[str]]:
    if source == STDIN:
        yield sys.stdin
    else:
        with open(source, encoding="utf-8-sig", newline="") as stream:
            yield stream


@contextmanager
def _as_errors(source: str, kind: RowKind) -> Iterator[None]:
    """Turn errors of the readers into a NearcastError that names the file."""
    try:
        yield
    except NearcastError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error) as error:
        raise NearcastError(f"{_source_name(source)} cannot be read as {kind}: {error}") from error


def _source_name(source: str) -> str:
    return "standard input" if source == STDIN else repr(source)


_INT64 = range(-(2**63), 2**63)
_INT32 = range(-(2**31), 2**31)
_TEXTS = ("interest", "region")


class Row(NamedTuple):
    """A row of a file: its number from 0, and its values or the reason why it has none."""

    number: int
    content: Mapping[str, Any] | str


class RowColumns:
    """Turns batches of rows of one file into tables of one schema. `locations` are the sets of coordinates a row may have.

    The first batch decides whether ids and keywords are numbers or texts; later batches must agree.
    """

    def __init__(self, is_csv: bool, locations: tuple[tuple[str, ...], ...]) -> None:
        self._is_csv = is_csv
        self._locations = locations
        self._id_type: type | None = None
        self._keyword_type: type | None = None

    def table(self, rows: Sequence[Row]) -> tuple[pa.Table, list[int], list[tuple[int, str]]]:
        """The usable rows as a table, their numbers, and the rejected rows with reasons."""
        if self._is_csv and self._id_type is None:
            ids = [row.content["id"] for row in rows if not isinstance(row.content, str) and "id" in row.content]
            self._id_type = int if all(_is_whole(value) for value in ids) else str
        usable: list[dict[str, Any]] = []
        numbers, rejected = [], []
        for row in rows:
            assert not isinstance(row.content, str)
            try:
                usable.append(self._values(row.content))
                numbers.append(row.number)
            except NearcastError as error:
                rejected.append((row.number, str(error)))
        return self._columns(usable), numbers, rejected

    def _values(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """The values of a row, each in the type of its column."""
        if "id" not in content:
            raise NearcastError("there is no id")
        values = {"id": self._id(content["id"])}
        if content.get("keywords") is not None:
            values["keywords"] = self._keywords(content["keywords"])
        if content.get("text") is not None:
            if values.get("keywords"):
                raise NearcastError("there are keywords and a text; give one of them")
            values["keywords"] = DEFAULT_ANALYSIS.words(_text(content["text"], "text"))
        location = [name for name in (*POINT, *BOX) if content.get(name) is not None]
        if tuple(location) not in self._locations:
            expected = " or ".join(", ".join(names) or "none" for names in self._locations)
            raise NearcastError(f"the location has the columns {', '.join(location) or 'none'}; expected {expected}")
        values.update((name, _number(content[name], name)) for name in location)
        for name in _TEXTS:
            if content.get(name) is not None:
                value = content[name]
                values[name] = json.dumps(value) if isinstance(value, dict) else _text(value, name)
        if "interest" in values and not values.get("keywords"):
            values.pop("keywords", None)
        return values

    def _id(self, id: Any) -> Any:
        if self._is_csv and self._id_type is int and _is_whole(id):
            id = int(id)
        if isinstance(id, bool) or not isinstance(id, int | str) or (isinstance(id, int) and id not in _INT64):
            raise NearcastError(f"the id {id!r} is neither a whole number of 64 bits nor a text")
        self._id_type = self._id_type or type(id)
        if type(id) is not self._id_type:
            raise NearcastError(f"the id {id!r} is of another type than the first ids of the file; use one type")
        return id

    def _keywords(self, value: Any) -> list[Any]:
        words = value.split() if isinstance(value, str) else value
        if not isinstance(words, list):
            raise NearcastError(f"the keywords {value!r} are not a list")
        # The common case, a list of texts, needs no check of each word.
        if self._keyword_type is not str or set(map(type, words)) != {str}:
            for word in words:
                self._check_keyword(word)
        return words

    def _check_keyword(self, word: Any) -> None:
        if isinstance(word, bool) or not isinstance(word, int | str) or (isinstance(word, int) and word not in _INT32):
            raise NearcastError(f"the keyword {word!r} is neither a text nor a whole number of 32 bits")
        self._keyword_type = self._keyword_type or type(word)
        if type(word) is not self._keyword_type:
            raise NearcastError(f"the keyword {word!r} is of another type than the first keywords of the file; use one type")

    def _columns(self, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
        types: dict[str, pa.DataType] = {
            "id": pa.string() if self._id_type is str else pa.int64(),
            "keywords": pa.list_(pa.int32() if self._keyword_type is int else pa.string()),
            **{name: pa.float64() for name in (*POINT, *BOX)},
            **{name: pa.string() for name in _TEXTS},
        }
        present = {name for row in rows for name in row}
        if present >= {"x", "x0"}:
            rows = [_as_box(row) for row in rows]
            present -= set(POINT)
        names = [name for name in types if name in present or name in ("id", "keywords")]
        return pa.table({name: pa.array([row.get(name) for row in rows], types[name]) for name in names})


def _as_box(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row with a box instead of a point, for files that contain both."""
    if "x" not in row:
        return row
    x, y = row["x"], row.get("y")
    return {**{name: value for name, value in row.items() if name not in POINT}, "x0": x, "y0": y, "x1": x, "y1": y}


def _is_whole(value: Any) -> bool:
    try:
        return int(value) in _INT64 and str(int(value)) == value
    except (TypeError, ValueError):
        return False


def _number(value: Any, name: str) -> float:
    try:
        if isinstance(value, bool):
            raise ValueError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise NearcastError(f"{name} is {value!r}; expected a number") from None


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise NearcastError(f"{name} is {value!r}; expected a text")
    return value


STDOUT = "-"
Write = Callable[[pa.Table], None]


def check_target(target: str) -> None:
    """Raise NearcastError if `target` cannot be written; called before the work."""
    suffix = Path(target).suffix.lower()
    if target != STDOUT and suffix not in (".parquet", ".csv", *NDJSON_SUFFIXES):
        raise NearcastError(f"{target!r}: the suffix {suffix!r} is unknown; expected .parquet, .ndjson, .jsonl, .json or .csv")
    if target != STDOUT and not Path(target).resolve().parent.is_dir():
        raise NearcastError(f"{target!r}: the folder {str(Path(target).resolve().parent)!r} does not exist; create it first")


@contextmanager
def table_writer(target: str, schema: pa.Schema) -> Iterator[Write]:
    """A function that appends a table. The file appears when the block ends, and not at all if the block fails."""
    check_target(target)
    if target == STDOUT:
        yield lambda table: _write_lines(sys.stdout, table)
        return
    partial = Path(f"{target}.{os.getpid()}.part")
    try:
        with _open_writer(partial, Path(target).suffix.lower(), schema) as write:
            yield write
        os.replace(partial, target)
    except OSError as error:
        raise NearcastError(f"{target!r} cannot be written: {error}") from error
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _open_writer(path: Path, suffix: str, schema: pa.Schema) -> Iterator[Write]:
    if suffix == ".parquet":
        with pq.ParquetWriter(path, schema) as parquet:
            yield parquet.write_table
    elif suffix == ".csv":
        with pa_csv.CSVWriter(path, schema) as lines:
            yield lines.write_table
    else:
        with open(path, "w", encoding="utf-8") as stream:
            yield lambda table: _write_lines(stream, table)


def _write_lines(stream: IO[str], table: pa.Table) -> None:
    names = table.column_names
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    stream.writelines(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n" for row in rows)
    stream.flush()
