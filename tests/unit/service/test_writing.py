"""The writer refuses more than it may hold, keeps what it said, and says what it kept, whatever happens at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from pyroaring import BitMap

from nearcast.service.broker import Broker
from nearcast.service.caller import Caller
from nearcast.service.commit import writer
from nearcast.service.intake.operations import Move, Operation, PutSubscriptions
from nearcast.service.limits import Limits, read_limits
from nearcast.service.problems import Problem
from nearcast.storage.database import Database, Transaction
from nearcast.storage.errors import StoreError
from nearcast.storage.store import open_store
from nearcast.wire.api import CircleShape, Kind, MessageIn, MoveIn, MoveResult, PointShape, SubscriptionIn

CALLER = Caller("k", "t", frozenset({"subscriber", "publisher"}), "ann")
ADMIN = Caller("a", "t", frozenset({"admin"}), "root")


def started(tmp_path: Path, limits: Limits) -> Broker:
    return Broker(open_store(str(tmp_path / "store.db")), None, limits)


def test_too_much_at_a_time_is_put_off(tmp_path: Path) -> None:
    async def run() -> None:
        broker = started(tmp_path, replace(read_limits(), pending_messages=3))
        await broker.start()
        message = MessageIn(PointShape([1.0, 2.0]), keywords=["oak"])
        answers = await asyncio.gather(*(broker.publish(CALLER, message) for _ in range(10)), return_exceptions=True)
        refused = [answer for answer in answers if isinstance(answer, Problem)]
        # Nothing is taken from the queue before the loop comes round: four fit, and all others are told to come back.
        assert [(problem.status, problem.retry_after) for problem in refused] == [(429, 1)] * 6
        assert (await broker.publish(CALLER, message)).cursor == "5"
        await broker.stop()

    asyncio.run(run())


def test_a_message_may_live_shorter_than_it_waits_for_its_turn(tmp_path: Path) -> None:
    async def run() -> None:
        broker = started(tmp_path, read_limits())
        await broker.start()
        for kind in ("boolean", "moving"):
            await broker.put_subscription(CALLER, SubscriptionIn(id=kind, kind=kind, keywords=["oak"]))
        message = MessageIn(PointShape([1.0, 2.0]), keywords=["oak"], lifetime=1e-6)
        receipts = [await broker.publish(CALLER, message), await broker.publish(CALLER, MessageIn(PointShape([1.0, 2.0])))]
        assert [receipt.is_repeat for receipt in receipts] == [False, False]
        inbox = await broker.open_inbox(CALLER)
        page = await broker.read_events(inbox, 0, 10)
        assert [row.sequence for row in page.rows] == [int(receipts[0].cursor)]
        broker.close_inbox(inbox)
        await broker.stop()

    asyncio.run(run())


def test_a_tenant_has_no_more_subscriptions_than_it_may(tmp_path: Path) -> None:
    async def run() -> None:
        broker = started(tmp_path, replace(read_limits(), subscriptions=2))
        await broker.start()
        for id in ("a", "b", "a"):
            await broker.put_subscription(CALLER, SubscriptionIn(id=id, keywords=["oak"]))
        with pytest.raises(Problem) as told:
            await broker.put_subscription(CALLER, SubscriptionIn(id="c", keywords=["oak"]))
        assert told.value.status == 409
        result = await broker.put_subscriptions(CALLER, b'{"id":"b","keywords":[]}\n{"id":"d","keywords":[]}')
        assert (result.accepted, result.rejected) == (1, 1)
        await broker.delete_subscription(CALLER, "a")
        await broker.put_subscription(CALLER, SubscriptionIn(id="c", keywords=["oak"]))
        await broker.stop()

    asyncio.run(run())


@pytest.mark.parametrize("limit", [{"pending_messages": 4}, {"pending_bytes": 99}])
def test_lines_and_bytes_that_wait_are_counted(tmp_path: Path, limit: dict[str, int]) -> None:
    async def run() -> None:
        broker = started(tmp_path, replace(read_limits(), **limit))
        await broker.start()
        checked = [broker._checked(CALLER, SubscriptionIn(id=f"s{at}", keywords=["oak"])) for at in range(5)]
        moves = [MoveIn("s1", location=PointShape([1.0, 2.0]))] * 5
        for first in (PutSubscriptions(CALLER, checked, n_bytes=100), Move(CALLER, moves, n_bytes=100)):
            # One fits, whatever it holds.
            answers = await asyncio.gather(
                broker._write(first), broker.delete_subscription(CALLER, "s1"), return_exceptions=True
            )
            assert isinstance(answers[0], list)
            assert isinstance(answers[1], Problem)
            assert (answers[1].status, answers[1].retry_after) == (429, 1)
        assert broker._writer.n_pending == 0
        await broker.delete_subscription(CALLER, "s1")
        await broker.stop()

    asyncio.run(run())


def test_bulk_requests_wait_with_the_bytes_they_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        broker = started(tmp_path, read_limits())
        await broker.start()
        seen: list[tuple[int, int]] = []
        submit = broker._writer.submit

        def noted(operation: Operation) -> None:
            seen.append((operation.n_lines, operation.n_bytes))
            submit(operation)

        monkeypatch.setattr(broker._writer, "submit", noted)
        put, place = b'{"id":"s"}\n{"id":"r"}', b'"location":{"type":"Point","coordinates":[1,2]}'
        move, message = b'{"subscription":"s",%s}' % place, b"{%s}\n{%s}\n{%s}" % (place, place, place)
        await broker.put_subscriptions(CALLER, put)
        await broker.move_lines(CALLER, move)
        await broker.publish_lines(CALLER, message)
        assert seen == [(2, len(put)), (1, len(move)), (3, len(message))]
        await broker.stop()

    asyncio.run(run())


def test_a_commit_takes_no_more_bytes_than_it_may(tmp_path: Path) -> None:
    async def run() -> None:
        broker = started(tmp_path, replace(read_limits(), batch_bytes=1))
        await broker.start()
        message = MessageIn(PointShape([1.0, 2.0]), keywords=["oak"])
        await asyncio.gather(*(broker.publish(CALLER, message) for _ in range(6)))
        assert [page.n_messages for page in broker.store.pages_before(99, 99)] == [1] * 6
        await broker.stop()

    asyncio.run(run())


async def inbox_of(broker: Broker, subscriber: str) -> list[str]:
    inbox = await broker.open_inbox(ADMIN, subscriber)
    page = await broker.read_events(inbox, 0, 1000)
    broker.close_inbox(inbox)
    return [row.type.rpartition(".")[2] for row in page.rows]


@pytest.mark.parametrize("kind", ["boolean", "moving"])
def test_a_subscription_given_to_another_subscriber_ends_and_begins(tmp_path: Path, kind: Kind) -> None:
    async def run() -> None:
        broker = started(tmp_path, replace(read_limits(), subscriptions=1))
        await broker.start()
        message, place = MessageIn(PointShape([1.0, 2.0]), keywords=["oak"], lifetime=60), CircleShape([1.0, 2.0], 9.0)
        came = "match" if kind == "boolean" else "entered"

        def owned(by: str) -> SubscriptionIn:
            return SubscriptionIn(kind, "s", by, keywords=["oak"], region=place)

        assert (await broker.put_subscription(ADMIN, owned("ann")))[1]
        await broker.publish(ADMIN, message)
        kept, is_new = await broker.put_subscription(ADMIN, owned("bob"))
        assert (kept.subscriber, is_new) == ("bob", False)
        # A moving one has what lives at once; nobody else's past is its own.
        assert await inbox_of(broker, "bob") == ([] if kind == "boolean" else ["entered"])
        await broker.publish(ADMIN, message)
        assert await inbox_of(broker, "ann") == [came, "ended"]
        assert (await inbox_of(broker, "bob"))[-1] == came
        # There and back in one request: only the last of them lives.
        bodies = [msgspec.json.encode(owned(by)) for by in ("ann", "ann", "eve", "bob", "eve")]
        assert (await broker.put_subscriptions(ADMIN, b"\n".join(bodies))).accepted == 5
        await broker.publish(ADMIN, message)
        assert (await inbox_of(broker, "bob")).count("ended") == 2
        assert (await inbox_of(broker, "eve"))[-1] == came
        assert [one.subscriber for one in (await broker.list_subscriptions(ADMIN)).subscriptions] == ["eve"]
        await broker.stop()

    asyncio.run(run())


def test_one_that_is_made_while_an_inbox_opens_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        broker = started(tmp_path, read_limits())
        await broker.start()
        loop, numbers_of = asyncio.get_running_loop(), broker.store.numbers_of

        def slow(tenant: str, subscriber: str) -> BitMap:
            found = numbers_of(tenant, subscriber)
            made = broker.put_subscription(CALLER, SubscriptionIn(id="new", keywords=["oak"]))
            asyncio.run_coroutine_threadsafe(made, loop).result()
            return found

        await broker.put_subscription(CALLER, SubscriptionIn(id="old", keywords=["oak"]))
        monkeypatch.setattr(broker.store, "numbers_of", slow)
        inbox = await broker.open_inbox(CALLER)
        await broker.publish(CALLER, MessageIn(PointShape([1.0, 2.0]), keywords=["oak"]))
        assert await inbox.feed.wait(0)
        assert [row.subscription for row in (await broker.read_events(inbox, 0, 9)).rows] == ["old", "new"]
        broker.close_inbox(inbox)
        assert broker._inboxes.n_open == 0
        await broker.stop()

    asyncio.run(run())


def test_one_that_is_made_and_moved_at_once_is_where_it_moved(tmp_path: Path) -> None:
    async def run() -> None:
        broker = started(tmp_path, read_limits())
        await broker.start()
        ids = [f"s{at}" for at in range(9)]
        puts = [SubscriptionIn("moving", id, keywords=["oak"], region=CircleShape([50.0, 2.0], 9.0)) for id in ids]
        await broker.publish(CALLER, MessageIn(PointShape([1.0, 2.0]), keywords=["oak"], lifetime=60))
        made = asyncio.gather(*(broker.put_subscription(CALLER, put) for put in puts))
        moves = [MoveIn(id, location=PointShape([1.0, 2.0])) for id in ids]
        _, moved, _ = await asyncio.gather(made, broker.move(CALLER, moves), broker.delete_subscription(CALLER, "s3"))
        assert moved == [MoveResult(id, "moved", 1, 0) for id in ids]
        kept = (await broker.list_subscriptions(CALLER)).subscriptions
        assert [one.id for one in kept] == [id for id in ids if id != "s3"]
        assert [one.region for one in kept] == [CircleShape([1.0, 2.0], 9.0)] * 8
        await broker.stop()

    asyncio.run(run())


def test_readers_know_what_retention_takes_before_it_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_TICK_S", 0.01)

    async def run() -> None:
        broker = started(tmp_path, replace(read_limits(), retention_bytes=0))
        remove, seen = broker.store.remove_before, asyncio.Event()
        known: list[tuple[int, int]] = []

        def noted(sequence: int) -> None:
            known.append((sequence, broker._inboxes.going))
            remove(sequence)
            loop.call_soon_threadsafe(seen.set)

        loop = asyncio.get_running_loop()
        monkeypatch.setattr(broker.store, "remove_before", noted)
        monkeypatch.setattr(writer, "_RETENTION_S", 0.01)
        await broker.start()
        await broker.publish(CALLER, MessageIn(PointShape([1.0, 2.0]), keywords=["oak"]))
        await seen.wait()
        assert known == [(1, 1)]
        await broker.stop()

    asyncio.run(run())


class Losing:
    """A database that fails as told: `refuses` a transaction, or `commits` it and loses the connection before saying so."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.failures: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        failure = self.failures.pop(0) if self.failures else ""
        if failure == "refuses":
            raise StoreError("the connection is lost")
        with self._database.writing() as transaction:
            yield transaction
        if failure == "commits":
            raise StoreError("the connection is lost")


