"""A recorded history of mixed operations, through the API of a real server, against the oracles."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from nearcast.model.message import Message
from nearcast.model.regions import Box, Circle, Region
from nearcast.model.subscription import RankedSubscription, Subscription
from nearcast.model.window import CountWindow
from nearcast.testing.budget import Budget
from nearcast.testing.oracles.boolean import Oracle
from nearcast.testing.oracles.moving import MovingOracle
from nearcast.testing.oracles.ranked import RankedOracle
from support.http_server import SmallServer, small_server

WORDS = ("ash", "birch", "cedar", "elm", "fir", "oak")
WINDOW = 50


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SmallServer]:
    with small_server(tmp_path, NEARCAST_SERVICE_RANKED_WINDOW=str(WINDOW)) as running:
        yield running


def shape_of(region: Region) -> dict[str, Any]:
    if isinstance(region, Box):
        return {"type": "Box", "bbox": [*region.bounds]}
    assert isinstance(region, Circle)
    return {"type": "Circle", "coordinates": [region.x, region.y], "radius": region.radius}


class History:
    """Does the same to the server and to the oracles, and writes down what the oracles say."""

    def __init__(self, api: httpx.Client, seed: int) -> None:
        self.api, self.dice = api, random.Random(seed)
        self.boolean, self.moving, self.ranked = Oracle(), MovingOracle(), RankedOracle(CountWindow(WINDOW))
        self.expected: dict[str, list[tuple[str, str]]] = {}
        """By subscription: (kind, message), in order."""
        self.living: dict[str, list[str]] = {"boolean": [], "moving": [], "ranked": []}
        self.n_messages = self.n_subscriptions = 0

    def step(self) -> None:
        kinds = ("publish", "publish_lines", "subscribe", "replace", "unsubscribe", "move")
        getattr(self, self.dice.choices(kinds, (8, 2, 2, 1, 1, 3))[0])()

    def region(self) -> Region:
        x, y = self.dice.uniform(0, 10), self.dice.uniform(0, 10)
        if self.dice.random() < 0.5:
            return Box(x, y, x + self.dice.uniform(0, 6), y + self.dice.uniform(0, 6))
        return Circle(x, y, self.dice.uniform(0, 500_000))

    def subscribe(self) -> None:
        self.n_subscriptions += 1
        kind = self.dice.choice(("boolean", "boolean", "moving", "ranked"))
        self.put(kind, f"{kind}-{self.n_subscriptions}")

    def replace(self) -> None:
        kind = self.dice.choice(("boolean", "moving", "ranked"))
        if self.living[kind]:
            self.put(kind, self.dice.choice(self.living[kind]))

    def put(self, kind: str, id: str) -> None:
        words = self.dice.sample(WORDS, self.dice.randint(1, 2))
        given: dict[str, Any] = {"kind": kind}
        interest = None
        if kind == "boolean" and self.dice.random() < 0.3:
            interest = " AND NOT ".join(self.dice.sample(WORDS, 2))
            given["interest"] = interest
        else:
            given["keywords"] = words
        if kind == "ranked":
            x, y, k = self.dice.uniform(0, 10), self.dice.uniform(0, 10), self.dice.randint(1, 3)
            given |= {"location": {"type": "Point", "coordinates": [x, y]}, "k": k}
            ranked = RankedSubscription(id, words, (x, y), k)
        else:
            region = self.region()
            given["region"] = shape_of(region)
        answer = self.api.put(f"/v1/subscriptions/{id}", json=given)
        assert answer.is_success, answer.text
        if id not in self.living[kind]:
            self.living[kind].append(id)
        self.expected.setdefault(id, [])
        if kind == "boolean":
            own = Subscription(id, interest=interest, region=region) if interest else Subscription(id, words, region)
            self.boolean.subscribe([own])
        elif kind == "moving":
            self.note(self.moving.subscribe([Subscription(id, words, region)]), "entered", "left")
        else:
            self.note(self.ranked.subscribe([ranked]), "topk.in", "topk.out")

    def note(self, steps: Any, entered: str, left: str) -> None:
        """Of one call: those that leave first, as the server tells them."""
        for step in sorted(steps, key=lambda step: step.change):
            self.expected[step.subscription_id].append((entered if step.change > 0 else left, step.message_id))

    def unsubscribe(self) -> None:
        kind = self.dice.choice(("boolean", "moving", "ranked"))
        if not self.living[kind]:
            return
        id = self.living[kind].pop(self.dice.randrange(len(self.living[kind])))
        assert self.api.delete(f"/v1/subscriptions/{id}").status_code == 204
        oracles: tuple[Oracle, MovingOracle, RankedOracle] = (self.boolean, self.moving, self.ranked)
        for oracle in oracles:
            oracle.unsubscribe([id])
        self.expected[id].append(("subscription.ended", ""))

    def move(self) -> None:
        if not self.living["moving"]:
            return
        id, region = self.dice.choice(self.living["moving"]), self.region()
        answer = self.api.post("/v1/locations", json={"subscription": id, "region": shape_of(region)})
        assert answer.json()["status"] == "moved", answer.text
        self.note(self.moving.move({id: region}), "entered", "left")

    def message(self) -> tuple[dict[str, Any], Message]:
        self.n_messages += 1
        id, words = f"x{self.n_messages}", self.dice.sample(WORDS, self.dice.randint(1, 4))
        x, y = self.dice.uniform(0, 12), self.dice.uniform(0, 12)
        given = {"id": id, "keywords": words, "location": {"type": "Point", "coordinates": [x, y]}}
        return given, Message(id, keywords=words, location=(x, y))

    def publish(self) -> None:
        given, message = self.message()
        answer = self.api.post("/v1/messages", json=given)
        assert answer.status_code == 201, answer.text
        self.arrive([message])

    def publish_lines(self) -> None:
        both = [self.message() for _ in range(self.dice.randint(1, 5))]
        answer = self.api.post("/v1/messages/bulk", content="\n".join(json.dumps(given) for given, _ in both))
        assert answer.json()["accepted"] == len(both), answer.text
        self.arrive([message for _, message in both])

    def arrive(self, messages: list[Message]) -> None:
        order = {message.id: at for at, message in enumerate(messages)}
        for pair in sorted(self.boolean.publish(messages), key=lambda pair: order[pair.message_id]):
            self.expected[str(pair.subscription_id)].append(("match", str(pair.message_id)))
        steps = self.moving.publish(messages)
        self.note(sorted(steps, key=lambda step: order[step.message_id]), "entered", "left")
        # The server tells what a request changes from its beginning to its end, and not tick by tick.
        before = {id: self.ranked.top(id) for id in self.living["ranked"]}
        self.ranked.publish(messages)
        for id, old in before.items():
            was, now = {one[0] for one in old}, {one[0] for one in self.ranked.top(id)}
            self.expected[id] += [("topk.out", str(one)) for one in was - now] + [("topk.in", str(one)) for one in now - was]

    def check(self) -> None:
        """What each subscription got: the same, and in the same order but among those that one request changed together."""
        found: dict[str, list[tuple[str, str]]] = {}
        after, last = "0", 0
        while True:
            page = self.api.get("/v1/inbox", params={"after": after, "limit": 1000}).json()
            for event in page["events"]:
                assert int(event["sequence"]) >= last
                last = int(event["sequence"])
                message = event["data"].get("message", {}).get("id", "")
                found.setdefault(event["subject"], []).append((event["type"].removeprefix("io.nearcast."), message))
            after = page["cursor"]
            if not page["has_more"]:
                break
        for id, expected in self.expected.items():
            if id.startswith("boolean"):
                assert found.get(id, []) == expected, id
            else:
                assert sorted(found.get(id, [])) == sorted(expected), id
        for id in self.living["moving"]:
            current = self.api.get(f"/v1/subscriptions/{id}/current").json()["messages"]
            assert {message["id"] for message in current} == self.moving.current(id)
        for id in self.living["ranked"]:
            top = self.api.get(f"/v1/subscriptions/{id}/top").json()["entries"]
            assert [one["message"]["id"] for one in top] == [one[0] for one in self.ranked.top(id)]


def test_recorded_histories_are_the_oracles(server: SmallServer, budget: Budget) -> None:
    # Each in a tenant of its own: the oracles look at every pair, so one long history would take them for ever.
    n_histories, n_steps = (100, 500) if budget.is_soak else (1, 250)
    for number in range(n_histories):
        headers = {"authorization": f"Bearer {server.make_key('ann', 'publisher', 'subscriber', tenant=f't{number}')}"}
        with httpx.Client(base_url=server.url, headers=headers, timeout=60) as api:
            history = History(api, seed=number)
            for _ in range(n_steps):
                history.step()
            history.check()
    server.kill()
    server.start()
    with httpx.Client(base_url=server.url, headers=headers, timeout=60) as api:
        history.api = api
        history.check()
        for _ in range(n_steps // 5):
            history.step()
        history.check()


def test_messages_that_expire_leave_at_their_time(server: SmallServer) -> None:
    with httpx.Client(base_url=server.url, headers={"authorization": f"Bearer {server.key}"}, timeout=60) as api:
        assert api.put("/v1/subscriptions/s", json={"kind": "moving", "keywords": ["oak"]}).is_success
        place = {"type": "Point", "coordinates": [1, 2]}
        lives = {f"x{at}": at * 0.4 for at in range(1, 6)}
        for id, seconds in lives.items():
            body = {"id": id, "location": place, "keywords": ["oak"], "lifetime": seconds}
            assert api.post("/v1/messages", json=body).is_success
        deadline = time.monotonic() + 30
        left: list[str] = []
        while len(left) < len(lives) and time.monotonic() < deadline:
            events = api.get("/v1/inbox", params={"after": "0"}).json()["events"]
            left = [event["data"]["message"]["id"] for event in events if event["type"] == "io.nearcast.left"]
            time.sleep(0.1)
        assert left == [*lives]
        assert api.get("/v1/subscriptions/s/current").json()["messages"] == []
