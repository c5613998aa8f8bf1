"""The tables of a store, and how an older store becomes a new one.

Written once for SQLite and PostgreSQL: {int}, {real}, {blob}, {serial} stand for their types.
"""

from __future__ import annotations

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE subscriptions (
            number {int} PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL, subscriber TEXT NOT NULL, kind TEXT NOT NULL,
            created {real} NOT NULL, expires {real}, changed {int} NOT NULL, ended {int}, place_time {real},
            body {blob} NOT NULL, place {blob}, options {blob})""",
        "CREATE UNIQUE INDEX subscriptions_by_id ON subscriptions (tenant, id) WHERE ended IS NULL",
        "CREATE INDEX subscriptions_by_owner ON subscriptions (tenant, subscriber, number)",
        "CREATE INDEX subscriptions_by_change ON subscriptions (changed)",
        "CREATE INDEX subscriptions_by_kind ON subscriptions (kind, number) WHERE kind <> 'boolean'",
        "CREATE INDEX subscriptions_with_options ON subscriptions (number) WHERE options IS NOT NULL",
        "CREATE INDEX subscriptions_by_end ON subscriptions (ended) WHERE ended IS NOT NULL",
        "CREATE INDEX subscriptions_by_expiry ON subscriptions (expires) WHERE expires IS NOT NULL AND ended IS NULL",
        """CREATE TABLE pages (
            first {int} PRIMARY KEY, last {int} NOT NULL, time {real} NOT NULL, n_messages {int} NOT NULL,
            n_bytes {int} NOT NULL, messages {blob} NOT NULL, reached {blob} NOT NULL, events {blob} NOT NULL)""",
        """CREATE TABLE page_groups (
            level {int} NOT NULL, first {int} NOT NULL, last {int} NOT NULL, reached {blob} NOT NULL,
            PRIMARY KEY (level, first))""",
        "CREATE TABLE message_ids (key {blob} PRIMARY KEY, sequence {int} NOT NULL) {keyed}",
        "CREATE INDEX message_ids_by_sequence ON message_ids (sequence)",
        """CREATE TABLE requests (
            tenant TEXT NOT NULL, key TEXT NOT NULL, time {real} NOT NULL, answer {blob} NOT NULL, PRIMARY KEY (tenant, key))
            {keyed}""",
        """CREATE TABLE cursors (
            tenant TEXT NOT NULL, inbox TEXT NOT NULL, cursor {int} NOT NULL, PRIMARY KEY (tenant, inbox)) {keyed}""",
        """CREATE TABLE records (
            collection TEXT NOT NULL, tenant TEXT NOT NULL, id TEXT NOT NULL, body {blob} NOT NULL,
            PRIMARY KEY (collection, tenant, id)) {keyed}""",
        """CREATE TABLE keys (
            id TEXT PRIMARY KEY, tenant TEXT NOT NULL, digest {blob} NOT NULL, body {blob} NOT NULL)""",
        """CREATE TABLE audit (
            number {serial}, time {real} NOT NULL, tenant TEXT NOT NULL, key TEXT NOT NULL, action TEXT NOT NULL,
            target TEXT NOT NULL, detail TEXT NOT NULL)""",
        "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    ),
    (
        "ALTER TABLE subscriptions ADD COLUMN paused {int} NOT NULL DEFAULT 0",
        # Their answers have another form now.
        "DELETE FROM requests",
    ),
)
"""One entry for each version of the schema: what leads to it from the one before."""

SQLITE_TYPES = {
    "int": "INTEGER",
    "real": "REAL",
    "blob": "BLOB",
    "serial": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "keyed": "WITHOUT ROWID",
}
POSTGRES_TYPES = {
    "int": "BIGINT",
    "real": "DOUBLE PRECISION",
    "blob": "BYTEA",
    "serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "keyed": "",
}
