"""What an earlier version saved: it opens and answers, or it is refused with a sentence that says what to do."""

from __future__ import annotations

import asyncio
import tarfile
from pathlib import Path

import pytest

import nearcast as nc
from nearcast.service.broker import Broker
from nearcast.service.caller import Caller
from nearcast.service.limits import read_limits
from nearcast.storage.store import open_store

# One folder of each kind, a pipeline's index and a service's store, saved in format 11.
SAVED = Path(__file__).parent / "data" / "format_11.tar.xz"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    with tarfile.open(SAVED) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def test_a_saved_matcher_answers(saved: Path) -> None:
    matcher = nc.Matcher.open(saved / "matcher")
    deliveries = matcher.publish(
        [nc.Message(1, text="iPad sale", location=(1, 1)), nc.Message(2, text="old phone", location=(1, 1))]
    )
    assert {(each.message_id, each.subscription_id) for each in deliveries} == {(1, "ann"), (1, "bob"), (1, "eve"), (2, "eve")}


def test_a_saved_moving_matcher_answers(saved: Path) -> None:
    matcher = nc.MovingMatcher.open(saved / "moving")
    assert {subscription: matcher.current(subscription) for subscription in ("ann", "bob", "eve")} == {
        "ann": {1},
        "bob": {1},
        "eve": {1},
    }


def test_a_saved_ranker_answers(saved: Path) -> None:
    ranker = nc.Ranker.open(saved / "ranker")
    assert [message for message, _ in ranker.top("ann")] == [0, 1]


def test_a_store_of_the_service_is_read(saved: Path) -> None:
    caller = Caller("k", "t", frozenset({"subscriber", "publisher"}), "ann")

    async def events() -> list[str]:
        broker = Broker(open_store(str(saved / "service.db")), None, read_limits())
        await broker.start()
        inbox = await broker.open_inbox(caller)
        page = await broker.read_events(inbox, 0, 100)
        broker.close_inbox(inbox)
        await broker.stop()
        return [row.type.rpartition(".")[2] for row in page.rows]

    assert asyncio.run(events()) == ["match"]
