"""`Store`: batches in, rows and pages out."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pyroaring import BitMap

from nearcast.errors import EnvironmentProblem
from nearcast.storage.batch import AuditRow, Batch, KeyRow, SubscriptionRow
from nearcast.storage.database import Database, any_of
from nearcast.storage.errors import StoreError
from nearcast.storage.page_summaries import PageGroups
from nearcast.storage.pages import Page
from nearcast.storage.sqlite import SqliteDatabase
from nearcast.storage.statements import SUBSCRIPTION, set_fact, write_rest, write_subscriptions

_PAGE = "first, last, time, messages, reached, events"
_AT_ONCE = 500


class Store:
    """The durable state of one service. One thread writes, any thread reads."""

    def __init__(self, database: Database) -> None:
        self.database = database
        database.migrate()
        self._groups = PageGroups()
        self._has_groups = False
        self._lock_file: int | None = None

    # --- writing -----------------------------------------------------------------------------------------------------

    def write(self, batch: Batch) -> None:
        """Keep a batch; it is on disk when this returns. Raises StoreError: then all of it is kept or nothing.

        A connection that is lost while it commits does not say which; `settled_sequence` does.
        """
        if not self._has_groups:
            self._groups.load(self.database)
        # Until it is known what was kept, the open groups are not.
        self._has_groups = False
        with self.database.writing() as transaction:
            write_subscriptions(transaction, batch)
            if batch.page is not None:
                page, (messages, reached, events) = batch.page, batch.page.stored()
                n_bytes = len(messages) + len(reached) + len(events)
                transaction.run(
                    "INSERT INTO pages (first, last, time, n_messages, n_bytes, messages, reached, events) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (page.first, page.last, page.time, page.n_messages, n_bytes, messages, reached, events),
                )
                for row in self._groups.rows_with(page):
                    transaction.run("INSERT INTO page_groups (level, first, last, reached) VALUES (?, ?, ?, ?)", row)
            write_rest(transaction, batch)
        if batch.page is not None:
            self._groups.add(batch.page)
        self._has_groups = True

    def settled_sequence(self) -> int:
        """The last sequence taken, with no write of before still under way: the writer itself looks."""
        with self.database.writing() as transaction:
            rows = transaction.rows("SELECT value FROM facts WHERE name = 'sequence'")
        return int(rows[0][0]) if rows else 0

    def remove_before(self, sequence: int) -> None:
        """Forget pages, ids of messages, and ended subscriptions up to a sequence."""
        snapshot = self.fact("snapshot")
        # Those that a snapshot of the index still has must be known to have ended.
        last_ended = sequence if snapshot is None else min(sequence, int(snapshot.split(" ")[1]))
        with self.database.writing() as transaction:
            transaction.run("DELETE FROM pages WHERE last <= ?", (sequence,))
            transaction.run("DELETE FROM page_groups WHERE last <= ?", (sequence,))
            transaction.run("DELETE FROM message_ids WHERE sequence <= ?", (sequence,))
            transaction.run("DELETE FROM subscriptions WHERE ended <= ?", (last_ended,))
            set_fact(transaction, "removed", str(sequence))

    def remove_requests(self, before: float) -> None:
        """Forget idempotency keys older than a time."""
        with self.database.writing() as transaction:
            transaction.run("DELETE FROM requests WHERE time < ?", (before,))

    # --- facts -------------------------------------------------------------------------------------------------------

    def fact(self, name: str) -> str | None:
        rows = self.database.rows("SELECT value FROM facts WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    @property
    def sequence(self) -> int:
        """The last sequence taken."""
        return int(self.fact("sequence") or 0)

    @property
    def removed(self) -> int:
        """Events up to this sequence may be gone."""
        return int(self.fact("removed") or 0)

    # --- subscriptions -----------------------------------------------------------------------------------------------

    def last_number(self) -> int:
        """The largest number a subscription ever had, as far as rows tell."""
        rows = self.database.rows("SELECT max(number) FROM subscriptions")
        return max(int(rows[0][0] or 0), int(self.fact("number") or 0))

    def find_subscriptions(self, names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], SubscriptionRow]:
        """Living ones by (tenant, id)."""
        by_tenant: dict[str, list[str]] = {}
        for tenant, id in names:
            by_tenant.setdefault(tenant, []).append(id)
        found = {}
        for tenant, ids in by_tenant.items():
            for at in range(0, len(ids), _AT_ONCE):
                some = ids[at : at + _AT_ONCE]
                is_wanted = any_of("id", len(some))
                sql = f"SELECT {SUBSCRIPTION} FROM subscriptions WHERE ended IS NULL AND tenant = ? AND {is_wanted}"
                for row in self.database.rows(sql, (tenant, *some)):
                    found[tenant, row[2]] = SubscriptionRow(*row)
        return found

    def find_inboxes(self, tenant: str, ids: Sequence[str]) -> dict[str, SubscriptionRow]:
        """By id: the living one, or else the last that ended and whose events may still be there."""
        found = {id: row for (_, id), row in self.find_subscriptions((tenant, id) for id in ids).items()}
        gone = [id for id in ids if id not in found]
        for at in range(0, len(gone), _AT_ONCE):
            some = gone[at : at + _AT_ONCE]
            sql = (
                f"SELECT {SUBSCRIPTION} FROM subscriptions WHERE ended IS NOT NULL AND tenant = ? "
                f"AND {any_of('id', len(some))} ORDER BY ended"
            )
            found.update((row[2], SubscriptionRow(*row)) for row in self.database.rows(sql, (tenant, *some)))
        return found

    def subscriptions_of(self, numbers: Sequence[int]) -> list[SubscriptionRow]:
        """By number, also ended ones."""
        found = []
        for at in range(0, len(numbers), _AT_ONCE):
            some = numbers[at : at + _AT_ONCE]
            sql = f"SELECT {SUBSCRIPTION} FROM subscriptions WHERE {any_of('number', len(some))}"
            found += [SubscriptionRow(*row) for row in self.database.rows(sql, some)]
        return found

    def numbers_of(self, tenant: str, subscriber: str) -> BitMap:
        """Of all subscriptions of a subscriber, also ended ones."""
        sql = "SELECT number FROM subscriptions WHERE tenant = ? AND subscriber = ?"
        return BitMap([row[0] for row in self.database.rows(sql, (tenant, subscriber))])

    def list_subscriptions(self, tenant: str, subscriber: str | None, after: int, limit: int) -> list[SubscriptionRow]:
        """Living ones by number."""
        is_own = "" if subscriber is None else "AND subscriber = ?"
        sql = (
            f"SELECT {SUBSCRIPTION} FROM subscriptions WHERE tenant = ? {is_own} AND ended IS NULL AND number > ? "
            "ORDER BY number LIMIT ?"
        )
        values = (tenant, after, limit) if subscriber is None else (tenant, subscriber, after, limit)
        return [SubscriptionRow(*row) for row in self.database.rows(sql, values)]

    def changed_subscriptions(self, after: int, kind: str) -> Iterator[SubscriptionRow]:
        """Living ones that listen and were put after a sequence, by number."""
        is_listening = "ended IS NULL AND paused = 0"
        sql = f"SELECT {SUBSCRIPTION} FROM subscriptions WHERE changed > ? AND {is_listening} AND kind = ? ORDER BY number"
        return (SubscriptionRow(*row) for row in self.database.stream(sql, (after, kind)))

    def gone_numbers(self, after: int) -> list[int]:
        """Ended or paused after a sequence, or of another kind than boolean since."""
        sql = (
            "SELECT number FROM subscriptions WHERE ended > ? "
            "UNION SELECT number FROM subscriptions WHERE changed > ? AND (kind <> 'boolean' OR paused = 1)"
        )
        return [row[0] for row in self.database.rows(sql, (after, after))]

    def listening_numbers(self, kind: str) -> BitMap:
        """Of the living subscriptions of a kind that are not paused."""
        sql = "SELECT number FROM subscriptions WHERE ended IS NULL AND paused = 0 AND kind = ?"
        return BitMap([row[0] for row in self.database.rows(sql, (kind,))])

    def expired_subscriptions(self, now: float, limit: int) -> list[SubscriptionRow]:
        sql = f"SELECT {SUBSCRIPTION} FROM subscriptions WHERE ended IS NULL AND expires <= ? ORDER BY expires LIMIT ?"
        return [SubscriptionRow(*row) for row in self.database.rows(sql, (now, limit))]

    def subscription_options(self) -> Iterator[tuple[int, bytes, int | None]]:
        """(number, options, when it ended) of all that have options; those of ended ones count until their events are gone."""
        sql = "SELECT number, options, ended FROM subscriptions WHERE options IS NOT NULL"
        return ((row[0], bytes(row[1]), row[2]) for row in self.database.stream(sql))

    def count_subscriptions(self, tenant: str) -> int:
        sql = "SELECT count(*) FROM subscriptions WHERE tenant = ? AND ended IS NULL"
        return int(self.database.rows(sql, (tenant,))[0][0])

    # --- pages -------------------------------------------------------------------------------------------------------

    def page_with(self, sequence: int) -> Page | None:
        """The page that holds a sequence."""
        sql = f"SELECT {_PAGE} FROM pages WHERE first <= ? ORDER BY first DESC LIMIT 1"
        for row in self.database.rows(sql, (sequence,)):
            if row[1] >= sequence:
                return Page.read(*row)
        return None

    def pages_before(self, before: int, limit: int) -> list[Page]:
        """Pages that begin before a sequence, newest first."""
        sql = f"SELECT {_PAGE} FROM pages WHERE first < ? ORDER BY first DESC LIMIT ?"
        return [Page.read(*row) for row in self.database.rows(sql, (before, limit))]

    def pages_from(self, sequence: int, limit: int) -> list[Page]:
        """Pages that begin at a sequence or later, oldest first."""
        sql = f"SELECT {_PAGE} FROM pages WHERE first >= ? ORDER BY first LIMIT ?"
        return [Page.read(*row) for row in self.database.rows(sql, (sequence, limit))]

    def next_page_for(self, numbers: BitMap, after: int, up_to: int) -> Page | None:
        """The first page after a sequence that reaches one of the subscriptions; skips whole groups that do not."""
        return self._groups.next_page(self.database, numbers, after, up_to)

    def page_sizes(self) -> list[tuple[int, float, int]]:
        """(last, time, bytes) of every page, oldest first."""
        return [(row[0], row[1], row[2]) for row in self.database.rows("SELECT last, time, n_bytes FROM pages ORDER BY first")]

    def find_message_ids(self, keys: Sequence[bytes]) -> dict[bytes, int]:
        found: dict[bytes, int] = {}
        for at in range(0, len(keys), _AT_ONCE):
            some = keys[at : at + _AT_ONCE]
            rows = self.database.rows(f"SELECT key, sequence FROM message_ids WHERE {any_of('key', len(some))}", some)
            found.update((bytes(row[0]), row[1]) for row in rows)
        return found

    def find_request(self, tenant: str, key: str) -> bytes | None:
        rows = self.database.rows("SELECT answer FROM requests WHERE tenant = ? AND key = ?", (tenant, key))
        return bytes(rows[0][0]) if rows else None

    # --- small things ------------------------------------------------------------------------------------------------

    def cursor(self, tenant: str, inbox: str) -> int:
        rows = self.database.rows("SELECT cursor FROM cursors WHERE tenant = ? AND inbox = ?", (tenant, inbox))
        return int(rows[0][0]) if rows else 0

    def record(self, collection: str, tenant: str, id: str) -> bytes | None:
        rows = self.database.rows(
            "SELECT body FROM records WHERE collection = ? AND tenant = ? AND id = ?", (collection, tenant, id)
        )
        return bytes(rows[0][0]) if rows else None

    def records(self, collection: str, tenant: str | None = None) -> list[tuple[str, str, bytes]]:
        """(tenant, id, body) of a collection, of one tenant or of all."""
        is_own = "" if tenant is None else "AND tenant = ?"
        sql = f"SELECT tenant, id, body FROM records WHERE collection = ? {is_own} ORDER BY tenant, id"
        rows = self.database.rows(sql, (collection,) if tenant is None else (collection, tenant))
        return [(row[0], row[1], bytes(row[2])) for row in rows]

    def key(self, id: str) -> KeyRow | None:
        rows = self.database.rows("SELECT id, tenant, digest, body FROM keys WHERE id = ?", (id,))
        return KeyRow(rows[0][0], rows[0][1], bytes(rows[0][2]), bytes(rows[0][3])) if rows else None

    def keys(self, tenant: str | None = None) -> list[KeyRow]:
        is_own = "" if tenant is None else "WHERE tenant = ?"
        rows = self.database.rows(
            f"SELECT id, tenant, digest, body FROM keys {is_own} ORDER BY id", () if tenant is None else (tenant,)
        )
        return [KeyRow(row[0], row[1], bytes(row[2]), bytes(row[3])) for row in rows]

    def audit(self, tenant: str, before: int | None, limit: int) -> list[tuple[int, AuditRow]]:
        """Newest first, with the number of each entry."""
        sql = (
            "SELECT number, time, tenant, key, action, target, detail FROM audit WHERE tenant = ? AND number < ? "
            "ORDER BY number DESC LIMIT ?"
        )
        rows = self.database.rows(sql, (tenant, before if before is not None else 2**62, limit))
        return [(row[0], AuditRow(*row[1:])) for row in rows]

    def close(self) -> None:
        self.database.close()
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    def hold(self, path: Path) -> None:
        """Keep other servers away from the file; raises StoreError if one has it."""
        self._lock_file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StoreError(f"another process holds the store {self.database.name!r}: only one server may use it") from None


def open_store(address: str, is_server: bool = False) -> Store:
    """A store by its path or its postgresql:// URL; `is_server`: the one process that publishes."""
    if address.startswith(("postgresql://", "postgres://")):
        try:
            from nearcast.storage.postgres import PostgresDatabase
        except ImportError:
            raise EnvironmentProblem("a PostgreSQL store needs psycopg: pip install 'nearcast[postgres]'") from None
        return Store(PostgresDatabase(address, is_server))
    path = Path(address)
    if not path.parent.is_dir():
        raise StoreError(f"the folder {str(path.parent)!r} of the store does not exist; make it first")
    # What is in it concerns nobody else on this machine. If it cannot be made, SQLite says why.
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_RDONLY, 0o600))
    store = Store(SqliteDatabase(path))
    if is_server:
        store.hold(path.with_name(path.name + ".lock"))
    return store
