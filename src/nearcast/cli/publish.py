"""`nearcast publish`: send a message to a server, or many from a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from typing import IO, Annotated

import typer

from nearcast.cli.connection import DEFAULT_URL, Key, Url, connect, report_bulk, split_words

_LINES_AT_A_TIME = 5000


def publish(
    at: Annotated[str | None, typer.Option(metavar="X,Y", help="Where: X,Y (longitude first) or X0,Y0,X1,Y1.")] = None,
    text: Annotated[str | None, typer.Option(help="Its text; words are taken from it.")] = None,
    keywords: Annotated[str | None, typer.Option(help="Its keywords, separated by spaces.")] = None,
    id: Annotated[str | None, typer.Option(help="Its id; the same id again is told as a repeat and not delivered.")] = None,
    tags: Annotated[str | None, typer.Option(help="Its tags, separated by spaces.")] = None,
    lifetime: Annotated[float | None, typer.Option(help="Seconds it lives, for moving subscribers.")] = None,
    file: Annotated[str | None, typer.Option(help="Many at once: NDJSON, a message per line; - reads standard input.")] = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Publish; the message is on the server's disk when this returns."""
    from nearcast.cli.options import read_place
    from nearcast.errors import NearcastError

    if (at is None) == (file is None):
        raise NearcastError("give either --at with --text or --keywords, or --file")
    with connect(url, key) as client:
        if at is not None:
            receipt = client.publish(
                read_place(at), split_words(keywords), text, id=id, tags=split_words(tags) or (), lifetime=lifetime
            )
            typer.echo(f"{receipt.id} at cursor {receipt.cursor}" + (" (a repeat)" if receipt.is_repeat else ""))
            return
        assert file is not None
        if file == "-":
            _publish_lines(url, key, sys.stdin.buffer)
        else:
            with open(file, "rb") as lines:
                _publish_lines(url, key, lines)


def _publish_lines(url: str, key: str | None, lines: IO[bytes]) -> None:
    """Piece by piece, each kept before the next is sent."""
    from nearcast.cli.console import progress_bar
    from nearcast.wire.api import BulkResult

    total = BulkResult(0, 0, "0", [])
    n_before = 0
    with connect(url, key) as client, progress_bar() as progress:
        task = progress.add_task("publishing", total=None)
        for piece in _pieces(lines):
            result = client.publish_many(b"".join(piece))
            for line in result.results:
                line.line += n_before
            total.accepted += result.accepted
            total.rejected += result.rejected
            total.cursor = result.cursor
            total.results += result.results
            n_before += len(piece)
            progress.update(task, completed=n_before)
    report_bulk(total, "messages")


def _pieces(lines: IO[bytes]) -> Iterator[list[bytes]]:
    while piece := list(islice(lines, _LINES_AT_A_TIME)):
        yield piece
