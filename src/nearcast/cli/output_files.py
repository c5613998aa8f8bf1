"""Tables of results into Parquet, NDJSON or CSV by suffix, piece by piece; a file appears under its name when it is whole."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from nearcast.cli.input_files import NDJSON_SUFFIXES
from nearcast.errors import NearcastError

STDOUT = "-"
Write = Callable[[pa.Table], None]


def check_target(target: str) -> None:
    """Raise NearcastError before the work is done, not after it."""
    suffix = Path(target).suffix.lower()
    if target != STDOUT and suffix not in (".parquet", ".csv", *NDJSON_SUFFIXES):
        raise NearcastError(f"{target!r}: the suffix {suffix!r} is unknown; expected .parquet, .ndjson, .jsonl, .json or .csv")
    if target != STDOUT and not Path(target).resolve().parent.is_dir():
        raise NearcastError(f"{target!r}: the folder {str(Path(target).resolve().parent)!r} does not exist; make it first")


@contextmanager
def table_writer(target: str, schema: pa.Schema) -> Iterator[Write]:
    """A function that appends a table; the file is complete when the block ends, and left out if it fails."""
    check_target(target)
    if target == STDOUT:
        yield lambda table: _write_lines(sys.stdout, table)
        return
    aside = Path(f"{target}.{os.getpid()}.part")
    try:
        with _opened(aside, Path(target).suffix.lower(), schema) as write:
            yield write
        os.replace(aside, target)
    except OSError as error:
        raise NearcastError(f"{target!r} cannot be written: {error}") from error
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def _opened(path: Path, suffix: str, schema: pa.Schema) -> Iterator[Write]:
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
