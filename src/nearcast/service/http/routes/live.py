"""`/v1/live`: events as they happen, over WebSocket or as server-sent events; and the document that describes them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from litestar import Response, WebSocket, get, websocket
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import HeaderParameter, Parameter, QueryParameter
from litestar.response import Stream

import nearcast
from nearcast.service.auth.guards import ANYONE, SUBSCRIBER, admit, caller_of
from nearcast.service.caller import Caller
from nearcast.service.http.asyncapi import asyncapi_document
from nearcast.service.http.error_responses import DOCUMENTED, AnyRequest
from nearcast.service.problems import Problem
from nearcast.service.push.live_request import LiveRequest, LiveStreams
from nearcast.service.push.sse import event_stream
from nearcast.service.push.websocket import PROTOCOL, refuse, serve_websocket
from nearcast.wire.api import Name

_OPT = {"roles": SUBSCRIBER}
_STREAM = {200: ResponseSpec(None, media_type="text/event-stream", description="A CloudEvent in each `data`; `id` is a cursor")}
# Proxies must hand on every piece as it comes.
_HEADERS = {"X-Accel-Buffering": "no"}
Ids = Annotated[str | None, QueryParameter(name="subscriptions", max_length=20_000, description="Ids, separated by commas")]
After = Annotated[str | None, Parameter(max_length=20, description="A cursor, 'now' (the default) or 'ack'")]
LastId = Annotated[str | None, HeaderParameter(name="Last-Event-ID", max_length=20, description="Goes before `after`")]


@websocket("/live", opt=_OPT)
async def live_socket(socket: WebSocket[Any, Any, Any]) -> None:
    """Frames of events; see the AsyncAPI document. Browsers hand the key over as the second subprotocol, after `nearcast`."""
    try:
        caller = await _admit(socket)
    except Problem as problem:
        await refuse(socket, problem)
        return
    given = {name: socket.query_params.get(name) for name in ("after", "subscriptions", "subscriber")}
    await serve_websocket(socket, _streams(socket), caller, LiveRequest(**given))


async def _admit(socket: WebSocket[Any, Any, Any]) -> Caller:
    protocol, _, key = socket.headers.get("sec-websocket-protocol", "").partition(",")
    authorization = f"Bearer {key.strip()}" if protocol.strip() == PROTOCOL and key else socket.headers.get("authorization")
    return await admit(socket, SUBSCRIBER, authorization)


@get("/live/events", opt=_OPT, responses=DOCUMENTED | _STREAM, summary="Events as they happen (server-sent events)")
async def live_events(
    request: AnyRequest,
    after: After = None,
    ids: Ids = None,
    subscriber: Name | None = None,
    last_id: LastId = None,
) -> Stream:
    """Until the client leaves. Come back with the last `id` in the header Last-Event-ID: nothing is missed."""
    stream = event_stream(_streams(request), caller_of(request), LiveRequest(last_id or after, ids, subscriber))
    # Its first piece here: what is wrong with the request is answered as every other error.
    first = await anext(stream)
    return Stream(_continued(first, stream), media_type="text/event-stream", headers=_HEADERS)


async def _continued(first: bytes, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in stream:
        yield piece


@get("/asyncapi.json", opt={"roles": ANYONE}, summary="The AsyncAPI document of the live side", include_in_schema=False)
async def asyncapi() -> Response[dict[str, Any]]:
    return Response(asyncapi_document(nearcast.__version__))


def _streams(connection: AnyRequest | WebSocket[Any, Any, Any]) -> LiveStreams:
    streams: LiveStreams = connection.app.state.streams
    return streams


ROUTES = [live_events, asyncapi]
SOCKETS = [live_socket]
