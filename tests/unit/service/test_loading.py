"""Engines go on after a restart with what was told before, also past messages that nobody can read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import cast

from nearcast.service.broker import Broker
from nearcast.service.caller import Caller
from nearcast.service.commit.recovery import start_ranking
from nearcast.service.engines.engines import Engines
from nearcast.service.intake.messages import Posted
from nearcast.service.limits import read_limits
from nearcast.storage.store import open_store
from nearcast.wire.api import CircleShape, DryRunIn, MessageIn, MoveIn, PointShape, SubscriptionIn

CALLER = Caller("k", "t", frozenset({"subscriber", "publisher"}), "ann")
HERE, FAR = CircleShape([1.0, 2.0], 100.0), CircleShape([30.0, 2.0], 100.0)
Work = Callable[[Broker], Awaitable[None]]


def served(tmp_path: Path, *lives: Work) -> None:
    """One server after the other on the same store."""

    async def run() -> None:
        for work in lives:
            broker = Broker(open_store(str(tmp_path / "store.db")), None, read_limits())
            await broker.start()
            await work(broker)
            await broker.stop()

    asyncio.run(run())


async def kinds(broker: Broker, after: int = 0) -> list[str]:
    inbox = await broker.open_inbox(CALLER)
    page = await broker.read_events(inbox, after, 100)
    broker.close_inbox(inbox)
    return [row.type.rpartition(".")[2] for row in page.rows]


def test_a_message_that_expires_while_the_server_is_down_leaves_when_it_is_up(tmp_path: Path) -> None:
    async def first(broker: Broker) -> None:
        await broker.put_subscription(CALLER, SubscriptionIn("moving", "s", keywords=["oak"], region=HERE))
        await broker.publish(CALLER, MessageIn(PointShape([1.0, 2.0]), keywords=["oak"], lifetime=0.5))
        assert await kinds(broker) == ["entered"]

    async def second(broker: Broker) -> None:
        await broker.audit(CALLER, "waits", "for the first tick")
        assert await kinds(broker) == ["entered", "left"]

    async def down(_: Broker) -> None:
        return

    served(tmp_path, first)
    time.sleep(0.6)
    served(tmp_path, second, down, second)


def test_who_came_after_a_message_had_expired_is_not_told_that_it_leaves(tmp_path: Path) -> None:
    async def first(broker: Broker) -> None:
        await broker.put_subscription(CALLER, SubscriptionIn("moving", "s", keywords=["oak"], region=FAR))
        await broker.publish(CALLER, MessageIn(PointShape([1.0, 2.0]), keywords=["oak"], lifetime=0.05))
        await asyncio.sleep(0.1)
        await broker.move(CALLER, [MoveIn("s", region=HERE)])

    async def second(broker: Broker) -> None:
        await broker.audit(CALLER, "waits", "for the first tick")
        assert await kinds(broker) == []

    served(tmp_path, first, second)


def test_a_kept_message_that_cannot_be_read_stops_neither_loading_nor_reading(tmp_path: Path) -> None:
    async def first(broker: Broker) -> None:
        await broker.put_subscription(CALLER, SubscriptionIn("moving", "s", keywords=["oak"], region=HERE))
        body = b'{"keywords":["oak"],"location":{"type":"Point","coordinates":[1,2]},"payload":%s}'
        message = MessageIn(PointShape([1.0, 2.0]), keywords=["oak"])
        # As an earlier version kept it.
        await broker.publish(CALLER, message, body=body % (b"[" * 5000 + b"]" * 5000))
        await broker.publish(CALLER, message, body=body % b"1")

    async def second(broker: Broker) -> None:
        assert await kinds(broker) == ["entered", "entered"]
        assert [one.payload for one in (await broker.current(CALLER, "s")).messages] == [1]
        tried = await broker.dry_run(CALLER, DryRunIn(SubscriptionIn(keywords=["oak"])))
        assert (tried.tried, tried.hits) == (1, 1)
        filled = Filled()
        start_ranking(broker.store, cast(Engines, filled), "t", read_limits())
        assert filled.sequences == [3]

    served(tmp_path, first, second)


class Filled:
    """Takes what a ranker would be filled with; a ranker itself takes long to compile."""

    sequences: Sequence[int] = ()

    def start_ranking(self, tenant: str, posted: Sequence[Posted], sequences: Sequence[int]) -> None:
        assert len(posted) == len(sequences)
        self.sequences = sequences
