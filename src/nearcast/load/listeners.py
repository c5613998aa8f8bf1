"""Many live connections that count their events: WebSocket frames are parsed, the events in them are only counted."""

from __future__ import annotations

import asyncio
import base64
import os
import time
from dataclasses import dataclass, field

from nearcast.errors import NearcastError
from nearcast.load.requests import Target
from nearcast.service.open_files import allow_many_files

# Every event contains it exactly once; the text of a message can contain it only escaped.
_MARK = b'"specversion":"1.0"'
_TEXT, _CLOSE, _PING, _PONG = 0x1, 0x8, 0x9, 0xA


@dataclass(slots=True)
class Tally:
    """The counts of all listeners together."""

    n_events: int = 0
    n_frames: int = 0
    n_bytes: int = 0
    n_open: int = 0
    closed: list[str] = field(default_factory=list)
    first_s: float = 0.0
    last_s: float = 0.0
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    due: int = 0

    def add(self, n_events: int) -> None:
        if n_events:
            self.last_s = time.perf_counter()
            self.first_s = self.first_s or self.last_s
            self.n_events += n_events
            if self.n_events >= self.due:
                self.reached.set()


class Listener(asyncio.Protocol):
    """One live connection; counts into a shared tally."""

    def __init__(self, target: Target, path: str, tally: Tally) -> None:
        self._request = (
            f"GET {path} HTTP/1.1\r\n{target.common_headers}upgrade: websocket\r\nconnection: Upgrade\r\n"
            f"sec-websocket-version: 13\r\nsec-websocket-key: {base64.b64encode(os.urandom(16)).decode()}\r\n\r\n"
        ).encode()
        self._tally = tally
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._is_upgraded = False
        self.is_open: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Completed by the first frame of the server."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._is_upgraded:
            head, separator, _ = self._buffer.partition(b"\r\n\r\n")
            if not separator or self.is_open.done():
                return
            if not head.startswith(b"HTTP/1.1 101"):
                self.is_open.set_exception(NearcastError(f"no live stream: {bytes(head[:60])!r}"))
                return
            del self._buffer[: len(head) + 4]
            self._is_upgraded = True
        self._read_frames()

    def _read_frames(self) -> None:
        buffer, at = self._buffer, 0
        while len(buffer) - at >= 2:
            length, start = buffer[at + 1] & 0x7F, at + 2
            if length >= 126:
                size = 2 if length == 126 else 8
                if len(buffer) - start < size:
                    break
                length, start = int.from_bytes(buffer[start : start + size], "big"), start + size
            if len(buffer) - start < length:
                break
            self._read_frame(buffer[at] & 0x0F, start, start + length)
            at = start + length
        if at:
            del buffer[:at]

    def _read_frame(self, opcode: int, start: int, end: int) -> None:
        if opcode == _TEXT:
            if not self.is_open.done():
                # The first frame: everything published from now on is in the stream.
                self.is_open.set_result(None)
                self._tally.n_open += 1
            self._tally.n_frames += 1
            self._tally.n_bytes += end - start
            self._tally.add(self._buffer.count(_MARK, start, end))
        elif opcode == _PING and self._transport is not None:
            # A client must mask what it sends; a mask of zeros leaves it unchanged.
            self._transport.write(bytes([0x80 | _PONG, 0x80 | (end - start)]) + bytes(4) + bytes(self._buffer[start:end]))
        elif opcode == _CLOSE:
            self._tally.closed.append(bytes(self._buffer[start + 2 : end]).decode(errors="replace"))

    def connection_lost(self, error: Exception | None) -> None:
        if not self.is_open.done():
            self.is_open.set_exception(NearcastError("the server closed the connection before the live stream began"))
        elif self.is_open.exception() is None:
            self._tally.n_open -= 1

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


async def open_listeners(target: Target, paths: list[str], tally: Tally, at_once: int = 50) -> list[Listener]:
    """One connection for each path, `at_once` at a time. Returns when all streams have begun."""
    allow_many_files()
    loop, semaphore = asyncio.get_running_loop(), asyncio.Semaphore(at_once)

    async def open_one(path: str) -> Listener:
        async with semaphore:
            _, listener = await loop.create_connection(lambda: Listener(target, path, tally), target.host, target.port)
            await listener.is_open
            return listener

    return await asyncio.gather(*(open_one(path) for path in paths))
