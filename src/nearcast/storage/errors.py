"""What can go wrong with a store, said in words an operator can act on."""

from __future__ import annotations

import sqlite3

from nearcast.errors import NearcastError

_FULL = (sqlite3.SQLITE_FULL,)
_READ_ONLY = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class StoreError(NearcastError):
    """The store cannot be read or written. Nothing that was acknowledged is lost by it.

    Operator action: as the message says; the service goes on by itself once the store can be written again.
    """


def of_sqlite(error: sqlite3.Error, path: str) -> StoreError:
    """The error of SQLite in our words."""
    # The low byte is the kind; the rest tells where in SQLite it happened.
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code in _FULL:
        return StoreError(f"the disk of {path!r} is full: nothing new is accepted; free some space or raise the quota")
    if code in _READ_ONLY:
        return StoreError(f"the store {path!r} cannot be written: make the file and its folder writable by this user")
    if code in _DAMAGED:
        return StoreError(f"the store {path!r} is damaged ({error}): restore it with nearcast restore")
    if code == sqlite3.SQLITE_CANTOPEN:
        return StoreError(f"the store {path!r} cannot be opened ({error}): check that its folder exists and may be used")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreError(f"another process holds the store {path!r}: only one server may use it")
    return StoreError(f"the store {path!r} failed: {error}; check the disk")


def of_postgres(error: Exception) -> StoreError:
    """The error of PostgreSQL in our words; never with the URL, which may hold a password."""
    state = getattr(error, "sqlstate", None) or ""
    text = " ".join(str(error).split())
    if state == "53100":
        return StoreError(f"the disk of the PostgreSQL server is full: nothing new is accepted; free some space ({text})")
    if state == "25006":
        return StoreError(f"the PostgreSQL database is read-only: connect to the primary server ({text})")
    return StoreError(f"PostgreSQL failed: {text}; check that the server runs and that this user may write")
