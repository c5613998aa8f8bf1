"""Files of messages and subscriptions into the tables that engines read: Parquet, NDJSON, CSV, standard input, the sample.

Parquet goes as it is. NDJSON and CSV go row by row, so that one bad row is rejected and the others are used.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.cli.input_columns import Row, RowColumns
from nearcast.columns.schemas import BOX, MESSAGE_COLUMNS, POINT, SUBSCRIPTION_COLUMNS
from nearcast.errors import NearcastError

What = Literal["messages", "subscriptions"]
Rejected = list[tuple[int, str]]
SAMPLE, STDIN = "sample", "-"
NDJSON_SUFFIXES = (".ndjson", ".jsonl", ".json")
# A boolean match needs no times: they may be there in any form.
_NOT_NEEDED = ("time", "expires")
_COLUMNS: dict[What, tuple[str, ...]] = {"messages": MESSAGE_COLUMNS, "subscriptions": SUBSCRIPTION_COLUMNS}


@dataclass(slots=True)
class Batch:
    """A table, the row of the file behind each of its rows, and the rows that could not be read."""

    table: pa.Table
    rows: list[int] | range
    rejected: Rejected = field(default_factory=list)

    def in_file(self, rejected: Rejected) -> Rejected:
        """Rejections of an engine with the rows of the file, beside those of reading."""
        return sorted([*self.rejected, *((self.rows[row], reason) for row, reason in rejected)])


def read_all(source: str, what: What) -> Batch:
    """A whole file as one batch."""
    for batch in read_batches(source, what, sys.maxsize):
        return batch
    raise NearcastError(f"{_named(source)} is empty; expected {what}")


def read_batches(source: str, what: What, size: int) -> Iterator[Batch]:
    """A file in batches of at most `size` rows."""
    if source == SAMPLE:
        return _slices(_sample(what), what, size)
    if source != STDIN and not Path(source).is_file():
        raise NearcastError(f"there is no file {source!r}; expected a file of {what}, or 'sample'")
    suffix = Path(source).suffix.lower()
    if suffix == ".parquet":
        return _parquet_batches(source, what, size)
    if source == STDIN or suffix in NDJSON_SUFFIXES:
        return _row_batches(source, what, size, is_csv=False)
    if suffix == ".csv":
        return _row_batches(source, what, size, is_csv=True)
    raise NearcastError(f"{source!r}: the suffix {suffix!r} is unknown; expected .parquet, .ndjson, .jsonl, .json or .csv")


def n_rows(source: str, what: What) -> int | None:
    """How many rows there are, where that is cheap to know."""
    if source == SAMPLE:
        return int(_sample(what).num_rows)
    if source.endswith(".parquet") and Path(source).is_file():
        with _as_errors(source, what):
            return int(pq.read_metadata(source).num_rows)
    return None


def _sample(what: What) -> pa.Table:
    from nearcast.workloads.sample import sample_messages, sample_subscriptions

    return sample_messages() if what == "messages" else sample_subscriptions()


def _slices(table: pa.Table, what: What, size: int) -> Iterator[Batch]:
    table = table.select(_used(table.column_names, what))
    for first in range(0, table.num_rows, size):
        piece = table.slice(first, size)
        yield Batch(piece, range(first, first + piece.num_rows))


def _parquet_batches(source: str, what: What, size: int) -> Iterator[Batch]:
    first = 0
    with _as_errors(source, what), pq.ParquetFile(source) as file:
        used = _used(file.schema_arrow.names, what)
        if size >= file.metadata.num_rows:
            yield Batch(file.read(used), range(file.metadata.num_rows))
            return
        for record_batch in file.iter_batches(size, columns=used):
            yield Batch(pa.Table.from_batches([record_batch]), range(first, first + record_batch.num_rows))
            first += record_batch.num_rows


def _used(names: list[str], what: What) -> list[str]:
    return [name for name in names if name in _COLUMNS[what] and name not in _NOT_NEEDED]


def _row_batches(source: str, what: What, size: int, is_csv: bool) -> Iterator[Batch]:
    used = set(_used(list(_COLUMNS[what]), what))
    columns = RowColumns(is_csv, (POINT, BOX) if what == "messages" else (BOX, ()))
    with _as_errors(source, what), _opened(source) as stream:
        rows = _csv_rows(stream, source, what) if is_csv else _ndjson_rows(stream)
        while given := list(islice(rows, size)):
            usable, rejected = [], []
            for row in given:
                if isinstance(row.content, str):
                    rejected.append((row.number, row.content))
                else:
                    usable.append(Row(row.number, {name: value for name, value in row.content.items() if name in used}))
            table, numbers, refused = columns.table(usable)
            yield Batch(table, numbers, sorted([*rejected, *refused]))


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


def _csv_rows(stream: IO[str], source: str, what: What) -> Iterator[Row]:
    reader = csv.DictReader(stream)
    if not reader.fieldnames or "id" not in reader.fieldnames:
        raise NearcastError(
            f"{source!r} has the columns {reader.fieldnames}; expected a header with {', '.join(_COLUMNS[what])}"
        )
    for number, content in enumerate(reader):
        if None in content:
            yield Row(number, "more values than the header has columns")
        else:
            yield Row(number, {name: value for name, value in content.items() if value not in (None, "") or name == "keywords"})


@contextmanager
def _opened(source: str) -> Iterator[IO[str]]:
    if source == STDIN:
        yield sys.stdin
    else:
        with open(source, encoding="utf-8-sig", newline="") as stream:
            yield stream


@contextmanager
def _as_errors(source: str, what: What) -> Iterator[None]:
    """What readers of other packages raise, in our words."""
    try:
        yield
    except NearcastError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error) as error:
        raise NearcastError(f"{_named(source)} cannot be read as {what}: {error}") from error


def _named(source: str) -> str:
    return "standard input" if source == STDIN else repr(source)
