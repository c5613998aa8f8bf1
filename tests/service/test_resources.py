"""Every resource of a real server, over HTTP: what it takes, what it keeps, what it refuses and how it says so."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import msgspec
import pytest

from nearcast.wire.api import ErrorOut, InboxPage

pytestmark = pytest.mark.xdist_group("service")
POINT = {"type": "Point", "coordinates": [13.4, 52.5]}
AROUND = {"type": "Circle", "coordinates": [13.4, 52.5], "radius": 5000}


def post_message(api: httpx.Client, word: str, place: Any = POINT, **rest: Any) -> dict[str, Any]:
    answer = api.post("/v1/messages", json={"location": place, "keywords": [word], **rest})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def subscribe(api: httpx.Client, id: str, **given: Any) -> dict[str, Any]:
    answer = api.put(f"/v1/subscriptions/{id}", json=given)
    assert answer.status_code in (200, 201), answer.text
    return dict(answer.json())


def events_of(api: httpx.Client, id: str, after: str = "0", limit: int = 100) -> InboxPage:
    answer = api.get("/v1/inbox", params={"subscriptions": id, "after": after, "limit": limit})
    assert answer.status_code == 200, answer.text
    return msgspec.json.decode(answer.content, type=InboxPage)


def told(page: InboxPage) -> list[tuple[str, str]]:
    """(kind, message) of events."""
    return [
        (event.type.removeprefix("io.nearcast."), event.data.message.id if event.data.message else "") for event in page.events
    ]


def refusal(answer: httpx.Response, status: int) -> ErrorOut:
    assert answer.status_code == status, answer.text
    return msgspec.json.decode(answer.content, type=ErrorOut)


def test_a_message_reaches_whom_it_concerns_with_distance_and_words(api: httpx.Client) -> None:
    subscribe(api, "near", keywords=["Café"], region=AROUND, metadata={"note": "mine"}, tags=["food"])
    subscribe(api, "far", keywords=["café"], region={"type": "Box", "bbox": [0, 0, 1, 1]})
    place = {"type": "Point", "coordinates": [13.41, 52.5]}
    receipt = post_message(api, "CAFÉ", place, tags=["food"], payload={"price": 3})
    post_message(api, "café", place)
    page = events_of(api, "near")
    assert told(page) == [("match", receipt["id"])]
    event = page.events[0]
    assert event.sequence == receipt["cursor"]
    assert event.data.keywords == ["Café"]
    assert event.data.metadata == {"note": "mine"}
    assert event.data.distance == pytest.approx(677, rel=0.01)
    assert event.data.message is not None
    assert event.data.message.payload == {"price": 3}
    assert told(events_of(api, "far")) == []


def test_a_subscription_is_made_replaced_listed_and_ended(api: httpx.Client) -> None:
    made = api.post("/v1/subscriptions", json={"keywords": ["x"]})
    assert made.status_code == 201
    id = made.json()["id"]
    assert api.put(f"/v1/subscriptions/{id}", json={"interest": "x OR y", "region": AROUND}).status_code == 200
    kept = api.get(f"/v1/subscriptions/{id}").json()
    assert kept["interest"] == "x OR y"
    assert kept["region"] == {**AROUND, "radius": 5000.0}
    assert kept["created"] == made.json()["created"]
    listed: list[str] = []
    after: dict[str, str] = {}
    while True:
        page = api.get("/v1/subscriptions", params={"limit": 1, **after}).json()
        listed += [one["id"] for one in page["subscriptions"]]
        if "next" not in page:
            break
        after = {"after": page["next"]}
    assert listed.count(id) == 1
    assert api.delete(f"/v1/subscriptions/{id}").status_code == 204
    refusal(api.get(f"/v1/subscriptions/{id}"), 404)
    refusal(api.delete(f"/v1/subscriptions/{id}"), 404)
    ended = api.get("/v1/inbox", params={"after": "0", "limit": 1000}).json()["events"]
    assert [event["data"].get("reason") for event in ended if event["subject"] == id] == ["deleted"]


def test_a_replaced_subscription_gets_what_it_asks_for_now(api: httpx.Client) -> None:
    subscribe(api, "changing", keywords=["before"])
    first = post_message(api, "before")
    subscribe(api, "changing", keywords=["after"])
    post_message(api, "before")
    second = post_message(api, "after")
    assert told(events_of(api, "changing")) == [("match", first["id"]), ("match", second["id"])]


def test_a_paused_subscription_hears_nothing_until_it_goes_on(api: httpx.Client) -> None:
    for kind, place in (("boolean", {}), ("moving", {"region": AROUND}), ("ranked", {"location": POINT})):
        subscribe(api, f"nap-{kind}", kind=kind, keywords=["lullaby"], **place)
    first = post_message(api, "lullaby")
    for kind in ("boolean", "moving", "ranked"):
        paused = api.patch(f"/v1/subscriptions/nap-{kind}", json={"paused": True})
        assert paused.json()["paused"] is True
        assert api.get(f"/v1/subscriptions/nap-{kind}").json()["paused"] is True
    second = post_message(api, "lullaby")
    moved = api.post("/v1/locations", json={"subscription": "nap-moving", "location": POINT}).json()
    assert moved == {"subscription": "nap-moving", "status": "moved"}
    assert api.get("/v1/subscriptions/nap-moving/current").json()["messages"] == []
    assert api.get("/v1/subscriptions/nap-ranked/top").json()["entries"] == []
    why = api.post("/v1/explain", json={"subscription": "nap-boolean", "message_id": second["id"]}).json()
    assert not why["matched"]
    assert "paused" in why["reasons"][0]
    for kind in ("boolean", "moving", "ranked"):
        for _ in range(2):
            assert "paused" not in api.patch(f"/v1/subscriptions/nap-{kind}", json={"paused": False}).json()
    third = post_message(api, "lullaby")
    ids = [first["id"], second["id"], third["id"]]
    assert told(events_of(api, "nap-boolean")) == [("match", ids[0]), ("match", ids[2])]
    # The others are told their whole result anew.
    entered = [id for kind, id in told(events_of(api, "nap-moving")) if kind == "entered"]
    assert (entered[0], sorted(entered[1:3]), entered[3:]) == (ids[0], sorted(ids[:2]), ids[2:])
    assert [entry["message"]["id"] for entry in api.get("/v1/subscriptions/nap-ranked/top").json()["entries"]] == ids[::-1]
    refusal(api.patch("/v1/subscriptions/nobody", json={"paused": True}), 404)
    subscribe(api, "nap-boolean", keywords=["lullaby"], paused=True)
    post_message(api, "lullaby")
    assert len(events_of(api, "nap-boolean").events) == 2


def test_bulk_lines_are_judged_one_by_one(api: httpx.Client) -> None:
    good = {"location": POINT, "keywords": ["bulk"]}
    lines = [json.dumps(good), "{", json.dumps({**good, "keywords": [""]}), "", json.dumps({**good, "id": "mine"})]
    result = api.post("/v1/messages/bulk", content="\n".join(lines)).json()
    assert (result["accepted"], result["rejected"]) == (2, 2)
    assert [(one["line"], one["error"]["code"]) for one in result["results"]] == [(1, "not_json"), (2, "unusable")]
    again = api.post("/v1/messages/bulk", content=json.dumps({**good, "id": "mine"})).json()
    assert [one["status"] for one in again["results"]] == ["repeat"]
    subscriptions = [json.dumps({"id": f"b{at}", "keywords": ["bulky"]}) for at in range(3)] + [json.dumps({"kind": "ranked"})]
    result = api.post("/v1/subscriptions/bulk", content="\n".join(subscriptions)).json()
    assert (result["accepted"], result["rejected"]) == (3, 1)
    sent = post_message(api, "bulky")
    assert all(told(events_of(api, f"b{at}")) == [("match", sent["id"])] for at in range(3))


def test_the_same_request_twice_publishes_once(api: httpx.Client) -> None:
    subscribe(api, "once", keywords=["idempotent"])
    body = {"location": POINT, "keywords": ["idempotent"]}
    answers = [api.post("/v1/messages", json=body, headers={"idempotency-key": "k1"}).json() for _ in range(2)]
    assert answers[0]["id"] == answers[1]["id"]
    assert answers[1]["is_repeat"]
    lines = "\n".join([json.dumps(body)] * 3)
    bulk = [api.post("/v1/messages/bulk", content=lines, headers={"idempotency-key": "k2"}).json() for _ in range(2)]
    assert bulk[0]["cursor"] == bulk[1]["cursor"]
    assert len(events_of(api, "once").events) == 4
    refusal(api.post("/v1/messages", json=body, headers={"idempotency-key": "k2"}), 409)
    other = {**body, "keywords": ["idempotent", "other"]}
    refusal(api.post("/v1/messages", json=other, headers={"idempotency-key": "k1"}), 409)
    refusal(api.post("/v1/messages/bulk", content=lines + "\n" + lines, headers={"idempotency-key": "k2"}), 409)
    assert len(events_of(api, "once").events) == 4


def test_a_moving_subscriber_enters_and_leaves(api: httpx.Client) -> None:
    subscribe(api, "walker", kind="moving", keywords=["pie"], region={**AROUND, "coordinates": [0, 0]})
    here, brief = post_message(api, "pie"), post_message(api, "pie", lifetime=1.5)
    moved = api.post("/v1/locations", json={"subscription": "walker", "location": POINT})
    assert moved.json() == {"subscription": "walker", "status": "moved", "entered": 2}
    current = api.get("/v1/subscriptions/walker/current").json()
    assert {one["id"] for one in current["messages"]} == {here["id"], brief["id"]}
    assert api.get("/v1/subscriptions/walker").json()["region"]["coordinates"] == [13.4, 52.5]
    late = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    lines = [
        {"subscription": "walker", "location": {"type": "Point", "coordinates": [0, 0]}, "time": late},
        {"subscription": "nobody", "location": POINT},
    ]
    result = api.post("/v1/locations/bulk", content="\n".join(map(json.dumps, lines))).json()
    assert [one["status"] for one in result["results"]] == ["late", "error"]
    deadline = time.monotonic() + 20
    while len(events_of(api, "walker").events) < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    api.post("/v1/locations", json={"subscription": "walker", "region": {"type": "Box", "bbox": [0, 0, 1, 1]}})
    kinds = told(events_of(api, "walker"))
    assert sorted(kinds[:2]) == sorted([("entered", here["id"]), ("entered", brief["id"])])
    assert kinds[2:] == [("left", brief["id"]), ("left", here["id"])]


def test_the_inbox_of_an_ended_subscription_can_still_be_read_by_its_id(api: httpx.Client) -> None:
    subscribe(api, "parting", keywords=["farewell"])
    sent = post_message(api, "farewell")
    api.delete("/v1/subscriptions/parting")
    assert told(events_of(api, "parting")) == [("match", sent["id"]), ("subscription.ended", "")]
    refusal(api.get("/v1/inbox", params={"subscriptions": "never", "after": "0"}), 404)


def test_an_audience_counts_wherever_messages_are_looked_at(api: httpx.Client) -> None:
    subscribe(api, "outsider", keywords=["gala"], region=AROUND)
    subscribe(api, "desk", kind="ranked", keywords=["gala"], location=POINT, k=2)
    elsewhere = {"type": "Circle", "coordinates": [13.4, 52.7], "radius": 1000}
    closed, opened = post_message(api, "gala", audience=elsewhere), post_message(api, "gala")
    tops = api.get("/v1/subscriptions/desk/top").json()["entries"]
    assert [entry["message"]["id"] for entry in tops] == [opened["id"]]
    for id in ("outsider", "desk"):
        why = api.post("/v1/explain", json={"subscription": id, "message_id": closed["id"]}).json()
        assert not why["matched"]
        assert "audience" in why["reasons"][0]
    draft = {"subscription": {"keywords": ["gala"], "region": AROUND}}
    assert [one["id"] for one in api.post("/v1/dry-run", json=draft).json()["messages"]] == [opened["id"]]


def test_an_audience_keeps_out_who_is_elsewhere(api: httpx.Client) -> None:
    subscribe(api, "guest", kind="moving", keywords=["party"], region={**AROUND, "radius": 50_000})
    subscribe(api, "neighbour", keywords=["party"], region=AROUND)
    audience = {"type": "Circle", "coordinates": [13.4, 52.7], "radius": 1000}
    message = post_message(api, "party", audience=audience)
    assert told(events_of(api, "guest")) == []
    assert told(events_of(api, "neighbour")) == []
    api.post("/v1/locations", json={"subscription": "guest", "location": {"type": "Point", "coordinates": [13.4, 52.7]}})
    api.post("/v1/locations", json={"subscription": "guest", "location": POINT})
    assert told(events_of(api, "guest")) == [("entered", message["id"]), ("left", message["id"])]
    assert api.get("/v1/subscriptions/guest/current").json()["messages"] == []


def test_a_ranked_subscriber_has_the_best(api: httpx.Client) -> None:
    subscribe(api, "best", kind="ranked", keywords=["jazz"], location=POINT, k=2)
    ids = [post_message(api, "jazz", {"type": "Point", "coordinates": [x, 52.5]})["id"] for x in (40.0, 20.0, 14.0)]
    top = api.get("/v1/subscriptions/best/top").json()["entries"]
    assert [(one["rank"], one["message"]["id"]) for one in top] == [(1, ids[2]), (2, ids[1])]
    page = events_of(api, "best")
    assert told(page) == [
        ("topk.in", ids[0]), ("topk.in", ids[1]), ("topk.out", ids[0]), ("topk.in", ids[2])
    ]  # fmt: skip
    assert [event.data.rank for event in page.events] == [1, 1, None, 1]
    assert page.events[-1].data.score == top[0]["score"]


def test_an_inbox_is_read_in_pieces_and_acknowledged(api: httpx.Client) -> None:
    subscribe(api, "reader", keywords=["page"])
    ids = [post_message(api, "page")["id"] for _ in range(5)]
    first = events_of(api, "reader", limit=2)
    assert (told(first), first.has_more) == ([("match", id) for id in ids[:2]], True)
    rest = events_of(api, "reader", after=first.cursor)
    assert (told(rest), rest.has_more, rest.is_gap) == ([("match", id) for id in ids[2:]], False, False)
    own = {"subscriptions": "reader"}
    assert api.post("/v1/inbox/ack", params=own, json={"cursor": first.cursor}).json() == {"cursor": first.cursor}
    assert api.post("/v1/inbox/ack", params=own, json={"cursor": "0"}).json() == {"cursor": first.cursor}
    unread = api.get("/v1/inbox", params=own).json()
    assert [event["data"]["message"]["id"] for event in unread["events"]] == ids[2:]
    refusal(api.post("/v1/inbox/ack", json={"cursor": "999999999"}), 422)


def test_a_subscription_expires_and_says_so(api: httpx.Client) -> None:
    soon = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    subscribe(api, "brief", keywords=["brief"], expires=soon)
    deadline = time.monotonic() + 20
    while api.get("/v1/subscriptions/brief").status_code == 200 and time.monotonic() < deadline:
        time.sleep(0.1)
    events = api.get("/v1/inbox", params={"after": "0", "limit": 1000}).json()["events"]
    assert [event["data"].get("reason") for event in events if event["subject"] == "brief"] == ["expired"]


def test_explain_and_dry_run_tell_why_and_what_if(api: httpx.Client) -> None:
    subscribe(api, "why", interest="tea AND NOT coffee", region=AROUND, tags=["hot"])
    receipt = post_message(api, "tea", id="a-tea", tags=["hot"])
    kept = api.post("/v1/explain", json={"subscription": "why", "message_id": receipt["id"]}).json()
    assert kept["matched"]
    draft = {"location": POINT, "keywords": ["tea"]}
    without = api.post("/v1/explain", json={"subscription": "why", "message": draft}).json()
    assert not without["matched"]
    assert "tag 'hot'" in " ".join(without["reasons"])
    tried = api.post("/v1/dry-run", json={"subscription": {"keywords": ["tea"]}, "messages": 10_000}).json()
    assert tried["hits"] == 1
    assert tried["messages"][0]["id"] == "a-tea"
    for id in ("nothing", "m-ffffffffffffffffffffffff"):
        refusal(api.post("/v1/explain", json={"subscription": "why", "message_id": id}), 404)


def test_figures_and_documents_are_served(api: httpx.Client) -> None:
    assert api.get("/v1/stats").json()["engines"]["boolean"]["index"] == "frequency_grid"
    document = api.get("/v1/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert "/v1/messages/bulk" in document["paths"]
    assert "nearcast_messages_total" in api.get("/metrics").text
    assert api.get("/health").json()["status"] == api.get("/ready").json()["status"] == "ok"
    assert api.get("/v1/stats").headers["x-content-type-options"] == "nosniff"


def test_what_is_far_too_long_or_too_deep_is_no_mistake_of_the_server(api: httpx.Client) -> None:
    refusal(api.get("/assets/" + "a" * 300), 404)
    for path in ("/v1/messages", "/v1/subscriptions", "/v1/explain", "/v1/inbox/ack"):
        refusal(api.post(path, content=b'{"payload":' + b"[" * 90_000, headers={"content-type": "application/json"}), 422)


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"keywords": ["a"], "interest": "a"}, None),
        ({"interest": "a AND ("}, None),
        ({"keywords": ["a"], "region": {"type": "Box", "bbox": [1, 0, 0, 1]}}, None),
        ({"keywords": ["a"], "region": {"type": "Circle", "coordinates": [200, 0], "radius": 1}}, None),
        ({"keywords": ["a"], "region": {"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [0, 1], [1, 0], [0, 0]]]}}, None),
        ({"keywords": ["a"], "region": {"type": "Line"}}, "$.region.type"),
        ({"keywords": ["a"], "k": 3}, "k"),
        ({"kind": "ranked", "keywords": ["a"]}, None),
        ({"kind": "ranked", "keywords": ["a"], "location": POINT, "tags": ["t"]}, "tags"),
        ({"keywords": ["\ue000other"]}, None),
        ({"keywords": ["a"], "expires": "2001-01-01T00:00:00Z"}, "expires"),
        ({"keywords": ["a"], "expires": "2101-01-01T00:00:00"}, "expires"),
        ({"keywords": ["a"], "expires": "9999-12-31T23:59:59-12:00"}, "expires"),
        ({"keywords": ["a"], "metadata": json.loads('{"a":' * 64 + "1" + "}" * 64)}, None),
        ({"keywords": ["a"], "region": {"type": "Polygon", "coordinates": [[[0, 0]] * 2001]}}, None),
        ({"keywords": ["a"], "colour": "red"}, "$"),
        ({"id": "a b"}, "$.id"),
    ],
)
def test_a_bad_subscription_is_refused_with_the_reason(api: httpx.Client, given: dict[str, Any], where: str | None) -> None:
    error = refusal(api.post("/v1/subscriptions", json=given), 422).error
    assert error.code == "unusable"
    assert len(error.message) > 10
    assert where is None or error.where == where


@pytest.mark.parametrize(
    "change",
    [
        {"location": {"type": "Point", "coordinates": [0, 91]}},
        {"location": None},
        {"keywords": [""]},
        {"keywords": ["\ue001tag"]},
        {"keywords": ["ﷺ" * 100]},
        {"expires": "2001-01-01T00:00:00Z"},
        {"lifetime": 1, "expires": "2101-01-01T00:00:00Z"},
        {"lifetime": 31_000_000},
        {"time": "2001-01-01T00:00:00"},
        {"time": "0001-01-01T00:00:00+14:00"},
        {"payload": json.loads("[" * 200 + "]" * 200)},
        {"id": "m-1"},
        {"text": " ".join(f"w{at}" for at in range(5000))},
        {"audience": {"type": "Box", "bbox": [0, 0, -1, 0]}},
    ],
)
def test_a_bad_message_is_refused_with_the_reason(api: httpx.Client, change: dict[str, Any]) -> None:
    error = refusal(api.post("/v1/messages", json={"location": POINT, "keywords": ["a"], **change}), 422).error
    assert error.code == "unusable"


def test_other_errors_have_the_same_shape(api: httpx.Client) -> None:
    assert refusal(api.get("/v1/nothing"), 404).error.code == "not_found"
    assert refusal(api.delete("/v1/messages"), 405).error.code == "method_not_allowed"
    refusal(api.post("/v1/messages", content=b'{"location"'), 400)
    assert refusal(api.post("/v1/messages/bulk", content=b"x" * 300_000), 413).error.code == "too_large"
    refusal(api.get("/v1/inbox", params={"limit": "0"}), 422)
    refusal(api.get("/v1/inbox", params={"after": "x"}), 422)
    refusal(api.get("/v1/subscriptions/best/current"), 404 if api.get("/v1/subscriptions/best").is_error else 422)
    refusal(api.get("/v1/inbox", params={"subscriptions": "nobody"}), 404)


def test_nulls_are_as_good_as_nothing(api: httpx.Client) -> None:
    subscribe(api, "nulls", keywords=["null-safe"])
    nothing = {"id": None, "time": None, "payload": None}
    body = json.dumps({"location": POINT, "keywords": ["null-safe"], **nothing})
    receipt = api.post("/v1/messages", content=body).json()
    assert api.post("/v1/messages/bulk", content=body).json()["accepted"] == 1
    page = events_of(api, "nulls")
    assert page.events[0].data.message is not None
    assert page.events[0].data.message.id == receipt["id"]
    assert len(page.events) == 2
