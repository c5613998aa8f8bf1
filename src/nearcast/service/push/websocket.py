"""Frames over WebSocket: `{"cursor": "...", "events": [...]}` out, `{"ack": "..."}` in."""

from __future__ import annotations

import asyncio
import contextlib
import math
from typing import Any

import msgspec
from litestar import WebSocket
from litestar.exceptions import WebSocketDisconnect

from nearcast.service.broker import Broker, Inbox
from nearcast.service.caller import Caller
from nearcast.service.metrics import Metrics
from nearcast.service.problems import Problem
from nearcast.service.push.live_request import LiveRequest, LiveStreams
from nearcast.service.push.stream_reader import Frame, Reader
from nearcast.wire.api import LiveAck

# A client that takes nothing for so long is let go; it finds everything in its inbox when it comes back.
_PATIENCE_S = 30.0
# Close codes of our own are 4000 + the HTTP status; the others are of RFC 6455.
_OWN_CODES = 4000
_GOING_AWAY = 1001
# RFC 6455 allows 123 bytes.
_MAX_REASON_BYTES = 123

# The subprotocol browsers name before the key.
PROTOCOL = "nearcast"

Socket = WebSocket[Any, Any, Any]


_ACK = msgspec.json.Decoder(LiveAck)


async def serve_websocket(socket: Socket, streams: LiveStreams, caller: Caller, request: LiveRequest) -> None:
    """Until either side ends it. Problems are told by the close code (4000 + status) and its reason."""
    await _accept(socket)
    try:
        async with streams.open(caller, request) as (reader, inbox):
            await _converse(socket, reader, streams.broker, inbox)
    except Problem as problem:
        await _close(socket, _OWN_CODES + problem.status, str(problem))


async def refuse(socket: Socket, problem: Problem) -> None:
    """Tell why there will be no stream. Accepted first: a browser shows the reason only of a socket that was open."""
    await _accept(socket)
    await _close(socket, _OWN_CODES + problem.status, str(problem))


async def _accept(socket: Socket) -> None:
    """The subprotocol is answered only to those who asked for it."""
    asked = socket.headers.get("sec-websocket-protocol", "").partition(",")[0].strip()
    await socket.accept(subprotocols=PROTOCOL if asked == PROTOCOL else None)


class _Sender:
    """Sends frames, and tells since when the client has not taken the last one."""

    def __init__(self, socket: Socket, reader: Reader, metrics: Metrics) -> None:
        self._socket, self._reader, self._metrics = socket, reader, metrics
        self._since = math.inf

    @property
    def is_stuck(self) -> bool:
        return asyncio.get_running_loop().time() > self._since + _PATIENCE_S

    async def run(self) -> None:
        clock = asyncio.get_running_loop().time
        async with contextlib.aclosing(self._reader.frames()) as frames:
            async for frame in frames:
                self._since = clock()
                await self._socket.send({"type": "websocket.send", "text": as_text(frame), "bytes": None})
                self._since = math.inf
                self._metrics.count_frame(len(frame.events))
        await _close(self._socket, _GOING_AWAY, "the server stops; come back with the last cursor")


async def _converse(socket: Socket, reader: Reader, broker: Broker, inbox: Inbox) -> None:
    """Send and listen at once: only who listens notices that the client has gone."""
    sender = _Sender(socket, reader, broker.metrics)
    tasks = [asyncio.create_task(sender.run()), asyncio.create_task(_listen(socket, broker, inbox))]
    try:
        # No word to a client that is stuck: it would wait behind what the client does not take.
        while not (done := (await asyncio.wait(tasks, timeout=_PATIENCE_S, return_when=asyncio.FIRST_COMPLETED))[0]):
            if sender.is_stuck:
                return
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, WebSocketDisconnect):
            raise error


async def _listen(socket: Socket, broker: Broker, inbox: Inbox) -> None:
    while True:
        given = await socket.receive_data(mode="text")
        try:
            cursor = int(_ACK.decode(given).ack)
        except msgspec.MsgspecError as error:
            shown = str(given)[:40]
            raise Problem(422, "unusable", f'{shown!r} was sent; expected {{"ack": "<cursor>"}} ({error})') from None
        await broker.acknowledge(inbox, "default", cursor)


def as_text(frame: Frame) -> str:
    """The events are JSON already; they are only put in a row."""
    return f'{{"cursor":"{frame.cursor}","events":[{b",".join(frame.events).decode()}]}}'


async def _close(socket: Socket, code: int, reason: str) -> None:
    # Gone already is as good as closed.
    with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):
        shown = reason.encode()[:_MAX_REASON_BYTES].decode(errors="ignore")
        await socket.close(code, shown)
