"""What belongs to no single tenant is seen by those who operate the server, and by nobody else."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from nearcast.service.app import create_app
from nearcast.service.auth.keys import make_key
from nearcast.service.broker import Broker
from nearcast.service.limits import read_limits
from nearcast.storage.batch import Batch
from nearcast.storage.store import open_store
from nearcast.wire.api import KeyIn, Role

pytestmark = pytest.mark.filterwarnings("ignore::litestar.exceptions.LitestarDeprecationWarning")
BOX = {"bbox": "-10,-10,10,10"}
RANKED = {"kind": "ranked", "keywords": ["oak"], "location": {"type": "Point", "coordinates": [1, 2]}}


class Served:
    """A server whose clients are not on its machine."""

    def __init__(self, broker: Broker, client: TestClient[Any]) -> None:
        self.broker, self.client = broker, client

    def key(self, tenant: str, *roles: Role) -> dict[str, str]:
        row, shown = make_key(tenant, KeyIn("ann", list(roles)))
        store = open_store(self.broker.store.database.name)
        store.write(Batch(keys=[row]))
        store.close()
        return {"authorization": f"Bearer {shown.secret}"}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    broker = Broker(open_store(str(tmp_path / "store.db")), None, read_limits())
    with TestClient(create_app(broker)) as client:
        deadline = time.monotonic() + 60
        while not broker.is_ready and time.monotonic() < deadline:
            time.sleep(0.01)
        yield Served(broker, client)


def test_engines_of_other_tenants_are_not_told(served: Served) -> None:
    ours, theirs = served.key("default", "admin"), served.key("guests", "admin")
    for key in (ours, theirs):
        assert served.client.put("/v1/subscriptions/best", json=RANKED, headers=key).status_code == 201
    told = served.client.get("/v1/stats", headers=theirs).json()
    assert ({*told["engines"]}, told["subscriptions"]) == ({"ranked.guests"}, 1)
    told = served.client.get("/v1/stats", headers=ours).json()
    assert {*told["engines"]} == {"boolean", "moving", "ranked.default", "ranked.guests"}
    publisher = served.key("default", "publisher")
    assert {*served.client.get("/v1/stats", headers=publisher).json()["engines"]} == {"ranked.default"}


def test_the_console_shows_the_system_and_the_index_only_to_operators(served: Served) -> None:
    ours, theirs = served.key("default", "admin"), served.key("guests", "admin")
    assert served.client.get("/v1/console/pulse", headers=ours).json()["system"]["memory_mb"] > 0
    assert served.client.get("/v1/console/pulse", headers=theirs).json()["system"] == {}
    assert served.client.get("/v1/console/cells", params=BOX, headers=ours).status_code == 200
    assert served.client.get("/v1/console/cells", params=BOX, headers=theirs).status_code == 403


def test_the_console_shows_what_a_message_costs(served: Served) -> None:
    admin, publisher = served.key("default", "admin", "subscriber"), served.key("default", "publisher")
    region = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}
    for id, words in (("oak", ["oak"]), ("elm", ["elm"])):
        body = {"kind": "boolean", "keywords": words, "region": region}
        assert served.client.put(f"/v1/subscriptions/{id}", json=body, headers=admin).status_code == 201
    pulse = served.client.get("/v1/console/pulse", headers=admin).json()["system"]
    assert "candidates_per_message" not in pulse
    message = {"id": "m", "keywords": ["oak"], "location": {"type": "Point", "coordinates": [1, 2]}}
    assert served.client.post("/v1/messages", json=message, headers=publisher).status_code in (200, 201)
    # This thread has matched nothing: the numbers come from the counters of the service.
    pulse = served.client.get("/v1/console/pulse", headers=admin).json()["system"]
    assert pulse["matches_per_message"] == 1
    assert pulse["candidates_per_message"] >= 1


def test_metrics_are_for_operators_and_ask_the_store_beside_the_event_loop(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert served.client.get("/metrics").status_code == 401
    assert served.client.get("/metrics", headers=served.key("default", "subscriber")).status_code == 403
    assert served.client.get("/metrics", headers=served.key("guests", "admin")).status_code == 403
    threads: list[str] = []

    def n_bytes() -> int:
        threads.append(threading.current_thread().name)
        return 12_345

    monkeypatch.setattr(served.broker.store.database, "n_bytes", n_bytes)
    answer = served.client.get("/metrics", headers=served.key("default", "admin"))
    assert "nearcast_store_bytes 12345.0" in answer.text
    assert len(threads) == 1
    assert threads[0].startswith("nearcast-reader")


def test_where_the_store_is_stays_on_its_machine(served: Served) -> None:
    served.broker.load_failure = "StoreError: /var/lib/secret.db is damaged"
    answer = served.client.get("/ready")
    assert (answer.status_code, "secret" in answer.text) == (503, False)


def test_naming_no_subscription_is_not_naming_all(served: Served) -> None:
    ann = served.key("default", "subscriber")
    for method, path, body in (("GET", "/v1/inbox", None), ("POST", "/v1/inbox/ack", {"cursor": "0"})):
        answer = served.client.request(method, path, params={"subscriptions": ","}, json=body, headers=ann)
        assert (answer.status_code, answer.json()["error"]["where"]) == (422, "subscriptions")
