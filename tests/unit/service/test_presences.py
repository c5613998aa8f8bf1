"""Moving subscriptions with margins, accuracy and dwell times, through a real broker and over restarts."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from nearcast.model.regions import Box, Circle, Polygon, Region
from nearcast.model.spaces import EARTH_RADIUS_M, Space
from nearcast.service.broker import Broker
from nearcast.service.caller import Caller
from nearcast.service.engines.border_distance import depth_of
from nearcast.service.limits import read_limits
from nearcast.storage.store import open_store
from nearcast.wire.api import CircleShape, DeliveryOptions, MessageIn, MoveIn, MoveResult, PointShape, SubscriptionIn

ANN = Caller("key", "tenant", frozenset({"publisher", "subscriber"}), "ann")


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Broker]:
    broker = Broker(open_store(str(folder / "store.db")), None, read_limits())
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


async def begin(broker: Broker, delivery: DeliveryOptions) -> None:
    """A kiosk at (0, 0), and a walker around it who looks 500 m far."""
    await broker.publish(ANN, MessageIn(PointShape([0.0, 0.0]), keywords=["kiosk"], id="kiosk"))
    given = SubscriptionIn(
        kind="moving", id="walker", keywords=["kiosk"], region=CircleShape([0.0, 0.0], 500.0), delivery=delivery
    )
    await broker.put_subscription(ANN, given)


async def walk(broker: Broker, metres: float, accuracy_m: float = 0.0) -> tuple[int, int]:
    """To a place so far east of the kiosk; (entered, left)."""
    x = math.degrees(metres / EARTH_RADIUS_M)
    (moved,) = await broker.move(ANN, [MoveIn("walker", location=PointShape([x, 0.0]), accuracy_m=accuracy_m)])
    assert isinstance(moved, MoveResult)
    return moved.entered, moved.left


async def told(broker: Broker) -> list[str]:
    inbox = await broker.open_inbox(ANN)
    page = await broker.read_events(inbox, 0, 100)
    broker.close_inbox(inbox)
    return [row.type.removeprefix("io.nearcast.") for row in page.rows]


def test_leaving_needs_the_margin(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as broker:
            await begin(broker, DeliveryOptions(exit_margin_m=100.0))
            steps = [await walk(broker, metres) for metres in (510, 490, 599, 601, 550, 499)]
            assert steps == [(0, 0), (0, 0), (0, 0), (0, 1), (0, 0), (1, 0)]
            assert await told(broker) == ["entered", "left", "entered"]

    asyncio.run(run())


def test_without_a_policy_the_border_decides(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as broker:
            await begin(broker, DeliveryOptions())
            assert [await walk(broker, metres) for metres in (510, 490, 599)] == [(0, 1), (1, 0), (0, 1)]

    asyncio.run(run())


def test_a_vague_position_proves_nothing_also_after_a_restart(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as broker:
            await begin(broker, DeliveryOptions())
            assert await walk(broker, 540, accuracy_m=50) == (0, 0)
        async with serving(tmp_path) as broker:
            assert await walk(broker, 700, accuracy_m=50) == (0, 1)
            assert await walk(broker, 480, accuracy_m=50) == (0, 0)
        async with serving(tmp_path) as broker:
            assert await walk(broker, 480, accuracy_m=5) == (1, 0)
            assert await told(broker) == ["entered", "left", "entered"]

    asyncio.run(run())


def test_a_stay_is_told_once_it_is_long_enough_also_over_a_restart(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as broker:
            await begin(broker, DeliveryOptions(dwell_seconds=0.2))
        async with serving(tmp_path) as broker, asyncio.timeout(20):
            while len(await told(broker)) < 2:
                await asyncio.sleep(0.02)
            await walk(broker, 10)
            assert await told(broker) == ["entered", "dwelled"]

    asyncio.run(run())


def test_what_is_there_at_the_beginning_need_not_be_told_and_a_short_way_out_leaves_no_trace(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as broker:
            await begin(broker, DeliveryOptions(exit_seconds=3600.0, tells_first_seen=False))
            assert [await walk(broker, metres) for metres in (900, 100)] == [(0, 0), (0, 0)]
            assert await told(broker) == []

    asyncio.run(run())


def test_leaving_is_told_after_a_while_without_another_position(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as broker, asyncio.timeout(20):
            await begin(broker, DeliveryOptions(exit_seconds=0.05))
            assert await walk(broker, 900) == (0, 0)
            while await told(broker) != ["entered", "left"]:
                await asyncio.sleep(0.02)

    asyncio.run(run())


def test_messages_that_come_and_a_subscription_that_ends(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as broker:
            await begin(broker, DeliveryOptions(exit_margin_m=10.0))
            await broker.publish(ANN, MessageIn(PointShape([0.001, 0.0]), keywords=["kiosk"], id="second"))
            await broker.delete_subscription(ANN, "walker")
            assert await told(broker) == ["entered", "entered", "subscription.ended"]
            assert await broker.read_records("presence") == []

    asyncio.run(run())


@pytest.mark.parametrize(
    "region", [Box(10, 50, 10.02, 50.01), Circle(10, 50, 900), Polygon([[(10, 50), (10.02, 50), (10.01, 50.02)]])], ids=repr
)
def test_the_sign_of_a_depth_is_that_of_the_region(region: Region) -> None:
    chance = random.Random(4)
    for _ in range(500):
        x, y = chance.uniform(9.98, 10.04), chance.uniform(49.98, 50.04)
        place = Box(x, y, x + chance.choice([0, 0.005]), y)
        assert (depth_of(region, place) >= 0) == region.meets(place, Space.LONLAT)


def test_a_depth_is_in_metres() -> None:
    box = Box(10, 50, 10.02, 50.01)
    polygon = Polygon([[(10, 50), (10.02, 50), (10.02, 50.01), (10, 50.01)]])
    for x, y in ((10.001, 50.005), (10.01, 50.001), (10.03, 50.005), (9.99, 49.99)):
        nearest = depth_of(box, Box(x, y, x, y))
        assert depth_of(polygon, Box(x, y, x, y)) == pytest.approx(nearest, rel=1e-6)
        if nearest < 0:
            metres = Space.LONLAT.distance_to_box(x, y, *box.bounds)
            assert -nearest == pytest.approx(metres, rel=0.01)
    assert depth_of(None, Box(0, 0, 0, 0)) == math.inf