@pytest.mark.parametrize("failures", [["refuses"], ["commits"], ["commits", "refuses"], ["commits", "refuses", "refuses"]])
def test_a_commit_that_nobody_heard_of_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: list[str]) -> None:
    # The failures are for what the test writes.
    monkeypatch.setattr(writer, "_TICK_S", 1000.0)

    async def run() -> None:
        broker = started(tmp_path, replace(read_limits(), recent_bytes=0))
        database = Losing(broker.store.database)
        broker.store.database = cast(Database, database)
        await broker.start()
        await broker.put_subscription(CALLER, SubscriptionIn("moving", "s", keywords=["oak"]))
        message = MessageIn(PointShape([1.0, 2.0]), keywords=["oak"], lifetime=60)
        # As many that the lost one fills a group of pages.
        for _ in range(63):
            await broker.publish(CALLER, message)
        inbox = await broker.open_inbox(CALLER)
        database.failures = [*failures]
        while database.failures:
            with pytest.raises(Problem) as told:
                await broker.publish(CALLER, message, "key")
            assert told.value.status == 503
        receipt = await broker.publish(CALLER, message, "key")
        assert receipt.is_repeat == (failures[0] == "commits")
        assert receipt.cursor == "65"
        await broker.publish(CALLER, message)
        page = await broker.read_events(inbox, 0, 1000)
        assert [row.sequence for row in page.rows] == [*range(2, 67)]
        assert len((await broker.current(CALLER, "s")).messages) == 65
        groups = broker.store.database.rows("SELECT first, last FROM page_groups")
        assert groups == [(2, 65)]
        await broker.stop()

    asyncio.run(run())
