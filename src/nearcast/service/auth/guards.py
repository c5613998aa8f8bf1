"""What every route asks first: is the server ready, who is calling, may they."""

from __future__ import annotations

import ipaddress
from typing import Any

from litestar.connection import ASGIConnection, Request
from litestar.handlers.base import BaseRouteHandler

from nearcast.service.auth.keys import Gate
from nearcast.service.broker import Broker
from nearcast.service.caller import OPERATING_TENANT, Caller
from nearcast.service.intake.decoding import check_depth
from nearcast.service.problems import Problem, forbidden

Connection = ASGIConnection[Any, Any, Any, Any]

PUBLISHER, SUBSCRIBER, ADMIN = frozenset({"publisher"}), frozenset({"subscriber"}), frozenset({"admin"})
ANYONE = PUBLISHER | SUBSCRIBER | ADMIN


async def authorise(connection: Connection, handler: BaseRouteHandler) -> None:
    """Before the body is read. The roles of a route are in its `opt`; an admin may do everything."""
    caller = await admit(connection, handler.opt["roles"], connection.headers.get("authorization"))
    connection.scope["state"]["caller"] = caller


async def admit(connection: Connection, wanted: frozenset[str], authorization: str | None) -> Caller:
    """The caller, if the server is ready and the key has one of the roles; raises Problem."""
    broker: Broker = connection.app.state.broker
    if not broker.is_ready:
        raise Problem(503, "starting", "the server is loading its subscriptions; try again in a few seconds", retry_after=2)
    gate: Gate = connection.app.state.gate
    caller = await gate.admit(authorization)
    if not caller.is_admin and not wanted & caller.roles:
        names = " or ".join(sorted(wanted))
        raise forbidden(f"this needs a key with the role {names}; this one has {', '.join(sorted(caller.roles))}")
    return caller


async def check_body(request: Request[Any, Any, Any]) -> None:
    """Before the framework decodes it; the lines of bulk requests are checked one by one when they are decoded."""
    if request.method in ("POST", "PUT", "PATCH") and not request.url.path.endswith("/bulk"):
        check_depth(await request.body())


def check_operator(caller: Caller) -> None:
    """Raise Problem if a caller may not see what belongs to no single tenant."""
    if not caller.is_operator:
        raise forbidden(f"this shows the whole server; it needs an admin's key of the tenant {OPERATING_TENANT!r}")


def is_local(connection: Connection) -> bool:
    """Whether the other side is on this machine, or a proxy there that does not say for whom it asks."""
    try:
        return connection.client is not None and ipaddress.ip_address(connection.client.host).is_loopback
    except ValueError:
        return False


def caller_of(connection: Connection) -> Caller:
    """Who was let in."""
    caller: Caller = connection.scope["state"]["caller"]
    return caller


def broker_of(connection: Connection) -> Broker:
    broker: Broker = connection.app.state.broker
    return broker
