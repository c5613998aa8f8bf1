"""The statements of one batch."""

from __future__ import annotations

from nearcast.storage.batch import Batch, SubscriptionRow
from nearcast.storage.database import Transaction

SUBSCRIPTION = ", ".join(SubscriptionRow._fields)
"""The columns of a subscription."""


def write_subscriptions(transaction: Transaction, batch: Batch) -> None:
    if batch.ended:
        transaction.run_many(
            "UPDATE subscriptions SET ended = ? WHERE number = ?", [(sequence, number) for number, sequence in batch.ended]
        )
    if batch.subscriptions:
        marks = ", ".join("?" * len(SubscriptionRow._fields))
        kept = ("number", "created")
        updates = ", ".join(f"{name} = excluded.{name}" for name in SubscriptionRow._fields if name not in kept)
        transaction.run_many(
            f"INSERT INTO subscriptions ({SUBSCRIPTION}) VALUES ({marks}) ON CONFLICT (number) DO UPDATE SET {updates}",
            batch.subscriptions,
        )
        set_fact(transaction, "number", str(max(row.number for row in batch.subscriptions)), is_growing=True)
    if batch.places:
        transaction.run_many(
            "UPDATE subscriptions SET place = ?, place_time = ? WHERE number = ?",
            [(place.place, place.time, place.number) for place in batch.places],
        )


def write_rest(transaction: Transaction, batch: Batch) -> None:
    if batch.message_ids:
        transaction.run_many(
            "INSERT INTO message_ids (key, sequence) VALUES (?, ?) "
            "ON CONFLICT (key) DO UPDATE SET sequence = excluded.sequence",
            batch.message_ids,
        )
    for request in batch.requests:
        transaction.run(
            "INSERT INTO requests (tenant, key, time, answer) VALUES (?, ?, ?, ?) ON CONFLICT (tenant, key) DO NOTHING", request
        )
    for cursor in batch.cursors:
        transaction.run(
            "INSERT INTO cursors (tenant, inbox, cursor) VALUES (?, ?, ?) ON CONFLICT (tenant, inbox) "
            "DO UPDATE SET cursor = excluded.cursor WHERE excluded.cursor > cursors.cursor",
            cursor,
        )
    for collection, tenant, id, body in batch.records:
        if body is None:
            transaction.run("DELETE FROM records WHERE collection = ? AND tenant = ? AND id = ?", (collection, tenant, id))
        else:
            transaction.run(
                "INSERT INTO records (collection, tenant, id, body) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (collection, tenant, id) DO UPDATE SET body = excluded.body",
                (collection, tenant, id, body),
            )
    for key in batch.keys:
        transaction.run("INSERT INTO keys (id, tenant, digest, body) VALUES (?, ?, ?, ?)", key)
    for id in batch.removed_keys:
        transaction.run("DELETE FROM keys WHERE id = ?", (id,))
    for entry in batch.audit:
        transaction.run("INSERT INTO audit (time, tenant, key, action, target, detail) VALUES (?, ?, ?, ?, ?, ?)", entry)
    facts = dict(batch.facts)
    if batch.sequence is not None:
        facts["sequence"] = str(batch.sequence)
    for name, value in facts.items():
        set_fact(transaction, name, value)


def set_fact(transaction: Transaction, name: str, value: str, is_growing: bool = False) -> None:
    if is_growing:
        known = transaction.rows("SELECT value FROM facts WHERE name = ?", (name,))
        if known and int(known[0][0]) >= int(value):
            return
    transaction.run(
        "INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", (name, value)
    )
