"""The writer refuses more than it may hold, and a tenant gets no more subscriptions than it may have."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from nearcast.service.broker import Broker
from nearcast.service.callers import Caller
from nearcast.service.limits import Limits, read_limits
from nearcast.service.problems import Problem
from nearcast.service.wire import MessageIn, PointShape, SubscriptionIn
from nearcast.storage.store import open_store

CALLER = Caller("k", "t", frozenset({"subscriber", "publisher"}), "ann")


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
