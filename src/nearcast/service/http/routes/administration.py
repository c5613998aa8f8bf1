"""`/v1/keys` and `/v1/audit`: who may do what, and who did what, in one tenant."""

from __future__ import annotations

import time
from typing import Annotated

from litestar import delete, get, post
from litestar.params import Parameter

from nearcast.service.auth.guards import ADMIN, broker_of, caller_of
from nearcast.service.auth.keys import Gate, key_out, make_key
from nearcast.service.http.error_responses import DOCUMENTED, AnyRequest
from nearcast.service.http.routes.bodies import CursorParameter
from nearcast.service.problems import not_found, unusable
from nearcast.service.times import moment
from nearcast.storage.batch import AuditRow, Batch
from nearcast.wire.api import AuditEntry, AuditPage, KeyIn, KeyList, KeyOut, Name

_OPT = {"roles": ADMIN}


@post("/keys", opt=_OPT, responses=DOCUMENTED, summary="Make an API key")
async def create_key(request: AnyRequest, data: KeyIn) -> KeyOut:
    """The secret is in this answer and nowhere else."""
    if data.expires is not None and (data.expires.utcoffset() is None or data.expires.timestamp() <= time.time()):
        raise unusable(f"expires={data.expires.isoformat()!r} is past or has no time zone; expected a time to come", "expires")
    caller = caller_of(request)
    row, shown = make_key(caller.tenant, data)
    entry = AuditRow(time.time(), caller.tenant, caller.key_id, "key.create", row.id, f"{data.name}: {', '.join(data.roles)}")
    await broker_of(request).keep(Batch(keys=[row], audit=[entry]))
    return shown


@get("/keys", opt=_OPT, responses=DOCUMENTED, summary="List API keys")
async def list_keys(request: AnyRequest) -> KeyList:
    broker = broker_of(request)
    rows = await broker.beside(broker.store.keys, caller_of(request).tenant)
    return KeyList([key_out(row) for row in rows])


@delete("/keys/{id:str}", opt=_OPT, responses=DOCUMENTED, summary="Remove an API key")
async def delete_key(request: AnyRequest, id: Name) -> None:
    """It ends at once."""
    broker, caller = broker_of(request), caller_of(request)
    row = await broker.beside(broker.store.key, id)
    if row is None or row.tenant != caller.tenant:
        raise not_found("key", id)
    entry = AuditRow(time.time(), caller.tenant, caller.key_id, "key.delete", id, "")
    await broker.keep(Batch(removed_keys=[id], audit=[entry]))
    gate: Gate = request.app.state.gate
    gate.forget(id)


@get("/audit", opt=_OPT, responses=DOCUMENTED, summary="Who did what, newest first")
async def read_audit(
    request: AnyRequest, before: CursorParameter = None, limit: Annotated[int, Parameter(ge=1, le=1000)] = 100
) -> AuditPage:
    broker = broker_of(request)
    rows = await broker.beside(
        broker.store.audit, caller_of(request).tenant, None if before is None else int(before), limit + 1
    )
    entries = [AuditEntry(moment(row.time), row.key, row.action, row.target, row.detail) for _, row in rows[:limit]]
    page = AuditPage(entries)
    if len(rows) > limit:
        page.next = str(rows[limit - 1][0])
    return page


ROUTES = [create_key, list_keys, delete_key, read_audit]
