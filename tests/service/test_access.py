"""Every route with every wrong key gets nothing; tenants and subscribers do not see each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from support.http_server import SmallServer

pytestmark = pytest.mark.xdist_group("service")
POINT = {"type": "Point", "coordinates": [13.4, 52.5]}
OPEN = {"/health", "/ready", "/metrics", "/v1/openapi.json", "/v1/asyncapi.json"}


@pytest.fixture(scope="module")
def keys(shared_server: SmallServer) -> dict[str, str]:
    made = {role: shared_server.make_key(f"only-{role}", role) for role in ("publisher", "subscriber", "admin")}
    return made | {"other tenant": shared_server.make_key("stranger", "admin", "publisher", "subscriber", tenant="elsewhere")}


@pytest.fixture(scope="module")
def routes(shared_server: SmallServer) -> list[tuple[str, str, frozenset[str]]]:
    """(method, path, roles) of everything under /v1, from the document the server gives of itself."""
    paths = httpx.get(f"{shared_server.url}/v1/openapi.json").json()["paths"]
    found = [(method.upper(), path) for path, methods in paths.items() for method in methods if path not in OPEN]
    return [
        (method, path.replace("{id}", "some").replace("{letter}", "some"), roles_of(method, path)) for method, path in found
    ]


def roles_of(method: str, path: str) -> frozenset[str]:
    """Who may, as the how-to on security says."""
    if path.startswith(("/v1/keys", "/v1/audit", "/v1/console")):
        return frozenset()
    if path.startswith("/v1/messages"):
        return frozenset({"publisher"})
    if path == "/v1/stats":
        return frozenset({"publisher", "subscriber"})
    return frozenset({"subscriber"})


def with_key(server: SmallServer, key: str | None) -> httpx.Client:
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    return httpx.Client(base_url=server.url, headers=headers, timeout=30)


def wrong_keys(server: SmallServer) -> Iterator[str | None]:
    yield None
    yield "x"
    yield "nc"
    yield "nc_000000000000_" + "0" * 48
    yield server.key[:-1] + ("0" if server.key[-1] != "0" else "1")
    yield server.key.upper()
    yield server.key + "0"


def test_no_route_answers_a_wrong_key(shared_server: SmallServer, routes: list[tuple[str, str, frozenset[str]]]) -> None:
    assert len(routes) > 15
    for key in wrong_keys(shared_server):
        with with_key(shared_server, key) as client:
            for method, path, _ in routes:
                with client.stream(method, path, json={}) as answer:
                    assert answer.status_code == 401, (method, path, key)
                    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("role", ["publisher", "subscriber"])
def test_no_route_answers_a_key_without_its_role(
    shared_server: SmallServer, keys: dict[str, str], routes: list[tuple[str, str, frozenset[str]]], role: str
) -> None:
    with with_key(shared_server, keys[role]) as client:
        for method, path, roles in routes:
            # Nothing of a body is looked at before the role is. Streams never end: their head says enough.
            with client.stream(method, path, content=b"{") as answer:
                assert (answer.status_code == 403) == (role not in roles), (method, path)


def test_subscribers_see_only_their_own(shared_server: SmallServer, api: httpx.Client, keys: dict[str, str]) -> None:
    assert api.put("/v1/subscriptions/private", json={"keywords": ["secret"]}).status_code in (200, 201)
    api.post("/v1/messages", json={"location": POINT, "keywords": ["secret"]})
    with with_key(shared_server, keys["subscriber"]) as other:
        assert other.get("/v1/subscriptions").json() == {"subscriptions": []}
        for method, path, body in reaching("private"):
            answer = other.request(method, path, json=body)
            assert answer.status_code in (403, 404), (method, path, answer.text)
        assert other.get("/v1/inbox", params={"after": "0"}).json()["events"] == []


def reaching(id: str) -> list[tuple[str, str, Any]]:
    """Every way to get at a subscription."""
    return [
        ("GET", f"/v1/subscriptions/{id}", None),
        ("PUT", f"/v1/subscriptions/{id}", {"keywords": ["mine"]}),
        ("PATCH", f"/v1/subscriptions/{id}", {"paused": True}),
        ("DELETE", f"/v1/subscriptions/{id}", None),
        ("GET", f"/v1/subscriptions/{id}/top", None),
        ("GET", f"/v1/subscriptions/{id}/current", None),
        ("POST", "/v1/locations", {"subscription": id, "location": POINT}),
        ("POST", "/v1/explain", {"subscription": id, "message": {"location": POINT, "keywords": ["secret"]}}),
        ("GET", f"/v1/inbox?subscriptions={id}&after=0", None),
        ("GET", "/v1/inbox?subscriber=ann&after=0", None),
        ("GET", "/v1/subscriptions?subscriber=ann", None),
        ("POST", f"/v1/inbox/ack?subscriptions={id}", {"cursor": "1"}),
        ("POST", "/v1/subscriptions", {"keywords": ["mine"], "subscriber": "ann"}),
    ]


def test_tenants_share_nothing(shared_server: SmallServer, api: httpx.Client, keys: dict[str, str]) -> None:
    api.put("/v1/subscriptions/shared-name", json={"keywords": ["common"]})
    with with_key(shared_server, keys["other tenant"]) as other:
        for method, path, body in reaching("shared-name")[:8]:
            if method != "PUT":
                answer = other.request(method, path, json=body)
                assert answer.status_code == 404, (method, path, answer.text)
        assert other.put("/v1/subscriptions/shared-name", json={"keywords": ["common"]}).status_code in (200, 201)
        theirs = other.post("/v1/messages", json={"location": POINT, "keywords": ["common"], "id": "same-id"}).json()
        ours = api.post("/v1/messages", json={"location": POINT, "keywords": ["common"], "id": "same-id"}).json()
        assert theirs["cursor"] != ours["cursor"]
        for client, cursor in ((other, theirs["cursor"]), (api, ours["cursor"])):
            events = client.get("/v1/inbox", params={"subscriptions": "shared-name", "after": "0"}).json()["events"]
            assert [event["sequence"] for event in events] == [cursor]
        assert other.get("/v1/inbox?subscriber=ann&after=0").json()["events"] == []
        assert other.post("/v1/explain", json={"subscription": "shared-name", "message_id": theirs["id"]}).json()["matched"]
        key_ids = {key["id"] for key in other.get("/v1/keys").json()["keys"]}
        assert shared_server.key.split("_")[1] not in key_ids
        assert other.delete(f"/v1/keys/{shared_server.key.split('_')[1]}").status_code == 404


def test_a_key_made_over_http_works_until_it_is_removed(shared_server: SmallServer, api: httpx.Client) -> None:
    made = api.post("/v1/keys", json={"name": "bob", "roles": ["subscriber"]}).json()
    listed = {key["id"]: key for key in api.get("/v1/keys").json()["keys"]}
    assert listed[made["id"]].get("secret") is None
    with with_key(shared_server, made["secret"]) as bob:
        assert bob.put("/v1/subscriptions/of-bob", json={"keywords": ["a"]}).json()["subscriber"] == "bob"
        assert bob.get("/v1/keys").status_code == 403
        assert api.get("/v1/inbox", params={"subscriber": "bob", "after": "0"}).status_code == 200
        assert api.delete(f"/v1/keys/{made['id']}").status_code == 204
        assert bob.get("/v1/subscriptions").status_code == 401
    actions = [(one["action"], one["target"]) for one in api.get("/v1/audit").json()["entries"]]
    assert actions.index(("key.delete", made["id"])) < actions.index(("key.create", made["id"]))


def test_no_secret_is_kept_or_logged(shared_server: SmallServer, keys: dict[str, str]) -> None:
    secrets = [key.split("_")[2].encode() for key in (shared_server.key, *keys.values())]
    for path in shared_server.folder.rglob("*"):
        if path.is_file():
            assert not any(secret in path.read_bytes() for secret in secrets), path
