"""Records of topics: CloudEvents 1.0 in JSON, one line each; `data` is a row of the tables that engines read.

The key of a record is what must stay in order: changes of one subscription, deliveries to one subscription.
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


class Received(NamedTuple):
    """What a record says; `data` is empty if it says nothing."""

    type: str
    data: dict[str, Any]


def record_of(type: str, id: str, source: str, subject: str, data: Mapping[str, Any]) -> Record:
    """A record whose id tells repeats from others of the same source."""
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
    """A subscription that is new or replaced: id, keywords or interest, region or x0, y0, x1, y1. `change` names the change."""
    return record_of(PUT, f"{row['id']}-{change}", source, str(row["id"]), row)


def move_record(source: str, move: str, row: Mapping[str, Any]) -> Record:
    """Where a subscriber is: id, region or x0, y0, x1, y1, time. `move` names the move."""
    return record_of(MOVE, f"{row['id']}-{move}", source, str(row["id"]), row)


def ended_record(source: str, change: str, id: str) -> Record:
    return record_of(ENDED, f"{id}-{change}", source, id, {"id": id})


def read_record(value: bytes) -> Received:
    """What is in a record; one that is no such record has no type and no data."""
    try:
        event = json.loads(value)
    except (ValueError, RecursionError):
        return Received("", {})
    data = event.get("data") if isinstance(event, dict) else None
    if not isinstance(data, dict) or not isinstance(event.get("type"), str):
        return Received("", {})
    return Received(event["type"], data)


def in_groups(records: Iterable[Record], most_bytes: int) -> Iterable[list[Record]]:
    """The records in groups of about so many bytes, in order."""
    some: list[Record] = []
    n_bytes = 0
    for record in records:
        some.append(record)
        n_bytes += len(record.value)
        if n_bytes >= most_bytes:
            yield some
            some, n_bytes = [], 0
    if some:
        yield some
