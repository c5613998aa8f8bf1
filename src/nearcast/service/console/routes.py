"""`/v1/console/...`: for the map console, with an admin's key."""

from __future__ import annotations

from typing import Annotated

from litestar import get
from litestar.params import Parameter

from nearcast.errors import NearcastError
from nearcast.model.regions import Box
from nearcast.service.auth.guards import ADMIN, broker_of, caller_of, check_operator
from nearcast.service.http.error_responses import DOCUMENTED, AnyRequest
from nearcast.service.problems import unusable
from nearcast.wire.api import Cursor, Name
from nearcast.wire.console import CellList, Pulse, RecipientList

Sides = Annotated[str, Parameter(max_length=200, description="west,south,east,north in degrees")]


@get("/console/pulse", opt={"roles": ADMIN}, responses=DOCUMENTED, summary="New messages, and how the server is doing")
async def pulse(request: AnyRequest, after: Cursor | None = None) -> Pulse:
    broker, caller = broker_of(request), caller_of(request)
    start = None if after is None else int(after)
    return await broker.beside(broker.observer.pulse, caller.tenant, start, caller.is_operator)


@get("/console/cells", opt={"roles": ADMIN}, responses=DOCUMENTED, summary="Cells of the index under a view")
async def cells(request: AnyRequest, bbox: Sides) -> CellList:
    broker = broker_of(request)
    check_operator(caller_of(request))
    return await broker.beside(broker.observer.cells, _box(bbox))


@get("/console/messages/{id:str}/recipients", opt={"roles": ADMIN}, responses=DOCUMENTED, summary="Who got a message")
async def recipients(request: AnyRequest, id: Name) -> RecipientList:
    broker = broker_of(request)
    return await broker.beside(broker.observer.recipients, caller_of(request).tenant, id)


def _box(given: str) -> Box:
    """A view may reach beyond the world; what it shows of it does not."""
    try:
        west, south, east, north = (float(side) for side in given.split(","))
        return Box(max(west, -180.0), max(south, -90.0), min(east, 180.0), min(north, 90.0))
    except (ValueError, NearcastError) as error:
        raise unusable(f"bbox is {given[:60]!r}; expected west,south,east,north in degrees ({error})", "bbox") from None


ROUTES = [pulse, cells, recipients]
