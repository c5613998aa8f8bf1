"""`nearcast move`: tell a server where a moving subscription is now."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearcast.cli.connection import DEFAULT_URL, Key, Url, connect, report_bulk


def move(
    subscription: Annotated[str | None, typer.Argument(help="Id of a moving subscription.")] = None,
    to: Annotated[str | None, typer.Option(metavar="X,Y", help="Its new middle (longitude first).")] = None,
    accuracy: Annotated[float | None, typer.Option(help="Accuracy of the position in metres.")] = None,
    file: Annotated[Path | None, typer.Option(help="Many at once: NDJSON, one move per line.")] = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Move a subscription; what it enters and leaves is in its inbox."""
    from nearcast.cli.options import read_place
    from nearcast.errors import NearcastError

    with connect(url, key) as client:
        if file is not None:
            report_bulk(client.move_many(file.read_bytes()), "moves")
            return
        if subscription is None or to is None:
            raise NearcastError("give the id of a subscription and --to X,Y, or --file")
        moved = client.move(subscription, read_place(to, "--to"), accuracy_m=accuracy)
        typer.echo(f"{moved.subscription} {moved.status}: {moved.entered} entered, {moved.left} left")
