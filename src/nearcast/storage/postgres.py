"""The store in a PostgreSQL database (psycopg 3), by its URL."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from nearcast.storage.database import Row, Transaction
from nearcast.storage.errors import StoreError, of_postgres
from nearcast.storage.schema import MIGRATIONS, POSTGRES_TYPES

# Any number that no other program is likely to lock with.
_ONE_SERVER = 0x6E656172
_STREAMED_ROWS = 5000


class _PostgresTransaction:
    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        self._connection.execute(_own_marks(sql), values)

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_own_marks(sql), rows)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(_own_marks(sql), values).fetchall()


class PostgresDatabase:
    """A database; its tables are made in the first schema of the search path."""

    def __init__(self, url: str, is_only_server: bool = False) -> None:
        self._url = url
        try:
            parts = conninfo_to_dict(url)
        except psycopg.Error as error:
            raise StoreError("the URL of the PostgreSQL store does not parse; expected postgresql://user@host/name") from error
        self.name = f"postgresql://{parts.get('host', '')}/{parts.get('dbname', '')}"
        self._is_only_server = is_only_server
        self._own = threading.local()
        self._readers: list[psycopg.Connection] = []
        self._guard = threading.Lock()
        self._writer = self._connect_writer()

    def _connect(self) -> psycopg.Connection:
        try:
            return psycopg.connect(self._url, autocommit=True)
        except psycopg.Error as error:
            raise of_postgres(error) from error

    def _connect_writer(self) -> psycopg.Connection:
        connection = self._connect()
        if self._is_only_server:
            row = connection.execute("SELECT pg_try_advisory_lock(%s)", (_ONE_SERVER,)).fetchone()
            if row is None or not row[0]:
                connection.close()
                raise StoreError(f"another process holds the store {self.name}: only one server may use it")
        return connection

    def migrate(self) -> None:
        with self.writing() as transaction:
            transaction.run("CREATE TABLE IF NOT EXISTS store_version (version BIGINT NOT NULL)")
            found = transaction.rows("SELECT version FROM store_version")
            version = int(found[0][0]) if found else 0
            if version > len(MIGRATIONS):
                raise StoreError(
                    f"the store {self.name} has version {version}; this nearcast knows up to {len(MIGRATIONS)}: upgrade it"
                )
            for statements in MIGRATIONS[version:]:
                for statement in statements:
                    transaction.run(statement.format(**POSTGRES_TYPES))
            transaction.run("DELETE FROM store_version")
            transaction.run("INSERT INTO store_version VALUES (?)", (len(MIGRATIONS),))

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        with self._guard:
            if self._writer.closed:
                self._writer = self._connect_writer()
            try:
                with self._writer.transaction():
                    yield _PostgresTransaction(self._writer)
            except psycopg.Error as error:
                raise of_postgres(error) from error

    def _reader(self) -> psycopg.Connection:
        moment: psycopg.Connection | None = getattr(self._own, "moment", None)
        if moment is not None:
            return moment
        reader: psycopg.Connection | None = getattr(self._own, "reader", None)
        if reader is None or reader.closed:
            reader = self._connect()
            self._own.reader = reader
            with self._guard:
                self._readers.append(reader)
        return reader

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        try:
            return self._reader().execute(_own_marks(sql), values).fetchall()
        except psycopg.Error as error:
            raise of_postgres(error) from error

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        moment: psycopg.Connection | None = getattr(self._own, "moment", None)
        connection = moment or self._connect()
        try:
            with connection.transaction(), connection.cursor(name="stream") as cursor:
                cursor.itersize = _STREAMED_ROWS
                cursor.execute(_own_marks(sql), values)
                yield from cursor
        except psycopg.Error as error:
            raise of_postgres(error) from error
        finally:
            if moment is None:
                connection.close()

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """Within, this thread's `rows` and `stream` see the database as it is now, whatever others write."""
        with self._connect() as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            self._own.moment = connection
            try:
                yield
            finally:
                self._own.moment = None

    def n_bytes(self) -> int:
        return int(self.rows("SELECT pg_database_size(current_database())")[0][0])

    def close(self) -> None:
        with self._guard:
            for connection in (*self._readers, self._writer):
                connection.close()


def _own_marks(sql: str) -> Any:
    # No statement of ours has a question mark or a percent sign inside a value.
    return sql.replace("?", "%s")
