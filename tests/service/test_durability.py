"""Nothing acknowledged is lost: stopped, killed at any moment, out of disk; on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
import random
import resource
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from nearcast.testing.budget import Budget
from support.http_server import SmallServer, small_server
from support.postgres_server import postgres_programs, small_database

POINT = {"type": "Point", "coordinates": [13.4, 52.5]}
FAR = {"type": "Point", "coordinates": [-70.0, -30.0]}
WORDS = ("red", "green", "blue")


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str | None]:
    if request.param == "sqlite":
        yield None
        return
    if postgres_programs() is None:
        pytest.skip("PostgreSQL is not installed here")
    # Another user runs it, who cannot look into a test's own folder.
    with tempfile.TemporaryDirectory(prefix="nearcast-postgres-") as folder, small_database(Path(folder)) as database:
        yield database.url


@dataclass
class Seen:
    """What the server acknowledged."""

    subscriptions: dict[str, str] = field(default_factory=dict)
    """Word by id."""
    messages: dict[str, tuple[str, frozenset[str], int]] = field(default_factory=dict)
    """By id: word, the subscriptions that had been acknowledged when it was sent, cursor."""
    sent: set[str] = field(default_factory=set)
    place: float = 0.0
    acknowledged: int = 0


class Load:
    """Clients that work until the server is gone; what is not answered does not count."""

    def __init__(self, server: SmallServer, seen: Seen, seed: int) -> None:
        self._server, self._seen, self._lock = server, seen, threading.Lock()
        self._seed = seed
        works = (self._publish, self._publish, self._publish_lines, self._subscribe, self._move, self._read)
        self._threads = [threading.Thread(target=self._run, args=(work, at)) for at, work in enumerate(works)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()

    def _run(self, work: Any, at: int) -> None:
        dice = random.Random(self._seed * 100 + at)
        headers = {"authorization": f"Bearer {self._server.key}"}
        with httpx.Client(base_url=self._server.url, headers=headers, timeout=20) as api:
            for step in range(100_000):
                try:
                    work(api, dice, f"{self._seed}-{at}-{step}")
                except httpx.TransportError:
                    return

    def _publish(self, api: httpx.Client, dice: random.Random, name: str) -> None:
        word, known = dice.choice(WORDS), frozenset(self._seen.subscriptions)
        with self._lock:
            self._seen.sent.add(name)
        answer = api.post("/v1/messages", json={"id": name, "location": POINT, "keywords": [word]})
        assert answer.status_code == 201, answer.text
        with self._lock:
            self._seen.messages[name] = word, known, int(answer.json()["cursor"])

    def _publish_lines(self, api: httpx.Client, dice: random.Random, name: str) -> None:
        word, known = dice.choice(WORDS), frozenset(self._seen.subscriptions)
        names = [f"{name}-{line}" for line in range(dice.randint(1, 40))]
        with self._lock:
            self._seen.sent.update(names)
        lines = [json.dumps({"id": one, "location": POINT, "keywords": [word]}) for one in names]
        answer = api.post("/v1/messages/bulk", content="\n".join(lines))
        assert answer.json()["accepted"] == len(names), answer.text
        with self._lock:
            last = int(answer.json()["cursor"])
            self._seen.messages.update({one: (word, known, last - len(names) + 1 + at) for at, one in enumerate(names)})

    def _subscribe(self, api: httpx.Client, dice: random.Random, name: str) -> None:
        time.sleep(dice.random() * 0.05)
        word = dice.choice(WORDS)
        answer = api.put(f"/v1/subscriptions/{name}", json={"keywords": [word]})
        assert answer.status_code == 201, answer.text
        self._seen.subscriptions[name] = word

    def _move(self, api: httpx.Client, dice: random.Random, name: str) -> None:
        time.sleep(dice.random() * 0.02)
        x = self._seen.place + 0.001
        answer = api.post(
            "/v1/locations", json={"subscription": "walker", "location": {"type": "Point", "coordinates": [x, 0]}}
        )
        assert answer.status_code == 200, answer.text
        self._seen.place = x

    def _read(self, api: httpx.Client, dice: random.Random, name: str) -> None:
        time.sleep(dice.random() * 0.05)
        page = api.get("/v1/inbox", params={"limit": 50})
        assert page.status_code == 200, page.text
        cursor = page.json()["cursor"]
        answer = api.post("/v1/inbox/ack", json={"cursor": cursor})
        assert answer.status_code == 200, answer.text
        self._seen.acknowledged = int(cursor)


def whole_inbox(api: httpx.Client, subscription: str) -> list[tuple[int, str]]:
    """(sequence, message) of everything, read in pieces."""
    found: list[tuple[int, str]] = []
    after = "0"
    while True:
        page = api.get("/v1/inbox", params={"subscriptions": subscription, "after": after, "limit": 500}).json()
        found += [(int(event["sequence"]), event["data"]["message"]["id"]) for event in page["events"]]
        after = page["cursor"]
        if not page["has_more"]:
            return found


def check_everything(api: httpx.Client, seen: Seen, ids: Iterable[str]) -> None:
    for id in ids:
        word = seen.subscriptions[id]
        assert api.get(f"/v1/subscriptions/{id}").json()["keywords"] == [word]
        rows = whole_inbox(api, id)
        sequences, names = [row[0] for row in rows], [row[1] for row in rows]
        assert sequences == sorted(set(sequences)), f"{id}: not in order, or twice"
        assert len(names) == len(set(names)), f"{id}: a message came twice"
        assert set(names) <= seen.sent
        cursors = dict(zip(names, sequences, strict=True))
        for name, (its_word, known, cursor) in seen.messages.items():
            if its_word == word and id in known:
                assert cursors.get(name) == cursor, f"{id} did not get {name}"
    place = api.get("/v1/subscriptions/walker").json()["region"]["coordinates"][0]
    assert place >= seen.place - 1e-9
    own = api.get("/v1/inbox", params={"limit": 1})
    first = own.json()["events"]
    assert all(int(event["sequence"]) > seen.acknowledged for event in first)


def test_killed_under_load_it_loses_nothing(store: str | None, tmp_path: Path, budget: Budget) -> None:
    n_rounds = 50 if budget.is_soak else 2
    seen = Seen()
    with small_server(tmp_path, store) as server:
        headers = {"authorization": f"Bearer {server.key}"}
        with httpx.Client(base_url=server.url, headers=headers, timeout=60) as api:
            around = {"type": "Circle", "coordinates": [0, 0], "radius": 1000}
            assert api.put(
                "/v1/subscriptions/walker", json={"kind": "moving", "keywords": ["red"], "region": around}
            ).is_success
            for word in WORDS:
                assert api.put(f"/v1/subscriptions/{word}", json={"keywords": [word]}).is_success
                seen.subscriptions[word] = word
        dice = random.Random(7)
        for number in range(n_rounds):
            load = Load(server, seen, number)
            n_before, n_known = len(seen.messages), len(seen.subscriptions)
            load.start()
            deadline = time.monotonic() + 60
            while len(seen.messages) < n_before + 50 and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(dice.random())
            server.kill()
            load.join()
            server.start()
            with httpx.Client(base_url=server.url, headers=headers, timeout=60) as api:
                # Those from the beginning, and those of this round; all of them would take longer with every round.
                check_everything(api, seen, [*WORDS, *[*seen.subscriptions][n_known:][:30]])
    assert len(seen.messages) >= 50 * n_rounds


def test_stopped_and_started_it_goes_on_where_it_was(tmp_path: Path) -> None:
    with small_server(tmp_path) as server:
        headers = {"authorization": f"Bearer {server.key}"}
        with httpx.Client(base_url=server.url, headers=headers, timeout=60) as api:
            api.put(
                "/v1/subscriptions/still", json={"interest": "red OR blue", "region": {"type": "Box", "bbox": [0, 0, 90, 90]}}
            )
            api.put("/v1/subscriptions/gone", json={"keywords": ["red"]})
            moving = {"kind": "moving", "keywords": ["red"], "region": {"type": "Circle", "coordinates": [0, 0], "radius": 100}}
            api.put("/v1/subscriptions/walker", json=moving)
            api.put("/v1/subscriptions/best", json={"kind": "ranked", "keywords": ["red"], "location": POINT, "k": 1})
            ids = [api.post("/v1/messages", json={"location": POINT, "keywords": ["red"]}).json()["id"] for _ in range(2)]
            api.post("/v1/locations", json={"subscription": "walker", "location": POINT})
            api.delete("/v1/subscriptions/gone")
            for id, asked in (("hushed", {"keywords": ["red"]}), ("hushed-walker", moving)):
                api.put(f"/v1/subscriptions/{id}", json=asked)
                api.patch(f"/v1/subscriptions/{id}", json={"paused": True})
            before = api.get("/v1/inbox", params={"after": "0"}).content
        second = SmallServer(tmp_path, {}, server.store)
        with pytest.raises(RuntimeError, match="another process holds the store"):
            second.start()
        # The first start has the snapshot that the stop wrote; the second must do without.
        for has_snapshot in (True, False):
            server.stop()
            assert (tmp_path / "store.db.index").is_dir()
            if not has_snapshot:
                shutil.rmtree(tmp_path / "store.db.index")
            server.start()
            with httpx.Client(base_url=server.url, headers=headers, timeout=60) as api:
                assert api.get("/v1/inbox", params={"after": "0"}).content == before
                assert [one["message"]["id"] for one in api.get("/v1/subscriptions/best/top").json()["entries"]] == ids[1:]
                current = api.get("/v1/subscriptions/walker/current").json()["messages"]
                assert {message["id"] for message in current} == set(ids)
        with httpx.Client(base_url=server.url, headers=headers, timeout=60) as api:
            cursor = api.get("/v1/inbox", params={"after": "0"}).json()["cursor"]
            last = api.post("/v1/messages", json={"location": POINT, "keywords": ["red"]}).json()["id"]
            api.post("/v1/locations", json={"subscription": "walker", "location": FAR})
            page = api.get("/v1/inbox", params={"after": cursor}).json()["events"]
            told = {(event["subject"], event["type"].split(".", 2)[2], event["data"]["message"]["id"]) for event in page}
            left = {("walker", "left", id) for id in (*ids, last)}
            ranked = {("best", "topk.in", last), ("best", "topk.out", ids[1])}
            assert told == {("still", "match", last), ("walker", "entered", last)} | left | ranked


def test_a_full_disk_is_told_and_loses_nothing(tmp_path: Path) -> None:
    with small_server(tmp_path) as server:
        headers = {"authorization": f"Bearer {server.key}"}
        with httpx.Client(base_url=server.url, headers=headers, timeout=60) as api:
            api.put("/v1/subscriptions/all", json={"keywords": ["red"]})
            soft, hard = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
            # Files may not grow beyond this, as on a disk with no room left.
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (400_000, hard))
            body = {"location": POINT, "keywords": ["red"], "payload": "x" * 20_000}
            kept, answer = [], httpx.Response(201)
            for _ in range(100):
                answer = api.post("/v1/messages", json=body)
                if not answer.is_success:
                    break
                kept.append(answer.json()["id"])
            assert answer.status_code == 503
            assert answer.json()["error"]["code"] == "store_failed"
            assert "retry-after" in answer.headers
            assert api.get("/ready").status_code == 503
            assert api.put("/v1/subscriptions/late", json={"keywords": ["red"]}).status_code == 503
            assert [row[1] for row in whole_inbox(api, "all")] == kept
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (soft, hard))
            kept.append(api.post("/v1/messages", json=body).json()["id"])
            assert api.get("/ready").status_code == 200
            assert [row[1] for row in whole_inbox(api, "all")] == kept
            assert api.get("/v1/subscriptions/late").status_code == 404
        server.kill()
        server.start()
        with httpx.Client(base_url=server.url, headers=headers, timeout=60) as api:
            assert [row[1] for row in whole_inbox(api, "all")] == kept
