"""Subscriptions that change in a topic: before each batch of messages, all changes in the topic are applied to the index.

The messages of a batch are fixed before it starts. So every change that was in the topic before a message is in the index that
matches the message. The position in the topic is part of the version: each change is applied once, whatever fails.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nearcast.errors import StoredFormatError
from nearcast.pipeline.index.deltas import pack_deltas, publish_changes
from nearcast.pipeline.index.step import SUBSCRIPTION_SCHEMA, publish_empty_index
from nearcast.pipeline.index.version import IndexVersion, current_index, current_number
from nearcast.pipeline.io.topic_frames import TOPIC
from nearcast.pipeline.settings import PipelineSettings
from nearcast.topics.records import ENDED, PUT, read_record
from nearcast.topics.topic import Topic, open_topic, read_address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_AT_ONCE = 100_000
_TRIES = 5


def has_change_topic(settings: PipelineSettings) -> bool:
    return settings.changes_format == TOPIC and bool(settings.changes)


def ensure_index(settings: PipelineSettings) -> None:
    """Publish an empty index if there is none."""
    if has_change_topic(settings) and current_number(settings.store) is None:
        publish_empty_index(settings)


def apply_topic_changes(session: SparkSession, settings: PipelineSettings) -> IndexVersion:
    """Apply every change that is in the topic now; returns the resulting version."""
    topic = _topic(settings.changes, settings.stream)
    for _ in range(_TRIES - 1):
        try:
            return _apply(session, settings, topic)
        except StoredFormatError:
            # Another process published a version meanwhile: start from that one.
            continue
    return _apply(session, settings, topic)


@lru_cache(4)
def _topic(address: str, stream: str) -> Topic:
    """One per stream and process: connecting to a broker takes longer than reading from it."""
    return open_topic(read_address(address))


def _apply(session: SparkSession, settings: PipelineSettings, topic: Topic) -> IndexVersion:
    version = current_index(settings.store)
    while True:
        page = topic.read(version.taken, _AT_ONCE)
        if not page.values:
            return version
        version = publish_changes(change_table(page.values, version.id_type), settings, page.position)
        if len(version.deltas) >= settings.max_deltas:
            version = pack_deltas(session, settings)


def change_table(values: Iterable[bytes], id_type: str) -> pa.Table:
    """The last change of each subscription. Other records are skipped."""
    rows: dict[str, dict[str, Any]] = {}
    for value in values:
        event = read_record(value)
        id = event.data.get("id")
        if event.type not in (PUT, ENDED) or not _is_id(id, id_type):
            continue
        row: dict[str, Any] = {"id": str(id), "change": 1 if event.type == PUT else -1}
        if event.type == PUT:
            row |= {field.name: _convert(event.data.get(field.name), field.type) for field in [*SUBSCRIPTION_SCHEMA][1:]}
        rows.pop(row["id"], None)
        rows[row["id"]] = row
    schema = SUBSCRIPTION_SCHEMA.append(pa.field("change", pa.int8()))
    table = pa.Table.from_pylist([*rows.values()], schema=schema)
    return table.set_column(0, "id", table["id"].cast(pa.int64())) if id_type == "long" else table


def _is_id(id: object, id_type: str) -> bool:
    if isinstance(id, bool) or not isinstance(id, (str, int)):
        return False
    return id_type == "string" or (str(id).removeprefix("-").isdecimal() and abs(int(id)) < 2**63)


def _convert(value: Any, kind: pa.DataType) -> Any:
    """The value in the type of its column. A value that does not fit becomes one that the validation of the row rejects."""
    if value is None:
        return None
    if pa.types.is_list(kind):
        is_words = isinstance(value, list) and all(isinstance(word, str) for word in value)
        return value if is_words else [""]
    if pa.types.is_floating(kind):
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return float(value) if is_number else math.nan
    # A region may be an object, or the text of one.
    return value if isinstance(value, str) else json.dumps(value)
