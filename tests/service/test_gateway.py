"""A server that hands everything to a pipeline through topics of files: the same answers, and nothing lost on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

import nearcast as nc
from nearcast.model.regions import Box
from nearcast.pipeline.index.step import SUBSCRIPTION_SCHEMA
from nearcast.pipeline.io.topic_changes import change_table
from nearcast.topics.files import FileTopic
from nearcast.topics.records import MATCH, read_record, record_of
from support.http_server import SmallServer, small_server
from support.kafka_broker import VARIABLE, kafka_folder, small_broker
from support.stream_process import small_stream

POINT = {"type": "Point", "coordinates": [13.4, 52.5]}
FAR = {"type": "Point", "coordinates": [-70.0, -30.0]}
BERLIN = {"type": "Box", "bbox": [13.0, 52.0, 14.0, 53.0]}
PATIENCE_S = 120.0


class Plain:
    """A pipeline in a few lines: takes up all changes, matches what came, delivers."""

    def __init__(self, folder: Path) -> None:
        self._topics = [FileTopic(folder / name) for name in ("subscriptions", "messages", "deliveries")]
        self._positions = ["", ""]
        self.matcher = nc.Matcher()

    def run(self) -> list[tuple[str, str]]:
        """What it delivered."""
        changes, messages = (topic.read(at, 10**6) for topic, at in zip(self._topics[:2], self._positions, strict=True))
        self._positions = [changes.position, messages.position]
        table = change_table(changes.values, "string")
        self.matcher.unsubscribe(table["id"].to_pylist())
        self.matcher.subscribe_table(table.filter(table["change"].to_numpy() == 1).select(SUBSCRIPTION_SCHEMA.names))
        assert not self.matcher.report.rejected
        rows = [read_record(value).data for value in messages.values]
        found = self.matcher.publish([nc.Message(row["id"], keywords=row["keywords"], location=_place(row)) for row in rows])
        pairs = [(str(one.subscription_id), str(one.message_id)) for one in found]
        self.deliver(pairs)
        return pairs

    def deliver(self, pairs: list[tuple[str, str]]) -> None:
        data = [{"subscription": subscription, "message_id": message} for subscription, message in pairs]
        self._topics[2].append([record_of(MATCH, str(row), "/plain", row["subscription"], row) for row in data])


def _place(row: dict[str, Any]) -> Box | tuple[float, float]:
    return (row["x"], row["y"]) if "x" in row else Box(*(row[name] for name in ("x0", "y0", "x1", "y1")))


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[SmallServer]:
    with small_server(tmp_path, engine=f"file://{tmp_path}/topics") as server:
        yield server


def client_of(server: SmallServer) -> httpx.Client:
    return httpx.Client(base_url=server.url, headers={"authorization": f"Bearer {server.key}"}, timeout=60)


def told(api: httpx.Client) -> list[tuple[str, str]]:
    """(subscription, text of the message) of every match in the inbox, in order."""
    events = api.get("/v1/inbox", params={"limit": 1000}).raise_for_status().json()["events"]
    return [(one["data"]["subscription"], one["data"]["message"]["text"]) for one in events if one["type"] == MATCH]


def eventually(look: Callable[[], Any], wanted: Any, alive: Callable[[], None] = lambda: None) -> None:
    """Wait until it is so; and look again a little later, when what comes twice would have come."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := look()) != wanted:
        assert time.monotonic() < deadline, f"{found} is not {wanted}"
        alive()
        time.sleep(0.05)


def subscribe(api: httpx.Client, id: str, **given: Any) -> None:
    api.put(f"/v1/subscriptions/{id}", json=given).raise_for_status()


def publish(api: httpx.Client, text: str, **given: Any) -> httpx.Response:
    return api.post("/v1/messages", json={"text": text, "location": POINT, **given}).raise_for_status()


def test_what_a_pipeline_delivers_is_told_as_the_server_itself_would(tmp_path: Path) -> None:
    with small_server(tmp_path) as server:
        with client_of(server) as api:
            subscribe(api, "box", keywords=["red"], region=BERLIN)
            publish(api, "red before")
            assert told(api) == [("box", "red before")]
        server.stop()
        server.engine = f"file://{tmp_path}/topics"
        server.start()
        follow_a_pipeline(server, Plain(tmp_path / "topics"), tmp_path / "topics")


