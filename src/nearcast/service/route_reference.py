"""`docs/reference/routes.md`, from the routes themselves: `python -m nearcast.service.route_reference` prints it."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from litestar import Litestar
from litestar.handlers import HTTPRouteHandler

from nearcast.service.app import create_app
from nearcast.service.broker import Broker
from nearcast.service.limits import read_limits
from nearcast.storage.store import open_store

_HEAD = """# Routes

Printed by `python -m nearcast.service.route_reference` from the OpenAPI 3.1 document that every server gives at
`/v1/openapi.json`, where the fields of each body are; the live side is described by AsyncAPI at `/v1/asyncapi.json` and in
[Live streams and webhooks](live.md).

Send the key as `Authorization: Bearer nc_...`; an admin may do whatever the other roles may. Bodies are JSON, those of bulk
routes NDJSON, a JSON object on each line. Every error has one shape, `{"error": {"code": ..., "message": ..., "where": ...}}`;
429 and 503 say in `Retry-After` when to come back.

"""
# Routes of the map console are its own and change with it.
_CONSOLE = "/v1/console"


def route_reference() -> str:
    """The page."""
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(str(Path(folder) / "store.db"))
        try:
            app = create_app(Broker(store, None, read_limits()))
            return _HEAD + "\n".join(_sections(app))
        finally:
            store.close()


def _sections(app: Litestar) -> Iterator[str]:
    document = app.openapi_schema.to_schema()
    roles = _roles(app)
    for path, item in sorted(document["paths"].items()):
        if path.startswith(_CONSOLE):
            continue
        for method, operation in item.items():
            yield f"## {method.upper()} {path}\n"
            yield f"{operation['summary']}. {operation.get('description', '')}".strip() + "\n"
            yield from _lines(operation, roles.get((method.upper(), path)))
            yield ""


def _lines(operation: dict[str, Any], roles: str | None) -> Iterator[str]:
    yield f"- role: {roles or 'none, no key needed'}"
    for parameter in operation.get("parameters", ()):
        text = parameter.get("description") or parameter.get("schema", {}).get("description") or ""
        needed = ", required" if parameter.get("required") else ""
        yield f"- `{parameter['name']}` ({parameter['in']}{needed}){': ' + text if text else ''}"
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"- body: {_named(content.get('schema', {}), media)}"
    for status, answer in sorted(operation["responses"].items()):
        if status.startswith("2"):
            contents = answer.get("content", {}).items()
            shown = " or ".join(_named(content.get("schema", {}), media) for media, content in contents)
            yield f"- {status}: {shown or 'nothing'}"
    refused = [status for status in sorted(operation["responses"]) if not status.startswith("2")]
    if refused:
        yield f"- refused with {', '.join(refused)}"


def _named(schema: dict[str, Any], media: str) -> str:
    name = schema.get("$ref", "").rpartition("/")[2]
    return f"`{name}`" if name else f"`{media}`"


def _roles(app: Litestar) -> dict[tuple[str, str], str]:
    found = {}
    for route in app.routes:
        for handler in getattr(route, "route_handlers", ()):
            if isinstance(handler, HTTPRouteHandler) and "roles" in handler.opt:
                for method in handler.http_methods:
                    path = "/".join(part.partition(":")[0] + "}" if ":" in part else part for part in route.path.split("/"))
                    found[str(method), path] = " or ".join(sorted(handler.opt["roles"]))
    return found


if __name__ == "__main__":
    sys.stdout.write(route_reference())
