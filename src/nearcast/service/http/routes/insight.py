"""`/v1/explain`, `/v1/dry-run`, `/v1/stats`: why, what if, how much."""

from __future__ import annotations

from litestar import get, post

from nearcast.service.auth.guards import ANYONE, SUBSCRIBER, broker_of, caller_of
from nearcast.service.http.error_responses import DOCUMENTED, AnyRequest
from nearcast.wire.api import DryRunIn, DryRunOut, ExplainIn, ExplainOut, StatsOut


@post("/explain", opt={"roles": SUBSCRIBER}, responses=DOCUMENTED, status_code=200, summary="Why a message is delivered or not")
async def explain(request: AnyRequest, data: ExplainIn) -> ExplainOut:
    return await broker_of(request).explain(caller_of(request), data)


@post("/dry-run", opt={"roles": SUBSCRIBER}, responses=DOCUMENTED, status_code=200, summary="Try a draft subscription")
async def dry_run(request: AnyRequest, data: DryRunIn) -> DryRunOut:
    """Against the last messages of the tenant; nothing is kept."""
    return await broker_of(request).dry_run(caller_of(request), data)


@get("/stats", opt={"roles": ANYONE}, responses=DOCUMENTED, summary="Sizes")
async def stats(request: AnyRequest) -> StatsOut:
    return await broker_of(request).stats(caller_of(request))


ROUTES = [explain, dry_run, stats]
