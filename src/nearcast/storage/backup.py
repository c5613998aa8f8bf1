"""Backup and restore. A backup is a SQLite store in one file, whatever the store is; so it can be looked at, and served."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from nearcast.storage.database import Database
from nearcast.storage.errors import StoreError
from nearcast.storage.sqlite import SqliteDatabase
from nearcast.storage.store import Store, open_store

TABLES = {
    "subscriptions": "number",
    "pages": "first",
    "page_groups": "level, first",
    "message_ids": "sequence",
    "requests": "tenant, key",
    "cursors": "tenant, inbox",
    "records": "collection, tenant, id",
    "keys": "id",
    "audit": "number",
    "facts": "name",
}
"""Every table, and the order its rows are copied in."""
_AT_ONCE = 1000


def back_up(address: str, target: Path) -> int:
    """Copy a store into a new file; how many rows it has."""
    if target.exists():
        raise StoreError(f"{str(target)!r} exists; give a file that is not there yet")
    partial = target.with_name(target.name + ".partial")
    partial.unlink(missing_ok=True)
    store = open_store(address)
    try:
        copy = SqliteDatabase(partial)
        copy.migrate()
        with store.database.one_moment():
            n_rows = _copy_tables(store.database, copy)
        _forget_snapshot(copy)
        copy.close()
    finally:
        store.close()
    os.replace(partial, target)
    return n_rows


def restore_store(source: Path, address: str) -> int:
    """Make a store from a backup; how many rows it has."""
    if not source.is_file():
        raise StoreError(f"there is no backup {str(source)!r}")
    if not address.startswith("postgres") and Path(address).exists():
        raise StoreError(f"{address!r} exists; restore into a file that is not there yet, or move it away")
    backup = Store(SqliteDatabase(source))
    store = open_store(address)
    try:
        if store.sequence or store.last_number():
            raise StoreError(f"the store {store.database.name} is not empty; restore into an empty one")
        return _copy_tables(backup.database, store.database)
    finally:
        store.close()
        backup.close()


def _copy_tables(source: Database, target: Database) -> int:
    n_rows = 0
    with target.writing() as transaction:
        for table, order in TABLES.items():
            columns = _columns(source, table)
            names, marks = ", ".join(columns), ", ".join("?" * len(columns))
            # Numbers of audit entries are kept, so that the order and the pages of the list stay.
            overriding = "OVERRIDING SYSTEM VALUE " if table == "audit" and not isinstance(target, SqliteDatabase) else ""
            sql = f"INSERT INTO {table} ({names}) {overriding}VALUES ({marks})"
            rows = source.stream(f"SELECT {names} FROM {table} ORDER BY {order}")
            for some in _chunks(rows):
                transaction.run_many(sql, some)
                n_rows += len(some)
        if not isinstance(target, SqliteDatabase):
            transaction.run("SELECT setval(pg_get_serial_sequence('audit', 'number'), coalesce(max(number), 0) + 1) FROM audit")
    return n_rows


def _columns(database: Database, table: str) -> list[str]:
    if isinstance(database, SqliteDatabase):
        return [row[1] for row in database.rows(f"PRAGMA table_info({table})")]
    sql = (
        "SELECT column_name FROM information_schema.columns WHERE table_name = ? AND table_schema = current_schema() "
        "ORDER BY ordinal_position"
    )
    return [row[0] for row in database.rows(sql, (table,))]


def _chunks(rows: Iterator[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    while some := list(islice(rows, _AT_ONCE)):
        yield some


def _forget_snapshot(database: Database) -> None:
    """A snapshot of the index belongs to the place of the store it was made from."""
    with database.writing() as transaction:
        transaction.run("DELETE FROM facts WHERE name = 'snapshot'")
