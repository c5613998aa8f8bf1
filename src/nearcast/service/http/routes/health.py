"""`/health`, `/ready`, `/metrics` and the OpenAPI document: for those who watch over the server, without a key."""

from __future__ import annotations

from typing import Any

from litestar import Response, get

from nearcast.service.auth.guards import ADMIN, admit, broker_of, check_operator, is_local
from nearcast.service.http.error_responses import AnyRequest
from nearcast.wire.api import Health


@get("/health", summary="Whether the process is alive")
async def health() -> Health:
    return Health("ok")


@get("/ready", summary="Whether it can take requests")
async def ready(request: AnyRequest) -> Response[Health]:
    broker = broker_of(request)
    failure = broker.load_failure or broker.failure
    if failure is not None:
        # It may tell where things are on this machine.
        return Response(Health("failing", failure if is_local(request) else "the log of the server says why"), status_code=503)
    if not broker.is_ready:
        return Response(Health("starting", "loading subscriptions"), status_code=503)
    return Response(Health("ok"))


@get("/metrics", media_type="text/plain; version=0.0.4", summary="Figures for Prometheus", include_in_schema=False)
async def metrics(request: AnyRequest) -> bytes:
    """Of all tenants: from this machine, or with an admin's key of the tenant that operates the server."""
    if not is_local(request):
        check_operator(await admit(request, ADMIN, request.headers.get("authorization")))
    return await broker_of(request).figures()


@get("/v1/openapi.json", include_in_schema=False)
async def openapi(request: AnyRequest) -> dict[str, Any]:
    """The description of this interface (OpenAPI 3.1)."""
    return request.app.openapi_schema.to_schema()


ROUTES = [health, ready, metrics, openapi]
