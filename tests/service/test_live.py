"""Live streams of a real server, over real sockets: nothing lost, nothing twice, nobody slowed by another."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import msgspec
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from nearcast.client import ApiError, AsyncClient, Client
from nearcast.load.listeners import Tally, open_listeners
from nearcast.load.requests import Target
from nearcast.service.broker import Broker
from nearcast.service.caller import Caller
from nearcast.service.limits import read_limits
from nearcast.service.push.live_request import LiveRequest, LiveStreams
from nearcast.service.push.stream_reader import Frame, Pace
from nearcast.storage.store import open_store
from nearcast.testing.budget import Budget
from nearcast.wire.api import DeliveryOptions, Event, MessageIn, PointShape, RateLimit, SubscriptionIn
from support.http_server import SmallServer, small_server

pytestmark = pytest.mark.xdist_group("service")

HERE = PointShape([1.0, 2.0])


@pytest.fixture(scope="module")
def server(shared_server: SmallServer) -> SmallServer:
    """In a tenant of its own."""
    mine = copy.copy(shared_server)
    mine.key = shared_server.make_key("ann", "admin", "publisher", "subscriber", tenant="live")
    return mine


@pytest.fixture
def client(server: SmallServer) -> Iterator[Client]:
    with Client(server.url, server.key) as connected:
        yield connected


def messages(word: str, n: int, first: int = 0) -> list[MessageIn]:
    return [MessageIn(HERE, keywords=[word], text=f"{word} {first + number}") for number in range(n)]


def texts(events: list[Event]) -> list[str | None]:
    return [event.data.message.text if event.data.message else None for event in events]


def take(client: Client, n: int, **options: object) -> list[Event]:
    listening = client.listen(**options)  # type: ignore[arg-type]
    return [next(listening) for _ in range(n)]


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert is_so()


def live_socket(server: SmallServer, query: str = "", key: str | None = None) -> ClientConnection:
    headers = {"authorization": f"Bearer {key or server.key}"}
    return connect(f"ws{server.url.removeprefix('http')}/v1/live{query}", additional_headers=headers, compression=None)


def test_events_of_several_subscriptions_come_in_order_on_one_connection(server: SmallServer, client: Client) -> None:
    for word in ("oak", "elm"):
        client.subscribe([word], id=word)
    start = client.stats().cursor
    client.publish_many([message for pair in zip(messages("oak", 20), messages("elm", 20), strict=True) for message in pair])
    events = take(client, 40, after=start, subscriptions=["oak", "elm"])
    assert texts(events) == [f"{word} {number}" for number in range(20) for word in ("oak", "elm")]
    assert [int(event.sequence) for event in events] == sorted(int(event.sequence) for event in events)
    assert texts(take(client, 20, after=start, subscriptions=["elm"])) == [f"elm {number}" for number in range(20)]


def test_a_stream_begins_now_and_says_where_that_is(server: SmallServer, client: Client) -> None:
    client.subscribe(["ash"], id="ash")
    client.publish_many(messages("ash", 3))
    with live_socket(server, "?subscriptions=ash") as stream:
        hello = json.loads(stream.recv())
        assert (hello["events"], hello["cursor"]) == ([], client.stats().cursor)
        client.publish_many(messages("ash", 1, first=3))
        assert [event["data"]["message"]["text"] for event in json.loads(stream.recv())["events"]] == ["ash 3"]


def test_many_events_share_a_frame(server: SmallServer, client: Client) -> None:
    client.subscribe(["fir"], id="fir")
    with live_socket(server, "?subscriptions=fir") as stream:
        stream.recv()
        client.publish_many(messages("fir", 400))
        n_events = n_frames = 0
        while n_events < 400:
            n_events += len(json.loads(stream.recv())["events"])
            n_frames += 1
    assert n_frames <= 40


def test_what_is_pushed_is_counted(server: SmallServer, client: Client) -> None:
    client.subscribe(["oil"], id="oil")
    before = server.figure("nearcast_live_events_total")
    with live_socket(server, "?subscriptions=oil") as stream:
        stream.recv()
        assert server.figure("nearcast_live_connections") >= 1
        client.publish_many(messages("oil", 7))
        n_events = 0
        while n_events < 7:
            n_events += len(json.loads(stream.recv())["events"])
        wait_until(lambda: server.figure("nearcast_live_events_total") >= before + 7)


def test_subscriptions_made_later_are_heard_too(server: SmallServer) -> None:
    key = server.make_key("late", "subscriber", "publisher", tenant="live")
    with Client(server.url, key) as client, live_socket(server, key=key) as stream:
        stream.recv()
        client.subscribe(["yew"], id="yew")
        client.publish_many(messages("yew", 1))
        assert json.loads(stream.recv())["events"][0]["subject"] == "yew"


def test_a_listener_loses_nothing_and_gets_nothing_twice_while_the_server_is_killed(tmp_path: Path, budget: Budget) -> None:
    with small_server(tmp_path) as server, Client(server.url, server.key, retries=10) as client:
        client.subscribe(["pine"], id="pine")
        got: list[Event] = []
        n_rounds, n_each = (20, 100) if budget.is_soak else (2, 40)
        is_listening = threading.Event()

        def hear() -> None:
            with Client(server.url, server.key) as other:
                for event in other.listen(after="0"):
                    got.append(event)
                    is_listening.set()
                    if len(got) == n_rounds * n_each:
                        return

        hearing = threading.Thread(target=hear)
        hearing.start()
        for number in range(n_rounds):
            for first in range(number * n_each, (number + 1) * n_each, 10):
                client.publish_many(messages("pine", 10, first))
            if number < n_rounds - 1:
                is_listening.wait(30)
                server.kill()
                server.start()
        hearing.join(60)
        assert texts(got) == [f"pine {number}" for number in range(n_rounds * n_each)]
        assert len({event.id for event in got}) == len(got)
        # A server that is told to stop ends its streams, and does not wait for them.
        headers = {"authorization": f"Bearer {server.key}"}
        with httpx.stream("GET", f"{server.url}/v1/live/events", headers=headers, timeout=20) as answer:
            lines = answer.iter_lines()
            assert next(lines).startswith("retry")
            stopping = threading.Thread(target=server.stop)
            stopping.start()
            assert "data" not in "".join(lines)
            stopping.join()


def test_acknowledged_events_are_not_read_again(server: SmallServer) -> None:
    key = server.make_key("acker", "subscriber", "publisher", tenant="live")
    with Client(server.url, key) as client:
        client.subscribe(["ivy"], id="ivy")
        client.publish_many(messages("ivy", 5))
        assert texts(take(client, 5, after="ack")) == [f"ivy {number}" for number in range(5)]
        listening = client.listen(after="ack", acknowledges=True)
        last = [next(listening) for _ in range(5)][-1]
        client.publish_many(messages("ivy", 1, first=5))
        # The frame is acknowledged when the next event is asked for.
        assert texts([next(listening)]) == ["ivy 5"]
        wait_until(lambda: texts(client.inbox().events) == ["ivy 5"])
        assert int(client.acknowledge("0")) >= int(last.sequence)


def test_a_client_that_takes_nothing_slows_nobody_and_finds_everything_later(server: SmallServer, client: Client) -> None:
    client.subscribe(["bay"], id="bay")
    payload = "x" * 2000
    many = [MessageIn(HERE, keywords=["bay"], text=f"bay {number}", payload=payload) for number in range(2000)]
    start = client.stats().cursor
    parts = urlsplit(server.url)
    assert parts.hostname is not None
    with socket.create_connection((parts.hostname, server.port)) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        slow.sendall(
            f"GET /v1/live?subscriptions=bay&after={start} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {server.key}\r\n"
            "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n"
            "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
        )
        for first in range(0, 2000, 50):
            client.publish_many(many[first : first + 50])
        quick = take(client, 2000, after=start, subscriptions=["bay"])
        assert texts(quick) == [f"bay {number}" for number in range(2000)]
        slow.settimeout(20)
        pieces = [b"", b""]
        while b'"bay 1999"' not in b"".join(pieces[-2:]):
            pieces.append(slow.recv(1 << 20))
            assert pieces[-1]
    got = b"".join(pieces)
    found = [int(part.split(b'"')[0]) for part in got.split(b'"text":"bay ')[1:]]
    assert found == list(range(2000))


def test_who_leaves_is_noticed(server: SmallServer, client: Client) -> None:
    client.subscribe(["box"], id="box")
    before = server.figure("nearcast_open_inboxes")
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(live_socket(server, "?subscriptions=box")) for _ in range(5)]
        for stream in streams:
            stream.recv()
        assert server.figure("nearcast_open_inboxes") == before + 5
        for stream in streams[:3]:
            stream.close()
        for stream in streams[3:]:
            # Without a word, as a client does that crashes.
            stream.socket.shutdown(socket.SHUT_RDWR)
        wait_until(lambda: server.figure("nearcast_open_inboxes") == before)


def test_a_cursor_that_is_too_old_is_told_as_a_gap(tmp_path: Path) -> None:
    caller = Caller("key", "tenant", frozenset({"subscriber"}), "ann")
    path = str(tmp_path / "store.db")

    async def fill() -> int:
        broker = Broker(open_store(path), None, read_limits())
        await broker.start()
        await broker.put_subscription(caller, SubscriptionIn(id="sap", keywords=["sap"]))
        receipts = [await broker.publish(caller, message) for message in messages("sap", 4)]
        await broker.stop()
        return int(receipts[1].cursor)

    async def read() -> list[Event]:
        broker = Broker(open_store(path), None, read_limits())
        await broker.start()
        streams = LiveStreams(broker, Pace(), 10)
        async with streams.open(caller, LiveRequest("0")) as (reader, _), contextlib.aclosing(reader.frames()) as frames:
            found = [frame async for frame in take_frames(frames, 2)]
        await broker.stop()
        return [msgspec.json.decode(event, type=Event) for frame in found for event in frame.events]

    removed = asyncio.run(fill())
    store = open_store(path)
    store.remove_before(removed)
    store.close()
    gap, *rest = asyncio.run(read())
    assert (gap.type, gap.sequence) == ("io.nearcast.gap", str(removed))
    assert texts(rest) == ["sap 2", "sap 3"]


async def take_frames(frames: AsyncIterator[Frame], n: int) -> AsyncIterator[Frame]:
    for _ in range(n):
        yield await anext(frames)


def test_a_browser_hands_its_key_over_as_a_subprotocol(server: SmallServer, client: Client) -> None:
    client.subscribe(["nut"], id="nut")
    url = f"ws{server.url.removeprefix('http')}/v1/live?subscriptions=nut"
    with connect(url, subprotocols=["nearcast", server.key], compression=None) as stream:  # type: ignore[list-item]
        assert stream.subprotocol == "nearcast"
        assert json.loads(stream.recv())["events"] == []


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ("?subscriptions=nobody", 404, "nobody"),
        ("?after=soon", 422, "soon"),
        ("?subscriptions=,", 422, "0 ids"),
    ],
)
def test_what_cannot_be_streamed_is_refused_in_words(server: SmallServer, query: str, status: int, said: str) -> None:
    with live_socket(server, query) as stream, pytest.raises(ConnectionClosed) as caught:
        stream.recv()
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 4000 + status
    assert said in caught.value.rcvd.reason


def test_a_wrong_key_is_told_by_the_server_and_not_tried_again(server: SmallServer) -> None:
    with Client(server.url, "nc_000000000000_wrong") as client, pytest.raises(ApiError, match="not known") as caught:
        next(client.listen())
    assert caught.value.status == 401


def test_something_else_than_an_acknowledgement_ends_the_stream(server: SmallServer) -> None:
    with live_socket(server) as stream:
        stream.recv()
        stream.send("hello")
        with pytest.raises(ConnectionClosed) as caught:
            stream.recv()
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 4422


def sse_events(answer: httpx.Response, n: int) -> tuple[list[dict[str, object]], str]:
    """Reads server-sent events until there are n; their data, and the id a browser would come back with."""
    events, last_id, data = [], "", ""
    for line in answer.iter_lines():
        if line.startswith("data: "):
            data = line[6:]
        elif line.startswith("id: "):
            last_id = line[4:]
        elif not line and data:
            events.append(json.loads(data))
            data = ""
            if len(events) == n:
                break
    return events, last_id


def test_server_sent_events_resume_by_their_last_id(server: SmallServer, client: Client) -> None:
    client.subscribe(["fig"], id="fig")
    start = client.stats().cursor
    client.publish_many(messages("fig", 3))
    headers = {"authorization": f"Bearer {server.key}"}
    query = {"subscriptions": "fig", "after": start}
    with httpx.stream("GET", f"{server.url}/v1/live/events", params=query, headers=headers, timeout=20) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events, last_id = sse_events(answer, 3)
    assert [event["subject"] for event in events] == ["fig"] * 3
    client.publish_many(messages("fig", 1, first=3))
    headers["last-event-id"] = last_id
    with httpx.stream("GET", f"{server.url}/v1/live/events", params=query, headers=headers, timeout=20) as answer:
        (event,), _ = sse_events(answer, 1)
    assert json.dumps(event).count("fig 3") == 1


def test_server_sent_events_are_refused_like_every_request(server: SmallServer) -> None:
    answer = httpx.get(f"{server.url}/v1/live/events", headers={"authorization": f"Bearer {server.key}"}, params={"after": "x"})
    assert (answer.status_code, answer.json()["error"]["where"]) == (422, "after")
    assert httpx.get(f"{server.url}/v1/live/events").status_code == 401


def test_policies_hold_on_live_streams_also_after_coming_back(server: SmallServer, client: Client) -> None:
    options = DeliveryOptions(rate_limit=RateLimit(2, 3600.0), deduplicate_seconds=3600.0)
    client.subscribe(["gum"], id="gum", delivery=options)
    client.subscribe(["gum"], id="all-gum")
    start = client.stats().cursor
    client.publish_many([*messages("gum", 1), *messages("gum", 6)])
    ids = ["gum", "all-gum"]
    events = take(client, 9, after=start, subscriptions=ids)
    assert texts([event for event in events if event.subject == "gum"]) == ["gum 0", "gum 1"]
    middle = events[3].sequence
    client.publish_many(messages("gum", 1, first=6))
    again = take(client, 8 - int(middle) + int(start), after=middle, subscriptions=ids)
    assert [event.subject for event in again if event.subject == "gum"] == []


def test_a_stream_is_closed_when_its_key_is_removed(server: SmallServer) -> None:
    headers = {"authorization": f"Bearer {server.key}"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=30) as api:
        made = api.post("/v1/keys", json={"name": "brief", "roles": ["subscriber"]}).json()
        with live_socket(server, key=made["secret"]) as socket:
            socket.recv(timeout=20)
            assert api.delete(f"/v1/keys/{made['id']}").status_code == 204
            with pytest.raises(ConnectionClosed) as closed:
                socket.recv(timeout=20)
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, "removed" in closed.value.rcvd.reason) == (4401, True)


def test_many_connections_get_every_event(server: SmallServer, client: Client, budget: Budget) -> None:
    n_connections, n_messages = (1000, 200) if budget.is_soak else (100, 40)
    client.subscribe_many([SubscriptionIn(id=f"crowd-{number}", keywords=["crowd"]) for number in range(n_connections)])

    async def run() -> Tally:
        target, tally = Target.of(server.url, server.key), Tally(due=n_connections * n_messages)
        paths = [f"/v1/live?subscriptions=crowd-{number}" for number in range(n_connections)]
        listeners = await open_listeners(target, paths, tally)
        async with AsyncClient(server.url, server.key) as publisher, asyncio.timeout(60):
            for first in range(0, n_messages, 10):
                await publisher.publish_many(messages("crowd", 10, first))
            await tally.reached.wait()
        for listener in listeners:
            listener.close()
        return tally

    tally = asyncio.run(run())
    assert (tally.n_events, tally.closed) == (tally.due, [])
