"""`/v1/subscriptions`: standing interests, their top lists and current results."""

from __future__ import annotations

from typing import Annotated

from litestar import Response, delete, get, patch, post, put
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import Parameter

from nearcast.service.auth.guards import SUBSCRIBER, broker_of, caller_of
from nearcast.service.http.error_responses import DOCUMENTED, AnyRequest
from nearcast.service.http.routes.bodies import LINES, CursorParameter, NameParameter
from nearcast.service.http.routes.webhooks import webhooks_of
from nearcast.service.problems import unusable
from nearcast.wire.api import (
    BulkResult,
    CurrentList,
    Name,
    SubscriptionChange,
    SubscriptionIn,
    SubscriptionOut,
    SubscriptionPage,
    TopList,
)

_OPT = {"roles": SUBSCRIBER}
_MADE = {201: ResponseSpec(SubscriptionOut, generate_examples=False, description="Made")}
_REPLACED = {200: ResponseSpec(SubscriptionOut, generate_examples=False, description="Replaced")}


@post("/subscriptions", opt=_OPT, responses=DOCUMENTED | _REPLACED, summary="Make a subscription")
async def make_subscription(request: AnyRequest, data: SubscriptionIn) -> Response[SubscriptionOut]:
    """Without an id it gets one; a known id replaces."""
    webhooks_of(request).check_named(caller_of(request), data)
    kept, is_new = await broker_of(request).put_subscription(caller_of(request), data)
    return Response(kept, status_code=201 if is_new else 200)


@put("/subscriptions/{id:str}", opt=_OPT, responses=DOCUMENTED | _MADE, summary="Make or replace a subscription")
async def replace_subscription(request: AnyRequest, id: Name, data: SubscriptionIn) -> Response[SubscriptionOut]:
    if data.id is not None and data.id != id:
        raise unusable(f"the body has the id {data.id!r} and the path {id!r}; leave it out of the body", "id")
    data.id = id
    webhooks_of(request).check_named(caller_of(request), data)
    kept, is_new = await broker_of(request).put_subscription(caller_of(request), data)
    return Response(kept, status_code=201 if is_new else 200)


@post(
    "/subscriptions/bulk",
    opt=_OPT,
    responses=DOCUMENTED,
    status_code=200,
    summary="Make many subscriptions",
    operation_class=LINES,
)
async def make_subscriptions(request: AnyRequest) -> BulkResult:
    """NDJSON: a subscription on each line. A bad line is told and does not stop the others."""
    return await broker_of(request).put_subscriptions(caller_of(request), await request.body())


@get("/subscriptions", opt=_OPT, responses=DOCUMENTED, summary="List subscriptions")
async def list_subscriptions(
    request: AnyRequest,
    after: CursorParameter = None,
    limit: Annotated[int, Parameter(ge=1, le=1000)] = 100,
    subscriber: NameParameter = None,
) -> SubscriptionPage:
    """In the order of creation; `after` is the `next` of the page before. An admin sees those of everybody."""
    return await broker_of(request).list_subscriptions(caller_of(request), after, limit, subscriber)


@get("/subscriptions/{id:str}", opt=_OPT, responses=DOCUMENTED, summary="One subscription")
async def get_subscription(request: AnyRequest, id: Name) -> SubscriptionOut:
    return await broker_of(request).get_subscription(caller_of(request), id)


@patch("/subscriptions/{id:str}", opt=_OPT, responses=DOCUMENTED, summary="Pause a subscription, or let it go on")
async def pause_subscription(request: AnyRequest, id: Name, data: SubscriptionChange) -> SubscriptionOut:
    return await broker_of(request).pause_subscription(caller_of(request), id, data.paused)


@delete("/subscriptions/{id:str}", opt=_OPT, responses=DOCUMENTED, summary="End a subscription")
async def delete_subscription(request: AnyRequest, id: Name) -> None:
    """Its inbox stays until retention takes it; the last event tells that it ended."""
    await broker_of(request).delete_subscription(caller_of(request), id)


@get("/subscriptions/{id:str}/top", opt=_OPT, responses=DOCUMENTED, summary="The best messages of a ranked subscription")
async def get_top(request: AnyRequest, id: Name) -> TopList:
    return await broker_of(request).top(caller_of(request), id)


@get("/subscriptions/{id:str}/current", opt=_OPT, responses=DOCUMENTED, summary="Living messages of a moving subscription")
async def get_current(request: AnyRequest, id: Name) -> CurrentList:
    return await broker_of(request).current(caller_of(request), id)


ROUTES = [
    make_subscription,
    replace_subscription,
    make_subscriptions,
    list_subscriptions,
    get_subscription,
    pause_subscription,
    delete_subscription,
    get_top,
    get_current,
]
