"""The Python client against a real server: every call, both ways; errors in the words of the server."""

from __future__ import annotations

import asyncio
import copy
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import nearcast as nc
from nearcast.client import ApiError, AsyncClient, Client, ServerUnreachable, verify_webhook
from nearcast.client.cursor import Resume, refusal
from nearcast.client.shapes import place_shape, region_shape
from nearcast.errors import NearcastError
from nearcast.wire.api import (
    BoxShape,
    CircleShape,
    DeliveryOptions,
    MessageIn,
    MoveIn,
    MultiPolygonShape,
    PointShape,
    PolygonShape,
    SubscriptionIn,
)
from support.http_server import SmallServer

pytestmark = pytest.mark.xdist_group("service")

HERE = (13.4, 52.5)
SQUARE = {"type": "Polygon", "coordinates": [[[13, 52], [14, 52], [14, 53], [13, 53], [13, 52]]]}


@pytest.fixture(scope="module")
def server(shared_server: SmallServer) -> SmallServer:
    mine = copy.copy(shared_server)
    mine.key = shared_server.make_key("cleo", "admin", "publisher", "subscriber", tenant="client")
    return mine


@pytest.fixture
def client(server: SmallServer) -> Iterator[Client]:
    with Client(server.url, server.key) as connected:
        yield connected


def test_subscriptions_are_made_replaced_listed_and_ended(client: Client) -> None:
    made = client.subscribe(["coffee"], nc.Circle(*HERE, 500), id="coffee", metadata={"floor": 3}, tags=["open"])
    assert (made.region, made.metadata, made.tags) == (CircleShape([*HERE], 500.0), {"floor": 3}, ["open"])
    assert client.subscribe(interest="coffee OR tea", region=SQUARE, id="coffee").interest == "coffee OR tea"
    assert isinstance(client.subscription("coffee").region, PolygonShape)
    nameless = client.subscribe(["tea"])
    many = client.subscribe_many([SubscriptionIn(id=f"many-{number}", keywords=["x"]) for number in range(3)])
    assert (many.accepted, many.rejected) == (3, 0)
    listed = [one.id for one in client.subscriptions()]
    assert {"coffee", nameless.id, "many-0", "many-2"} <= set(listed)
    client.unsubscribe("coffee")
    with pytest.raises(ApiError, match="no subscription 'coffee'") as caught:
        client.subscription("coffee")
    assert (caught.value.status, caught.value.code) == (404, "not_found")


def test_messages_reach_the_inbox_with_what_people_ask_for(client: Client) -> None:
    client.subscribe(["cake"], nc.Circle(*HERE, 2000), id="cake", metadata={"a": 1})
    start = client.stats().cursor
    receipt = client.publish(HERE, text="Fresh cake", payload={"price": 3}, lifetime=60, id="cake-1")
    assert not receipt.is_repeat
    assert client.publish(HERE, ["cake"], id="cake-1").is_repeat
    bulk = client.publish_many([MessageIn(PointShape([*HERE]), keywords=["cake"]), MessageIn(PointShape([500, 1]), text="x")])
    assert (bulk.accepted, bulk.rejected) == (1, 1)
    assert bulk.results[-1].error is not None
    assert "outside lonlat" in bulk.results[-1].error.message
    page = client.inbox(start, subscriptions=["cake"])
    assert len(page.events) == 2
    data = page.events[0].data
    assert (data.distance, data.keywords, data.metadata) == (0.0, ["cake"], {"a": 1})
    assert data.message is not None
    assert data.message.payload == {"price": 3}
    assert client.acknowledge(page.cursor) == page.cursor


def test_the_same_idempotency_key_publishes_once(client: Client) -> None:
    client.subscribe(["plum"], id="plum")
    start = client.stats().cursor
    first = client.publish(HERE, ["plum"], idempotency_key="same")
    assert client.publish(HERE, ["plum"], idempotency_key="same").id == first.id
    assert len(client.inbox(start, subscriptions=["plum"]).events) == 1


