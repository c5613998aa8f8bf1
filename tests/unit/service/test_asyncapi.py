"""The AsyncAPI document: every reference leads somewhere, every type of event is there, addresses are those of the server."""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator
from typing import Any

from nearcast.service.http.asyncapi import EVENTS_PATH, WEBSOCKET_PATH, asyncapi_document
from nearcast.wire.api import EventType


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for value in part.values():
            yield from references(value)
    elif isinstance(part, list):
        for value in part:
            yield from references(value)


def test_every_reference_leads_somewhere() -> None:
    document = json.loads(json.dumps(asyncapi_document("1")))
    found = set(references(document))
    assert len(found) > 10
    for reference in found:
        part: Any = document
        for name in reference.removeprefix("#/").split("/"):
            part = part[name]
        assert part


def test_the_document_names_what_is_sent_and_where() -> None:
    document = asyncapi_document("1")
    assert document["asyncapi"] == "3.0.0"
    assert {channel["address"] for channel in document["channels"].values()} == {WEBSOCKET_PATH, EVENTS_PATH, None}
    schemas = document["components"]["schemas"]
    assert set(schemas["Event"]["properties"]["type"]["enum"]) == set(typing.get_args(EventType))
    assert set(schemas["LiveFrame"]["required"]) == {"cursor", "events"}
    assert {operation["action"] for operation in document["operations"].values()} == {"send", "receive"}
