"""`nearcast listen`: what the subscriptions of a key get, as it happens."""

from __future__ import annotations

from typing import Annotated

import typer

from nearcast.cli.connection import DEFAULT_URL, Key, Url, connect, one_line


def listen(
    subscriptions: Annotated[str | None, typer.Option(help="Only these, ids separated by commas.")] = None,
    after: Annotated[str | None, typer.Option(help="Begin after this cursor; 0: at the beginning, 'ack', or 'now'.")] = None,
    count: Annotated[int | None, typer.Option(min=1, help="Leave after so many events.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object (CloudEvents) per line.")] = False,
    acknowledge: Annotated[bool, typer.Option("--ack", help="Acknowledge what was shown, for --after ack.")] = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Show events until interrupted. A lost connection is made again and nothing is missed."""
    import msgspec

    ids = None if subscriptions is None else [one.strip() for one in subscriptions.split(",")]
    with connect(url, key) as client:
        try:
            for number, event in enumerate(client.listen(after, ids, acknowledges=acknowledge), 1):
                typer.echo(msgspec.json.encode(event).decode() if as_json else one_line(event))
                if number == count:
                    break
        except KeyboardInterrupt:
            raise typer.Exit from None
