"""Which server the client commands talk to, and how they show what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nearcast.client import Client
    from nearcast.wire.api import BulkResult, Event

DEFAULT_URL = "http://127.0.0.1:8080"
Url = Annotated[str, typer.Option("--url", envvar="NEARCAST_URL", help="The server.")]
Key = Annotated[str | None, typer.Option("--key", envvar="NEARCAST_KEY", help="API key.", show_default=False)]


def connect(url: str, key: str | None) -> Client:
    from nearcast.cli.extras import need_service

    need_service()
    from nearcast.client import Client

    return Client(url, key)


def split_words(given: str | None) -> list[str] | None:
    return None if given is None else given.split()


def report_bulk(result: BulkResult, what: str) -> None:
    """How many were kept, and the first of those that were not; exit code 1 if there are such."""
    from nearcast.cli.console import remarks

    typer.echo(f"{result.accepted:,} {what} kept, {result.rejected:,} rejected; cursor {result.cursor}")
    bad = [line for line in result.results if line.error is not None]
    for line in bad[:10]:
        remarks().print(f"line {line.line}: {line.error.message if line.error else ''}", style="red", markup=False)
    if result.rejected:
        raise typer.Exit(1)


def one_line(event: Event) -> str:
    """An event for people."""
    from nearcast.wire.api import PointShape

    kind = event.type.removeprefix("io.nearcast.")
    data, parts = event.data, [f"{event.time:%H:%M:%S}", f"{kind:<8}", event.subject]
    message = data.message
    if message is not None:
        place = message.location.coordinates if isinstance(message.location, PointShape) else message.location.bbox
        parts += [message.id, ",".join(f"{number:g}" for number in place), message.text or " ".join(message.keywords)]
    if data.distance is not None:
        parts.append(f"{data.distance:,.0f} m")
    if data.score is not None:
        parts.append(f"score {data.score:.3f}" + (f" rank {data.rank}" if data.rank is not None else ""))
    if data.reason is not None:
        parts.append(data.reason)
    if event.suppressed:
        parts.append(f"({event.suppressed} suppressed before)")
    return "  ".join(parts)