def test_moving_and_ranked_subscriptions(client: Client) -> None:
    client.publish(HERE, ["bakery"], id="bakery-1", lifetime=600)
    client.subscribe(["bakery"], nc.Circle(0, 0, 500), id="walker", kind="moving")
    assert client.current("walker").messages == []
    moved = client.move("walker", HERE, accuracy_m=0.0)
    assert (moved.status, moved.entered) == ("moved", 1)
    assert [message.id for message in client.current("walker").messages] == ["bakery-1"]
    assert client.move("walker", (0, 0), time=datetime.now(UTC) - timedelta(hours=1)).status == "late"
    many = client.move_many([MoveIn("walker", location=PointShape([0, 0])), MoveIn("nobody", location=PointShape([0, 0]))])
    assert (many.accepted, many.rejected) == (1, 1)
    client.subscribe(["bakery"], id="best", kind="ranked", location=HERE, k=2)
    (entry,) = client.top("best").entries
    assert (entry.rank, entry.message.id) == (1, "bakery-1")


def test_explaining_and_trying(client: Client) -> None:
    client.subscribe(["pear"], nc.Box(13, 52, 14, 53), id="pear")
    told = client.explain("pear", MessageIn(PointShape([0, 0]), keywords=["pear"]))
    assert not told.matched
    assert told.reasons
    kept = client.publish(HERE, ["pear"])
    assert client.explain("pear", message_id=kept.id).matched
    tried = client.dry_run(SubscriptionIn(keywords=["pear"]), 100)
    assert tried.hits >= 1
    assert client.stats().subscriptions >= 1


def test_keys_are_made_and_removed(server: SmallServer, client: Client) -> None:
    made = client.make_key("guest", ["subscriber"])
    assert made.id in [key.id for key in client.keys()]  # noqa: SIM118  # no dict
    with Client(server.url, made.secret) as guest:
        with pytest.raises(ApiError, match="role publisher") as caught:
            guest.publish(HERE, ["x"])
        assert caught.value.status == 403
        client.delete_key(made.id)
        with pytest.raises(ApiError, match="not known"):
            guest.stats()


