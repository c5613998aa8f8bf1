"""The page itself, from the files that were built into the package; without them, a page that says how to get it."""

from __future__ import annotations

import mimetypes
from importlib import resources
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from litestar import Response, get

from nearcast import settings
from nearcast.service.problems import not_found

_FILES = resources.files("nearcast.service").joinpath("static")
# MapLibre runs its worker from a file of ours, and styles elements by script.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob: {tiles}; "
    "connect-src 'self' {tiles}; worker-src 'self' blob:; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_FOREVER = "public, max-age=31536000, immutable"
_ABSENT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>nearcast</title>
<body style="font:16px/1.5 system-ui;max-width:36em;margin:4em auto;padding:0 1em">
<h1>nearcast</h1><p>The server is running. Its map console was not built into this installation.</p>
<p>In a clone of the repository: <code>make console</code>, which needs npm. Then reload this page.</p>
<p>The API works without it: <a href="/v1/openapi.json">/v1/openapi.json</a>.</p></body></html>"""


def content_policy(tiles: str) -> str:
    """Only this host is asked for anything, and the one of the tiles if there are any."""
    host = "{0.scheme}://{0.netloc}".format(urlsplit(tiles)) if tiles else ""
    return _POLICY.format(tiles=host)


def _answer(content: bytes, kind: str, cached: str = "no-cache") -> Response[bytes]:
    policy = content_policy(settings.text("console_tiles"))
    return Response(content, media_type=kind, headers={"Content-Security-Policy": policy, "Cache-Control": cached})


@get("/console.json", include_in_schema=False)
async def console_settings() -> dict[str, str]:
    """What the page needs to know before anybody has shown a key."""
    return {"tiles": settings.text("console_tiles")}


@get("/", include_in_schema=False)
async def page() -> Response[bytes]:
    built = _FILES.joinpath("index.html")
    return _answer(built.read_bytes() if built.is_file() else _ABSENT.encode(), "text/html; charset=utf-8")


@get("/mark.svg", include_in_schema=False)
async def mark() -> Response[bytes]:
    return _file(_FILES.joinpath("mark.svg"), "mark.svg", "no-cache")


@get("/assets/{name:str}", include_in_schema=False)
async def asset(name: str) -> Response[bytes]:
    """Names hold a hash of the content, so browsers may keep them."""
    if name != PurePosixPath(name).name or name.startswith("."):
        raise not_found("file", name)
    return _file(_FILES.joinpath("assets", name), name, _FOREVER)


def _file(built: Any, name: str, cached: str) -> Response[bytes]:
    if not built.is_file():
        raise not_found("file", name)
    kind = "text/javascript" if name.endswith((".js", ".mjs")) else mimetypes.guess_type(name)[0]
    return _answer(built.read_bytes(), kind or "application/octet-stream", cached)


ROUTES = [page, mark, asset, console_settings]
