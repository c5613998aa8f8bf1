"""Requests of a workload, encoded before the clock starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa

from nearcast.wire.api import BoxShape, MessageIn, PointShape, SubscriptionIn
from nearcast.workloads.base import Workload

_encode_lines = msgspec.json.Encoder().encode_lines
_encode = msgspec.json.Encoder().encode


def messages_of(source: Workload, n: int, seed: int, extra: tuple[str, ...] = ()) -> list[MessageIn]:
    """Messages as the wire wants them; `extra` keywords are added to each."""
    table = source.with_words(source.messages(n, seed))
    columns = (table[name].to_pylist() for name in ("keywords", "x", "y"))
    return [MessageIn(PointShape([x, y]), keywords=[*words, *extra]) for words, x, y in zip(*columns, strict=True)]


def subscription_pieces(source: Workload, n: int, seed: int, size: int = 5000) -> Iterator[tuple[int, bytes]]:
    """NDJSON of subscriptions, so many at a time, with how many each holds."""
    table: pa.Table = source.with_words(source.subscriptions(n, seed))
    for first in range(0, n, size):
        rows = table.slice(first, size).to_pylist()
        yield len(rows), _encode_lines([_subscription(row) for row in rows])


def _subscription(row: dict[str, Any]) -> SubscriptionIn:
    region = BoxShape([row[side] for side in ("x0", "y0", "x1", "y1")])
    return SubscriptionIn(id=f"load-{row['id']}", keywords=row["keywords"], region=region)


def bulk_bodies(messages: list[MessageIn], size: int) -> tuple[list[bytes], list[int]]:
    """NDJSON of so many messages at a time, and how many each holds."""
    pieces = [messages[first : first + size] for first in range(0, len(messages), size)]
    return [_encode_lines(piece) for piece in pieces], [len(piece) for piece in pieces]


def single_bodies(messages: list[MessageIn]) -> list[bytes]:
    return [_encode(message) for message in messages]
