"""Records of topics: CloudEvents 1.0 in JSON, one line each; `data` is a row of the tables that engines read.

Records with the same key stay in order: the key of a change or a delivery is its subscription.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

MESSAGE = "io.nearcast.message"
PUT = "io.nearcast.subscription.put"
ENDED = "io.nearcast.subscription.ended"
MATCH = "io.nearcast.match"
MOVE = "io.nearcast.move"
CHANGE = "io.nearcast.change"


class Record(NamedTuple):
    """`value` is JSON without a line break."""

    key: str
    value: bytes


class TopicEvent(NamedTuple):
    """The type and the data of a record; both empty if it is not a CloudEvent with data."""

    type: str
    data: dict[str, Any]


def record_of(type: str, id: str, source: str, subject: str, data: Mapping[str, Any]) -> Record:
    """A record. Repeats of it have the same id; other records of the source have another."""
    event = {
        "specversion": "1.0",
        "id": id,
        "source": source,
        "type": type,
        "subject": subject,
        "datacontenttype": "application/json",
        "data": data,
    }
    return Record(subject, json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode())


def message_record(source: str, row: Mapping[str, Any]) -> Record:
    """A message: id, keywords or text, x and y or x0, y0, x1, y1."""
    return record_of(MESSAGE, str(row["id"]), source, str(row["id"]), row)


def put_record(source: str, change: str, row: Mapping[str, Any]) -> Record:
    """A new or replaced subscription: id, keywords or interest, region or x0, y0, x1, y1. `change` identifies the change."""
    return record_of(PUT, f"{row['id']}-{change}", source, str(row["id"]), row)


def move_record(source: str, move: str, row: Mapping[str, Any]) -> Record:
    """The region of a moving subscription: id, region or x0, y0, x1, y1, time. `move` identifies the move."""
    return record_of(MOVE, f"{row['id']}-{move}", source, str(row["id"]), row)


def ended_record(source: str, change: str, id: str) -> Record:
    return record_of(ENDED, f"{id}-{change}", source, id, {"id": id})


def read_record(value: bytes) -> TopicEvent:
    """The type and the data of a record; both empty if it is not a CloudEvent with data."""
    try:
        event = json.loads(value)
    except (ValueError, RecursionError):
        return TopicEvent("", {})
    data = event.get("data") if isinstance(event, dict) else None
    if not isinstance(data, dict) or not isinstance(event.get("type"), str):
        return TopicEvent("", {})
    return TopicEvent(event["type"], data)


def in_groups(records: Iterable[Record], group_bytes: int) -> Iterable[list[Record]]:
    """The records in order, in groups of about `group_bytes`."""
    group: list[Record] = []
    n_bytes = 0
    for record in records:
        group.append(record)
        n_bytes += len(record.value)
        if n_bytes >= group_bytes:
            yield group
            group, n_bytes = [], 0
    if group:
        yield group
