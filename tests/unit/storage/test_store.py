"""Stores of both kinds keep batches as a whole, and give back what they were given."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pyroaring import BitMap

from nearcast.storage.backup import back_up, restore_store
from nearcast.storage.batch import AuditRow, Batch, KeyRow, Place, SubscriptionRow
from nearcast.storage.errors import StoreError
from nearcast.storage.pages import Page, Span, match_events
from nearcast.storage.retention import drop_old
from nearcast.storage.schema import MIGRATIONS, SQLITE_TYPES
from nearcast.storage.sqlite import SqliteDatabase
from nearcast.storage.store import Store, open_store
from support.postgres_server import postgres_programs, small_database


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    if postgres_programs() is None:
        pytest.skip("PostgreSQL is not installed here")
    with tempfile.TemporaryDirectory(prefix="nearcast-postgres-") as folder, small_database(Path(folder)) as database:
        yield database.url


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    url: str = request.getfixturevalue("postgres")
    empty(url)
    return url


def empty(url: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    opened = open_store(address, is_server=True)
    yield opened
    opened.close()


def row(number: int, id: str, subscriber: str = "ann", **changes: object) -> SubscriptionRow:
    plain = SubscriptionRow(number, "t", id, subscriber, "boolean", 1.0, None, number, None, None, b"{}", None, None)
    return plain._replace(**changes)  # type: ignore[arg-type]


def page(first: int, time: float, subscription: int = 1) -> Page:
    events = match_events(np.array([subscription]), np.array([first]))
    return Page.of(Span(first, first, first), time, [b"{}"], ["t"], events)


def test_subscriptions_are_found_replaced_moved_and_ended(store: Store) -> None:
    first, second, third = row(1, "a", expires=50.0), row(2, "b", "bob"), row(3, "c", kind="moving", options=b"{}")
    store.write(Batch(subscriptions=[first, second, third], sequence=3))
    store.write(Batch(subscriptions=[second._replace(body=b"[]", changed=4)], places=[Place(3, b"here", 7.0)], sequence=4))
    assert store.find_subscriptions([("t", "a"), ("t", "b"), ("u", "a"), ("t", "z")]) == {
        ("t", "a"): first,
        ("t", "b"): second._replace(body=b"[]", changed=4),
    }
    assert [one.id for one in store.list_subscriptions("t", None, 1, 9)] == ["b", "c"]
    assert [one.id for one in store.list_subscriptions("t", "ann", 0, 1)] == ["a"]
    assert store.subscriptions_of([3]) == [third._replace(place=b"here", place_time=7.0)]
    assert [one.id for one in store.changed_subscriptions(3, "boolean")] == ["b"]
    assert [one.id for one in store.expired_subscriptions(50.0, 9)] == ["a"]
    assert store.expired_subscriptions(49.9, 9) == []
    assert [*store.subscription_options()] == [(3, b"{}", None)]
    store.write(Batch(ended=[(1, 5)], subscriptions=[row(4, "a")], sequence=5))
    assert store.find_subscriptions([("t", "a")])["t", "a"].number == 4
    assert store.numbers_of("t", "ann") == BitMap([1, 3, 4])
    assert sorted(store.gone_numbers(2)) == [1, 3]
    assert store.count_subscriptions("t") == 3
    assert (store.sequence, store.last_number()) == (5, 4)


def test_a_batch_that_fails_leaves_nothing(store: Store) -> None:
    store.write(Batch(page=page(1, 0.0), sequence=1))
    bad = Batch(page=page(1, 0.0), subscriptions=[row(9, "z")], facts={"x": "y"}, sequence=2)
    with pytest.raises(StoreError):
        store.write(bad)
    assert (store.sequence, store.fact("x"), store.subscriptions_of([9])) == (1, None, [])
    store.write(Batch(page=page(2, 0.0), sequence=2))
    assert store.sequence == 2


def test_small_things_are_kept(store: Store) -> None:
    entry = AuditRow(3.0, "t", "k", "did", "this", "so")
    key = KeyRow("k", "t", b"digest", b"body")
    store.write(
        Batch(cursors=[("t", "i", 5)], records=[("c", "t", "1", b"x"), ("c", "u", "2", b"y")], keys=[key], audit=[entry])
    )
    store.write(Batch(cursors=[("t", "i", 4)], records=[("c", "t", "1", b"z")], audit=[entry._replace(action="more")]))
    assert (store.cursor("t", "i"), store.cursor("t", "j")) == (5, 0)
    assert (store.record("c", "t", "1"), store.record("c", "t", "9")) == (b"z", None)
    assert store.records("c") == [("t", "1", b"z"), ("u", "2", b"y")]
    assert store.records("c", "u") == [("u", "2", b"y")]
    assert (store.key("k"), store.key("l"), store.keys("t"), store.keys("u")) == (key, None, [key], [])
    newest = store.audit("t", None, 9)
    assert [found.action for _, found in newest] == ["more", "did"]
    assert [found.action for _, found in store.audit("t", newest[0][0], 9)] == ["did"]
    store.write(Batch(records=[("c", "t", "1", None)], removed_keys=["k"], requests=[("t", "r", 1.0, b"a")]))
    assert (store.record("c", "t", "1"), store.key("k"), store.find_request("t", "r")) == (None, None, b"a")
    store.write(Batch(requests=[("t", "r", 2.0, b"b")], message_ids=[(b"m", 3)]))
    assert (store.find_request("t", "r"), store.find_message_ids([b"m", b"n"])) == (b"a", {b"m": 3})


def test_old_pages_go_by_age_and_by_size(store: Store) -> None:
    told: list[int] = []

    def tell(gone: int) -> None:
        # Nothing is gone before it is told.
        assert store.page_with(gone) is not None
        told.append(gone)

    for sequence in range(1, 9):
        ids = [(bytes([sequence]), sequence)]
        store.write(Batch(page=page(sequence, float(sequence)), message_ids=ids, sequence=sequence))
    ended = [row(1, "a", ended=1), row(2, "b", ended=2)]
    store.write(Batch(subscriptions=ended, requests=[("t", "r", 1.0, b"")], facts={"snapshot": "name 1"}))
    assert drop_old(store, 10.0, 7.0, 10**9, tell) == 2
    assert store.removed == 2
    # The snapshot does not know yet that the second has ended.
    assert [one.number for one in store.subscriptions_of([1, 2])] == [2]
    assert store.find_request("t", "r") == b""
    assert set(store.find_message_ids([bytes([at]) for at in range(9)]).values()) == set(range(3, 9))
    each = store.page_sizes()[0][2]
    assert drop_old(store, 10.0 + 86_400, 10**9, 3 * each, tell) == 5
    assert [one.first for one in store.pages_before(99, 9)] == [8, 7, 6]
    assert store.find_request("t", "r") is None
    assert drop_old(store, 10.0, 10**9, 10**9, tell) == 0
    assert (store.removed, told) == (5, [2, 5])


def filled(address: str) -> None:
    store = open_store(address)
    for sequence in range(1, 70):
        store.write(Batch(page=page(sequence, 1.0), message_ids=[(bytes([sequence]), sequence)], sequence=sequence))
    store.write(Batch(subscriptions=[row(1, "a", options=b"o", place=b"p", place_time=1.5)], facts={"snapshot": "x 1"}))
    store.write(Batch(audit=[AuditRow(1.0, "t", "k", "a", "b", "c")], keys=[KeyRow("k", "t", b"d", b"b")]))
    store.write(Batch(cursors=[("t", "i", 5)], records=[("c", "t", "1", b"x")], requests=[("t", "r", 1.0, b"a")]))
    store.close()


def everything(address: str) -> dict[str, object]:
    store = open_store(address)
    try:
        return {
            "pages": [found.stored() for found in store.pages_before(99, 99)],
            "skipped": store.next_page_for(BitMap([2]), 0, 69),
            "subscriptions": store.list_subscriptions("t", None, 0, 9),
            "ids": store.find_message_ids([bytes([at]) for at in range(70)]),
            "small": (store.cursor("t", "i"), store.records("c"), store.keys(), store.find_request("t", "r")),
            "audit": store.audit("t", None, 9),
            "facts": (store.sequence, store.last_number()),
        }
    finally:
        store.close()


def test_a_backup_is_the_store_and_comes_back(address: str, tmp_path: Path) -> None:
    filled(address)
    expected = everything(address)
    backup = tmp_path / "backup.db"
    assert back_up(address, backup) > 70
    assert everything(str(backup)) == expected
    restored = str(tmp_path / "restored.db")
    restore_store(backup, restored)
    assert everything(restored) == expected
    opened = open_store(restored)
    assert opened.fact("snapshot") is None
    opened.close()
    for source, target in ((backup, restored), (tmp_path / "none.db", str(tmp_path / "new.db"))):
        with pytest.raises(StoreError):
            restore_store(source, target)
    with pytest.raises(StoreError, match="exists"):
        back_up(restored, backup)


def test_a_backup_of_a_file_comes_back_in_postgres(tmp_path: Path, postgres: str) -> None:
    filled(str(tmp_path / "store.db"))
    expected, backup = everything(str(tmp_path / "store.db")), tmp_path / "backup.db"
    back_up(str(tmp_path / "store.db"), backup)
    empty(postgres)
    restore_store(backup, postgres)
    assert everything(postgres) == expected
    again = open_store(postgres)
    again.write(Batch(audit=[AuditRow(2.0, "t", "k", "later", "b", "c")]))
    assert [found.action for _, found in again.audit("t", None, 9)] == ["later", "a"]
    again.close()
    with pytest.raises(StoreError, match="not empty"):
        restore_store(backup, postgres)


def test_a_store_of_an_earlier_version_becomes_a_new_one(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "store.db")
    with database.writing() as transaction:
        for statement in MIGRATIONS[0]:
            transaction.run(statement.format(**SQLITE_TYPES))
        values = "1, 't', 'a', 'ann', 'boolean', 1.0, 5, x'7b7d'"
        transaction.run(
            f"INSERT INTO subscriptions (number, tenant, id, subscriber, kind, created, changed, body) VALUES ({values})"
        )
        transaction.run("PRAGMA user_version=1")
    database.close()
    store = open_store(str(tmp_path / "store.db"))
    assert [*store.changed_subscriptions(0, "boolean")] == [row(1, "a", changed=5)]
    store.close()


def test_paused_subscriptions_are_kept_but_not_for_engines(store: Store) -> None:
    hushed = row(1, "a", paused=1)
    store.write(Batch(subscriptions=[hushed, row(2, "b")], sequence=2))
    assert [one.id for one in store.changed_subscriptions(0, "boolean")] == ["b"]
    assert store.gone_numbers(0) == [1]
    assert store.find_subscriptions([("t", "a")]) == {("t", "a"): hushed}


def test_a_store_of_a_later_version_is_refused(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "store.db")
    with database.writing() as transaction:
        transaction.run(f"PRAGMA user_version={len(MIGRATIONS) + 1}")
    database.close()
    with pytest.raises(StoreError, match="upgrade"):
        open_store(str(tmp_path / "store.db"))


def test_what_is_no_store_is_told_from_one(tmp_path: Path) -> None:
    (tmp_path / "junk.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreError, match="damaged"):
        open_store(str(tmp_path / "junk.db"))
    with pytest.raises(StoreError, match="folder"):
        open_store(str(tmp_path / "nowhere" / "store.db"))
    with pytest.raises(StoreError, match="PostgreSQL failed") as told:
        open_store("postgresql://nobody:secret@127.0.0.1:1/none")
    assert "secret" not in str(told.value)


def test_a_store_that_may_only_be_read_says_so(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "store.db")
    store = Store(database)
    store.write(Batch(sequence=3))
    # As SQLite itself answers when the file or its folder may not be written.
    database._writer.execute("PRAGMA query_only=ON")
    with pytest.raises(StoreError, match="cannot be written"):
        store.write(Batch(sequence=4))
    assert store.sequence == 3
    store.close()


def test_only_one_server_holds_a_store(address: str, store: Store) -> None:
    with pytest.raises(StoreError, match="only one server"):
        open_store(address, is_server=True)
    beside = open_store(address)
    assert beside.sequence == 0
    beside.close()


def test_a_new_store_is_for_its_owner_only(tmp_path: Path) -> None:
    opened = open_store(str(tmp_path / "store.db"))
    opened.write(Batch(sequence=1))
    modes = {path.name: path.stat().st_mode & 0o077 for path in tmp_path.iterdir()}
    assert modes == {"store.db": 0, "store.db-wal": 0, "store.db-shm": 0}
    opened.close()