@contextmanager
def receiver() -> Iterator[tuple[str, list[Any]]]:
    got: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((dict(self.headers), self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *given: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/", got
    finally:
        server.shutdown()
        server.server_close()


def test_webhooks_are_made_used_and_looked_after(client: Client) -> None:
    with receiver() as (url, got):
        made = client.make_webhook(url)
        assert made.secret is not None
        client.subscribe(["lime"], id="lime", delivery=DeliveryOptions(webhook=made.id))
        client.publish(HERE, ["lime"])
        deadline = time.monotonic() + 20
        while not client.webhook_attempts(made.id) and time.monotonic() < deadline:
            time.sleep(0.02)
        headers, body = got[0]
        verify_webhook(made.secret, headers, body, time.time())
        assert [event["subject"] for event in json.loads(body)] == ["lime"]
        assert client.webhook_attempts(made.id)[0].is_success
        assert client.test_webhook(made.id).is_success
        assert client.rotate_secret(made.id).secret not in (None, made.secret)
        assert client.dead_letters(made.id) == []
        with pytest.raises(ApiError, match="no dead letter"):
            client.retry_dead_letter(made.id, "none")
        assert not client.replace_webhook(made.id, url, is_enabled=False).is_enabled
        assert client.webhook(made.id).secret is None
        assert [one.id for one in client.webhooks()] == [made.id]
        client.delete_webhook(made.id)
        assert client.webhooks() == []
    with pytest.raises(ApiError, match="no webhook 'gone' of 'cleo'"):
        client.subscribe(["lime"], delivery=DeliveryOptions(webhook="gone"))
    with pytest.raises(ApiError, match="not a public address"):
        client.make_webhook("https://10.0.0.1/")


def test_the_same_without_blocking(server: SmallServer) -> None:
    async def run() -> None:
        async with AsyncClient(server.url, server.key) as client:
            await client.subscribe(["kiwi"], id="kiwi")
            start = (await client.stats()).cursor
            await asyncio.gather(*(client.publish(HERE, ["kiwi"], id=f"kiwi-{number}") for number in range(5)))
            found = []
            async for event in client.listen(start, ["kiwi"]):
                found.append(event.data.message.id if event.data.message else "")
                if len(found) == 5:
                    break
            assert sorted(found) == [f"kiwi-{number}" for number in range(5)]
            assert "kiwi" in [one.id async for one in client.subscriptions()]
            assert len((await client.inbox(start, subscriptions=["kiwi"])).events) == 5
            with pytest.raises(ApiError, match="nothing on its right"):
                await client.subscribe(interest="a AND (", id="broken")

    asyncio.run(run())


def test_every_method_of_one_client_is_in_the_other() -> None:
    def names(of: type) -> set[str]:
        return {name for name in vars(of) if not name.startswith("_")}

    assert names(Client) == names(AsyncClient)


def test_nobody_there_is_said_in_words() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}", retries=0) as client, pytest.raises(ServerUnreachable, match="nearcast serve"):
        client.stats()
    with pytest.raises(NearcastError, match="expected http://"):
        Client("localhost:80")


def test_another_server_is_not_mistaken_for_ours(server: SmallServer) -> None:
    with Client(f"{server.url}/elsewhere", server.key) as client, pytest.raises(ApiError) as caught:
        client.stats()
    assert caught.value.status == 404


def test_regions_of_every_kind_are_understood() -> None:
    assert region_shape(None) is None
    assert region_shape(nc.Box(0, 0, 1, 2)) == BoxShape([0, 0, 1, 2])
    assert region_shape({"type": "Circle", "coordinates": [1, 2], "radius": 3}) == CircleShape([1, 2], 3)
    assert isinstance(region_shape("POLYGON ((0 0, 1 0, 1 1, 0 0))"), PolygonShape)
    assert isinstance(region_shape(nc.MultiPolygon([SQUARE["coordinates"]])), MultiPolygonShape)  # type: ignore[list-item]
    assert place_shape(nc.Box(0, 0, 1, 2)) == BoxShape([0, 0, 1, 2])
    with pytest.raises(NearcastError, match="not a place"):
        place_shape((1, 2, 3))


def frame(cursor: int, *ids: str) -> bytes:
    events = [
        {"id": id, "source": "s", "type": "io.nearcast.match", "subject": "a", "time": "2026-01-01T00:00:00Z",
         "sequence": "1", "data": {"subscription": "a"}}
        for id in ids
    ]  # fmt: skip
    return json.dumps({"cursor": str(cursor), "events": events}).encode()


def test_pieces_of_a_frame_that_come_again_are_not_given_again() -> None:
    resume = Resume()
    resume.settle(resume.fresh_events(frame(7))[1])
    events, cursor = resume.fresh_events(frame(7, "a", "b"))
    assert ([event.id for event in events], cursor) == (["a", "b"], "7")
    resume.settle(cursor)
    # The connection breaks here; the server sends the whole again.
    events, cursor = resume.fresh_events(frame(9, "a", "b", "c"))
    assert [event.id for event in events] == ["c"]
    resume.settle(cursor)
    assert (resume.cursor, resume.given) == ("9", set())


def test_only_final_refusals_end_a_stream() -> None:
    assert refusal(4404, "gone") is not None
    assert [refusal(code, "") for code in (None, 1006, 1012, 4429, 4503)] == [None] * 5


def test_waiting_to_come_back_grows_and_has_an_end() -> None:
    resume = Resume()
    waits = [resume.wait_s() for _ in range(12)]
    assert waits[0] < 0.3
    assert max(waits) <= 10
    assert min(waits[-3:]) >= 5
