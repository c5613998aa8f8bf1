"""Wiring and life cycle of the server, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time
from collections.abc import AsyncIterator
from typing import Any

from litestar import Litestar, Router
from litestar.datastructures import State
from litestar.enums import ScopeType
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.types import ASGIApp, Message, Receive, Scope, Send

import nearcast
from nearcast.service.auth.guards import authorise, check_body
from nearcast.service.auth.keys import Gate
from nearcast.service.broker import Broker
from nearcast.service.console import page
from nearcast.service.console import routes as console_routes
from nearcast.service.http.error_responses import HANDLERS
from nearcast.service.http.routes import administration, health, inbox, insight, live, messages, subscriptions
from nearcast.service.http.routes import webhooks as webhook_routes
from nearcast.service.push.live_request import LiveStreams
from nearcast.service.push.stream_reader import Pace
from nearcast.service.webhooks.addresses import AddressRules
from nearcast.service.webhooks.registry import Webhooks

_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
"""Of every answer that does not say otherwise."""
_DESCRIPTION = "Location-aware publish/subscribe: standing interests in places and words, matched exactly and fast."


def create_app(broker: Broker) -> Litestar:
    """The server around a broker that is not started yet; it starts and stops with the app."""
    gate = Gate(broker)
    limits = broker.limits
    streams = LiveStreams(broker, Pace(), limits.connections, limits.connections_per_key, gate.check)
    gate.on_removal = streams.end_of_key
    broker.metrics.watch("nearcast_live_connections", "Live connections", lambda: streams.pace.n_readers)
    webhooks = Webhooks(broker, AddressRules.of_settings())
    guarded = Router(
        "/v1",
        route_handlers=[
            *subscriptions.ROUTES,
            *messages.ROUTES,
            *inbox.ROUTES,
            *live.ROUTES,
            *webhook_routes.ROUTES,
            *insight.ROUTES,
            *administration.ROUTES,
            *console_routes.ROUTES,
        ],
        guards=[authorise],
        before_request=check_body,
        security=[{"key": []}],
    )

    async def start() -> None:
        await broker.start_or_tell()
        # What is loaded stays: no need to look through it for garbage again and again.
        gc.collect()
        gc.freeze()
        if broker.is_ready:
            await webhooks.start()

    @contextlib.asynccontextmanager
    async def life(app: Litestar) -> AsyncIterator[None]:
        # Beside: whoever watches is answered "starting" meanwhile.
        starting = asyncio.create_task(start())
        try:
            yield
        finally:
            await starting
            await webhooks.stop()
            await broker.stop()

    return Litestar(
        [guarded, Router("/v1", route_handlers=live.SOCKETS), *health.ROUTES, *page.ROUTES],
        state=State({"broker": broker, "gate": gate, "streams": streams, "webhooks": webhooks}),
        lifespan=[life],
        exception_handlers=HANDLERS,
        middleware=[lambda app: count_requests(app, broker)],
        request_max_body_size=broker.limits.body_bytes,
        openapi_config=OpenAPIConfig(
            title="nearcast",
            version=nearcast.__version__,
            description=_DESCRIPTION,
            # The framework answers for everything below; `health` serves the document where people look for it.
            path="/v1/framework",
            render_plugins=[JsonRenderPlugin(path="/openapi.json")],
            use_handler_docstrings=True,
            components=Components(security_schemes={"key": SecurityScheme(type="http", scheme="bearer")}),
        ),
        logging_config=None,
        pdb_on_exception=False,
        debug=False,
    )


def count_requests(app: ASGIApp, broker: Broker) -> ASGIApp:
    """Counts and times every answer by its route, and adds the headers of all. Here: the framework takes longer for it."""

    async def counted(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await app(scope, receive, send)
            return
        started, status, method = time.perf_counter(), 500, scope["method"]

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = [*message["headers"]]
                names = {name for name, _ in given}
                message["headers"] = given + [header for header in _HEADERS if header[0] not in names]
            await send(message)

        try:
            await app(scope, receive, noting)
        finally:
            route: Any = scope.get("path_template", "")
            broker.metrics.requests.labels(method, route, status).inc()
            broker.metrics.seconds.labels(route).observe(time.perf_counter() - started)

    return counted