def follow_a_pipeline(gateway: SmallServer, plain: Plain, topics: Path) -> None:
    """The subscriptions of before are the pipeline's now; the messages of before have had their effect."""
    with client_of(gateway) as api:
        wanted = [("box", "red before")]
        assert told(api) == wanted
        subscribe(api, "circle", interest="red OR blue", region={"type": "Circle", "coordinates": [13.4, 52.5], "radius": 900})
        subscribe(api, "tagged", keywords=["red"], tags=["vip"])
        subscribe(api, "moving", kind="moving", keywords=["red"], region=BERLIN)
        publish(api, "red car")
        publish(api, "blue car", location={"type": "Box", "bbox": [13.39, 52.49, 13.5, 52.6]})
        publish(api, "red boat", location=FAR)
        publish(api, "red bus", audience={"type": "Circle", "coordinates": [-70, -30], "radius": 10}, tags=["vip"])
        assert told(api) == wanted
        # The engines of the server itself are for those who move.
        types = [one["type"] for one in api.get("/v1/inbox").json()["events"]]
        assert types == [MATCH, "io.nearcast.entered", "io.nearcast.entered"]
        first = plain.run()
        assert len(first) == 6
        wanted += [("box", "red car"), ("circle", "red car"), ("circle", "blue car")]
        eventually(lambda: sorted(told(api)), sorted(wanted))
        event = api.get("/v1/inbox", params={"limit": 10}).json()["events"][-1]
        assert event["data"]["distance"] >= 0
        # Again, of nobody, to nobody, about nothing, and after a restart: told once.
        plain.deliver([*first, ("77", "3"), ("1", "999999"), ("one", "two")])
        FileTopic(topics / "deliveries").append([record_of("else", "1", "/", "1", {"a": 1})])
        publish(api, "red van")
        plain.run()
        wanted.append(("box", "red van"))
        wanted.append(("circle", "red van"))
        eventually(lambda: sorted(told(api)), sorted(wanted))
        api.delete("/v1/subscriptions/box").raise_for_status()
        api.patch("/v1/subscriptions/circle", json={"paused": True}).raise_for_status()
        publish(api, "red last")
        answer = api.post("/v1/explain", json={"subscription": "tagged", "message": {"text": "red", "location": POINT}}).json()
        assert not answer["matched"]
        assert api.get("/v1/stats").json()["engines"]["boolean"] == {"subscriptions": 1.0, "index": "gateway"}
    gateway.kill()
    plain.deliver(first)
    gateway.start()
    with client_of(gateway) as api:
        # The last commit may be handed over again: the same message twice.
        assert plain.run() == []
        api.patch("/v1/subscriptions/circle", json={"paused": False}).raise_for_status()
        publish(api, "red once more")
        plain.deliver([pair for pair in plain.run() for _ in range(2)])
        wanted.append(("circle", "red once more"))
        eventually(lambda: sorted(told(api)), sorted(wanted))


def test_what_cannot_be_handed_over_is_not_acknowledged_and_not_lost(gateway: SmallServer, tmp_path: Path) -> None:
    topics = tmp_path / "topics"
    plain = Plain(topics)
    with client_of(gateway) as api:
        subscribe(api, "box", keywords=["red"], region=BERLIN)
        (topics / "messages").rename(topics / "elsewhere")
        answer = api.post("/v1/messages", json={"id": "a", "text": "red car", "location": POINT})
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "pipeline_failed")
        assert httpx.get(f"{gateway.url}/ready").status_code == 503
        (topics / "elsewhere").rename(topics / "messages")
        eventually(lambda: httpx.get(f"{gateway.url}/ready").status_code, 200)
        repeated = api.post("/v1/messages", json={"id": "a", "text": "red car", "location": POINT}).raise_for_status()
        assert repeated.json()["is_repeat"]
        assert len(plain.run()) == 1
        eventually(lambda: told(api), [("box", "red car")])


class Carrier(NamedTuple):
    """Topics for a server and for a stream."""

    address: str
    mark: str
    settings: dict[str, str]


@pytest.fixture(params=["files", "kafka"])
def carrier(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Carrier]:
    if request.param == "files":
        yield Carrier(f"file://{tmp_path}/topics", "/", {})
        return
    jars = kafka_folder()
    if jars is None:
        pytest.skip(f"no Kafka here: {VARIABLE} names no folder with its jars")
    (tmp_path / "broker").mkdir()
    with small_broker(tmp_path / "broker", jars / "broker") as broker:
        yield Carrier(f"kafka://{broker}/near", ".", {"kafka_jars": str(jars / "spark")})


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_stream_of_spark_behind_a_server_loses_nothing_when_either_dies(carrier: Carrier, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    work = tmp_path / "stream"
    work.mkdir()
    with (
        small_stream(work, carrier.address, carrier.mark, **carrier.settings) as stream,
        small_server(tmp_path, engine=carrier.address) as gateway,
        client_of(gateway) as api,
    ):
        subscribe(api, "box", keywords=["red"], region=BERLIN)
        subscribe(api, "gone", keywords=["red"])
        publish(api, "red one")
        wanted = [("box", "red one"), ("gone", "red one")]
        eventually(lambda: sorted(told(api)), wanted, stream.check)
        # While it runs, subscriptions come and go.
        api.delete("/v1/subscriptions/gone").raise_for_status()
        subscribe(api, "late", interest="red AND NOT one", region=BERLIN)
        publish(api, "red two")
        wanted += [("box", "red two"), ("late", "red two")]
        eventually(lambda: sorted(told(api)), sorted(wanted), stream.check)
        # The stream dies, perhaps in the middle of a batch; the server goes on, and dies as well.
        publish(api, "red three")
        stream.kill()
        subscribe(api, "meanwhile", keywords=["four"])
        publish(api, "red four")
        gateway.kill()
        gateway.start()
        stream.start()
        publish(api, "red five")
        wanted += [("box", f"red {word}") for word in ("three", "four", "five")]
        wanted += [("late", f"red {word}") for word in ("three", "four", "five")] + [("meanwhile", "red four")]
        eventually(lambda: sorted(told(api)), sorted(wanted), stream.check)
