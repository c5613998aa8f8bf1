"""`/health`, `/ready`, `/metrics` and the OpenAPI document: for those who watch over the server; without a key."""

from __future__ import annotations

from typing import Any

from litestar import Response, get

from nearcast.service.error_answers import AnyRequest
from nearcast.service.guarding import broker_of
from nearcast.service.wire import Health


@get("/health", summary="Whether the process is alive")
async def health() -> Health:
    return Health("ok")


@get("/ready", summary="Whether it can take requests")
async def ready(request: AnyRequest) -> Response[Health]:
    broker = broker_of(request)
    if broker.load_failure is not None:
        return Response(Health("failing", broker.load_failure), status_code=503)
    if not broker.is_ready:
        return Response(Health("starting", "loading subscriptions"), status_code=503)
    if broker.failure is not None:
        return Response(Health("failing", broker.failure), status_code=503)
    return Response(Health("ok"))


@get("/metrics", media_type="text/plain; version=0.0.4", summary="Figures for Prometheus", include_in_schema=False)
async def metrics(request: AnyRequest) -> bytes:
    return broker_of(request).metrics.text()


@get("/v1/openapi.json", include_in_schema=False)
async def openapi(request: AnyRequest) -> dict[str, Any]:
    """The description of this interface (OpenAPI 3.1)."""
    return request.app.openapi_schema.to_schema()


ROUTES = [health, ready, metrics, openapi]
