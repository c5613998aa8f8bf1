"""`nearcast top`: the best messages of a ranked subscription."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from nearcast.cli.connection import DEFAULT_URL, Key, Url, connect

if TYPE_CHECKING:
    from rich.table import Table

    from nearcast.wire.api import TopList


def top(
    subscription: Annotated[str, typer.Argument(help="Id of a ranked subscription.")],
    watch: Annotated[float | None, typer.Option(help="Show it again every so many seconds, until interrupted.")] = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Show the list of a ranked subscription, best first."""
    from nearcast.cli.console import results

    with connect(url, key) as client:
        console = results()
        if watch is None:
            console.print(_table(client.top(subscription)))
            return
        from rich.live import Live

        with Live(console=console, auto_refresh=False) as live:
            while True:
                live.update(_table(client.top(subscription)), refresh=True)
                time.sleep(watch)


def _table(found: TopList) -> Table:
    from nearcast.cli.console import table_of

    rows = [
        (str(entry.rank), f"{entry.score:.4f}", entry.message.id, entry.message.text or " ".join(entry.message.keywords))
        for entry in found.entries
    ]
    return table_of(("rank", "score", "message", "words"), rows, f"top of {found.subscription}")
