"""Requests of a workload, encoded before the clock starts, and the connection that posts them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
import pyarrow as pa

from nearcast.errors import NearcastError
from nearcast.wire.api import BoxShape, MessageIn, PointShape, SubscriptionIn
from nearcast.workloads.base import Workload

_encode_lines = msgspec.json.Encoder().encode_lines
_encode = msgspec.json.Encoder().encode


def messages_of(source: Workload, n: int, seed: int, extra: tuple[str, ...] = ()) -> list[MessageIn]:
    """Messages as bodies of the API; each also gets the `extra` keywords."""
    table = source.with_words(source.messages(n, seed))
    columns = (table[name].to_pylist() for name in ("keywords", "x", "y"))
    return [MessageIn(PointShape([x, y]), keywords=[*words, *extra]) for words, x, y in zip(*columns, strict=True)]


def subscription_bodies(source: Workload, n: int, seed: int, size: int = 5000) -> Iterator[tuple[int, bytes]]:
    """NDJSON bodies of up to `size` subscriptions, each with its number of rows."""
    table: pa.Table = source.with_words(source.subscriptions(n, seed))
    for first in range(0, n, size):
        rows = table.slice(first, size).to_pylist()
        yield len(rows), _encode_lines([_subscription(row) for row in rows])


def _subscription(row: dict[str, Any]) -> SubscriptionIn:
    region = BoxShape([row[bound] for bound in ("x0", "y0", "x1", "y1")])
    return SubscriptionIn(id=f"load-{row['id']}", keywords=row["keywords"], region=region)


def bulk_bodies(messages: list[MessageIn], size: int) -> tuple[list[bytes], list[int]]:
    """NDJSON bodies of up to `size` messages, and the number of messages in each."""
    chunks = [messages[first : first + size] for first in range(0, len(messages), size)]
    return [_encode_lines(chunk) for chunk in chunks], [len(chunk) for chunk in chunks]


def single_bodies(messages: list[MessageIn]) -> list[bytes]:
    return [_encode(message) for message in messages]


class Target(NamedTuple):
    """The server that requests go to."""

    host: str
    port: int
    key: str | None

    @staticmethod
    def of(url: str, key: str | None) -> Target:
        parts = urlsplit(url)
        if parts.scheme != "http" or parts.hostname is None:
            raise NearcastError(f"the load generator speaks plain http; {url!r} was given, expected http://host:port")
        return Target(parts.hostname, parts.port or 80, key)

    @property
    def common_headers(self) -> str:
        key = "" if self.key is None else f"authorization: Bearer {self.key}\r\n"
        return f"host: {self.host}:{self.port}\r\n{key}"

    def request(self, path: str, body: bytes, content_type: str) -> bytes:
        head = (
            f"POST {path} HTTP/1.1\r\n{self.common_headers}content-type: {content_type}\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


class HttpAnswer(NamedTuple):
    """The status and the body of a response; `retry_after_s` is 1 if the server does not say."""

    status: int
    retry_after_s: float
    body: bytes


class Connection:
    """Posts prepared requests, one at a time: HTTP/1.1 with keep-alive, nothing else."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @staticmethod
    async def open(target: Target) -> Connection:
        return Connection(*await asyncio.open_connection(target.host, target.port, limit=2**22))

    async def post(self, request: bytes) -> HttpAnswer:
        self._writer.write(request)
        await self._writer.drain()
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        status = int(head[9:12])
        length = _field(head, b"content-length")
        body = await self._reader.readexactly(int(length)) if length else b""
        return HttpAnswer(status, float(_field(head, b"retry-after") or 1), body)

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


def _field(head: bytes, name: bytes) -> bytes:
    at = head.find(b"\r\n" + name + b":")
    return b"" if at < 0 else head[at + len(name) + 3 : head.index(b"\r\n", at + 2)].strip()
