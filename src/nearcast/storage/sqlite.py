"""The embedded store: one SQLite file with a write-ahead log, every commit flushed to disk."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nearcast.storage.database import Row, Transaction
from nearcast.storage.errors import StoreError, of_sqlite
from nearcast.storage.schema import MIGRATIONS, SQLITE_TYPES

_BUSY_MS = 10_000
_CACHE_KIB = 64 * 1024
# A checkpoint copies the log into the file; larger ones stall less often, smaller ones for a shorter time.
_CHECKPOINT_PAGES = 4000


class _SqliteTransaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        self._connection.execute(sql, values)

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(sql, rows)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(sql, values).fetchall()


class SqliteDatabase:
    """A file, made if it is not there."""

    def __init__(self, path: str | Path) -> None:
        self.name = str(path)
        self._own = threading.local()
        self._readers: list[sqlite3.Connection] = []
        self._guard = threading.Lock()
        self._is_open = True
        try:
            self._writer = self._connect()
            self._writer.execute("PRAGMA journal_mode=WAL")
            self._writer.execute("PRAGMA synchronous=FULL")
            self._writer.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
            self._writer.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}")
        except sqlite3.Error as error:
            raise of_sqlite(error, self.name) from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.name, isolation_level=None, check_same_thread=False)
        connection.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
        return connection

    def migrate(self) -> None:
        with self.writing() as transaction:
            version = int(transaction.rows("PRAGMA user_version")[0][0])
            if version > len(MIGRATIONS):
                raise StoreError(
                    f"the store {self.name!r} has version {version}; this nearcast knows up to {len(MIGRATIONS)}: upgrade it"
                )
            for statements in MIGRATIONS[version:]:
                for statement in statements:
                    transaction.run(statement.format(**SQLITE_TYPES))
            transaction.run(f"PRAGMA user_version={len(MIGRATIONS)}")

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        with self._guard:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                yield _SqliteTransaction(self._writer)
                self._writer.execute("COMMIT")
            except sqlite3.Error as error:
                self._roll_back()
                raise of_sqlite(error, self.name) from error
            except BaseException:
                self._roll_back()
                raise

    def _roll_back(self) -> None:
        if self._writer.in_transaction:
            try:
                self._writer.execute("ROLLBACK")
            except sqlite3.Error:
                # With a full disk SQLite has rolled back by itself; what matters is that the error above is told.
                return

    def _reader(self) -> sqlite3.Connection:
        reader: sqlite3.Connection | None = getattr(self._own, "reader", None)
        if reader is None:
            reader = self._connect()
            self._own.reader = reader
            with self._guard:
                self._readers.append(reader)
        return reader

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        try:
            return self._reader().execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise of_sqlite(error, self.name) from error

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        try:
            yield from self._reader().cursor().execute(sql, values)
        except sqlite3.Error as error:
            raise of_sqlite(error, self.name) from error

    def n_bytes(self) -> int:
        return sum(os.path.getsize(self.name + end) for end in ("", "-wal") if os.path.exists(self.name + end))

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """Within, this thread's `rows` and `stream` see the store as it is now, whatever others write."""
        reader = self._reader()
        reader.execute("BEGIN")
        try:
            # The moment is that of the first read.
            reader.execute("SELECT count(*) FROM facts").fetchall()
            yield
        finally:
            reader.execute("COMMIT")

    def close(self) -> None:
        with self._guard:
            if not self._is_open:
                return
            self._is_open = False
            for reader in self._readers:
                reader.close()
            self._writer.close()
