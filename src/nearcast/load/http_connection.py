"""One connection that posts prepared requests and reads the answers: HTTP/1.1 with keep-alive, nothing else."""

from __future__ import annotations

import asyncio
from typing import NamedTuple
from urllib.parse import urlsplit

from nearcast.errors import NearcastError


class Target(NamedTuple):
    """Where requests go, taken apart once."""

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
    def common(self) -> str:
        key = "" if self.key is None else f"authorization: Bearer {self.key}\r\n"
        return f"host: {self.host}:{self.port}\r\n{key}"

    def request(self, path: str, body: bytes, content_type: str) -> bytes:
        head = f"POST {path} HTTP/1.1\r\n{self.common}content-type: {content_type}\r\ncontent-length: {len(body)}\r\n\r\n"
        return head.encode() + body


class Answered(NamedTuple):
    status: int
    retry_after_s: float
    body: bytes


class Connection:
    """Sends one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @staticmethod
    async def open(target: Target) -> Connection:
        return Connection(*await asyncio.open_connection(target.host, target.port, limit=2**22))

    async def post(self, request: bytes) -> Answered:
        self._writer.write(request)
        await self._writer.drain()
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        status = int(head[9:12])
        length = _field(head, b"content-length")
        body = await self._reader.readexactly(int(length)) if length else b""
        return Answered(status, float(_field(head, b"retry-after") or 1), body)

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


def _field(head: bytes, name: bytes) -> bytes:
    at = head.find(b"\r\n" + name + b":")
    return b"" if at < 0 else head[at + len(name) + 3 : head.index(b"\r\n", at + 2)].strip()
