"""`/v1/inbox`: the durable events of a subscriber, or of some subscriptions."""

from __future__ import annotations

from typing import Annotated

from litestar import Response, get, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import Parameter, QueryParameter

from nearcast.service.auth.guards import SUBSCRIBER, broker_of, caller_of
from nearcast.service.broker import EventPage
from nearcast.service.http.error_responses import DOCUMENTED, AnyRequest
from nearcast.service.http.routes.bodies import CursorParameter, NameParameter
from nearcast.service.push.live_request import LiveRequest
from nearcast.wire.api import Ack, AckResult, InboxPage

_OPT = {"roles": SUBSCRIBER}
_DEFAULT = "default"
_PAGE = {200: ResponseSpec(InboxPage, generate_examples=False, description="Events, oldest first")}
Ids = Annotated[str | None, QueryParameter(name="subscriptions", max_length=20_000, description="Ids, separated by commas")]


@get("/inbox", opt=_OPT, responses=DOCUMENTED | _PAGE, summary="Read events")
async def read_inbox(
    request: AnyRequest,
    after: CursorParameter = None,
    limit: Annotated[int, Parameter(ge=1, le=1000)] = 100,
    ids: Ids = None,
    subscriber: NameParameter = None,
) -> Response[bytes]:
    """Events after a cursor; without one, after the last that was acknowledged."""
    broker = broker_of(request)
    inbox = await broker.open_inbox(caller_of(request), subscriber, _ids(ids))
    try:
        start = await broker.acknowledged(inbox, _DEFAULT) if after is None else int(after)
        page = await broker.read_events(inbox, start, limit)
    finally:
        broker.close_inbox(inbox)
    return Response(page_text(page), media_type="application/json")


@post("/inbox/ack", opt=_OPT, responses=DOCUMENTED, status_code=200, summary="Acknowledge events")
async def acknowledge(request: AnyRequest, data: Ack, ids: Ids = None, subscriber: NameParameter = None) -> AckResult:
    """Everything up to the cursor has been dealt with; an earlier cursor changes nothing."""
    broker = broker_of(request)
    inbox = await broker.open_inbox(caller_of(request), subscriber, _ids(ids))
    try:
        return AckResult(str(await broker.acknowledge(inbox, _DEFAULT, int(data.cursor))))
    finally:
        broker.close_inbox(inbox)


def _ids(given: str | None) -> list[str] | None:
    return LiveRequest(subscriptions=given).ids()


def page_text(page: EventPage) -> bytes:
    """The JSON of an `InboxPage`; events are JSON already."""
    events = b",".join(row.json for row in page.rows)
    has_more, is_gap = (b"true" if flag else b"false" for flag in (page.has_more, page.is_gap))
    return b'{"events":[%s],"cursor":"%d","has_more":%s,"is_gap":%s}' % (events, page.cursor, has_more, is_gap)


ROUTES = [read_inbox, acknowledge]
