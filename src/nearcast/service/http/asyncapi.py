"""The AsyncAPI 3.0 document of what the server pushes: WebSocket, server-sent events, webhooks."""

from __future__ import annotations

from typing import Any

import msgspec

from nearcast.service.push.live_request import FROM_ACK, FROM_NOW
from nearcast.service.webhooks.worker import CONTENT_TYPE
from nearcast.wire.api import Event, LiveAck, LiveFrame
from nearcast.wire.signatures import ID_HEADER, SIGNATURE_HEADER, TIME_HEADER

WEBSOCKET_PATH = "/v1/live"
EVENTS_PATH = "/v1/live/events"
DOCUMENT_PATH = "/v1/asyncapi.json"


_QUERY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "after": {
            "type": "string",
            "default": FROM_NOW,
            "description": f"Begin after this cursor; {FROM_NOW!r}, or {FROM_ACK!r} for the one acknowledged last.",
        },
        "subscriptions": {"type": "string", "description": "Ids separated by commas; absent: all of the subscriber's."},
        "subscriber": {"type": "string", "description": "Whose inbox; absent: that of the key."},
    },
}
_SIGNED: dict[str, Any] = {
    "type": "object",
    "required": [ID_HEADER, TIME_HEADER, SIGNATURE_HEADER],
    "properties": {
        ID_HEADER: {"type": "string", "description": "Names the request; the same at every retry."},
        TIME_HEADER: {"type": "string", "description": "Seconds since 1970."},
        SIGNATURE_HEADER: {
            "type": "string",
            "description": "v1,<base64 of HMAC-SHA256 of id.timestamp.body>, for each secret.",
        },
    },
}


def asyncapi_document(version: str) -> dict[str, Any]:
    """The document as JSON; its schemas are those of the structs that are sent."""
    _, schemas = msgspec.json.schema_components([LiveFrame, LiveAck, Event], ref_template="#/components/schemas/{name}")
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "nearcast live",
            "version": version,
            "description": "What a nearcast server pushes. The same events are in the inbox (see the OpenAPI document).",
        },
        "defaultContentType": "application/json",
        "channels": {
            "live": {
                "address": WEBSOCKET_PATH,
                "description": "WebSocket. Close codes from 4400 on are 4000 + the HTTP status of a refusal.",
                "messages": {"frame": _to("messages/frame"), "ack": _to("messages/ack")},
                "bindings": {"ws": {"method": "GET", "query": _QUERY}},
            },
            "events": {
                "address": EVENTS_PATH,
                "description": "Server-sent events; `id` is a cursor, resume with the header Last-Event-ID.",
                "messages": {"event": _to("messages/event")},
            },
            "webhook": {
                "address": None,
                "description": "The URL of a webhook: a batch of CloudEvents, signed after Standard Webhooks.",
                "messages": {"batch": _to("messages/batch")},
            },
        },
        "operations": {
            "sendFrames": _operation("send", "live", "frame"),
            "receiveAcks": _operation("receive", "live", "ack"),
            "sendEvents": _operation("send", "events", "event"),
            "postBatches": _operation("send", "webhook", "batch"),
        },
        "components": {
            "messages": {
                "frame": {"payload": _to("schemas/LiveFrame")},
                "ack": {"payload": _to("schemas/LiveAck")},
                "event": {"payload": _to("schemas/Event")},
                "batch": {
                    "contentType": CONTENT_TYPE,
                    "headers": _SIGNED,
                    "payload": {"type": "array", "items": _to("schemas/Event")},
                },
            },
            "schemas": schemas,
        },
    }


def _to(path: str) -> dict[str, str]:
    return {"$ref": f"#/components/{path}"}


def _operation(action: str, channel: str, message: str) -> dict[str, Any]:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel}"},
        "messages": [{"$ref": f"#/channels/{channel}/messages/{message}"}],
    }
