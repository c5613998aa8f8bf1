"""`/v1/messages` and `/v1/locations`: what publishers send, and where moving subscribers are."""

from __future__ import annotations

from typing import Annotated

from litestar import post
from litestar.params import HeaderParameter

from nearcast.service.auth.guards import PUBLISHER, SUBSCRIBER, broker_of, caller_of
from nearcast.service.http.error_responses import DOCUMENTED, AnyRequest
from nearcast.service.http.routes.bodies import LINES
from nearcast.service.problems import Problem
from nearcast.wire.api import BulkResult, MessageIn, MessageReceipt, MoveIn, MoveResult

RequestKey = Annotated[str | None, HeaderParameter(name="Idempotency-Key", min_length=1, max_length=128)]


@post("/messages", opt={"roles": PUBLISHER}, responses=DOCUMENTED, summary="Publish a message")
async def publish(request: AnyRequest, data: MessageIn, request_key: RequestKey = None) -> MessageReceipt:
    """Answered when the message and its deliveries are on disk. The same Idempotency-Key again publishes nothing anew."""
    return await broker_of(request).publish(caller_of(request), data, request_key, await request.body())


@post(
    "/messages/bulk",
    opt={"roles": PUBLISHER},
    responses=DOCUMENTED,
    status_code=200,
    summary="Publish many messages",
    operation_class=LINES,
)
async def publish_lines(request: AnyRequest, request_key: RequestKey = None) -> BulkResult:
    """NDJSON: a message on each line. A bad line is told and does not stop the others."""
    return await broker_of(request).publish_lines(caller_of(request), await request.body(), request_key)


@post("/locations", opt={"roles": SUBSCRIBER}, responses=DOCUMENTED, status_code=200, summary="Move a subscription")
async def move(request: AnyRequest, data: MoveIn) -> MoveResult:
    answer = (await broker_of(request).move(caller_of(request), [data]))[0]
    if isinstance(answer, Problem):
        raise answer
    return answer


@post(
    "/locations/bulk",
    opt={"roles": SUBSCRIBER},
    responses=DOCUMENTED,
    status_code=200,
    summary="Move many subscriptions",
    operation_class=LINES,
)
async def move_lines(request: AnyRequest) -> BulkResult:
    """NDJSON: a move on each line. A bad line is told and does not stop the others."""
    return await broker_of(request).move_lines(caller_of(request), await request.body())


ROUTES = [publish, publish_lines, move, move_lines]
