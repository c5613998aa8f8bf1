"""`nearcast load`: how much a server takes, measured from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nearcast.cli.connection import DEFAULT_URL, Key, Url

if TYPE_CHECKING:
    from rich.progress import Progress

    from nearcast.load.phases import PhaseResult


def load(
    url: Url = DEFAULT_URL,
    key: Key = None,
    workload: Annotated[str, typer.Option(help="Where the load comes from; see nearcast generate --list.")] = "tweets",
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Of the workload.")] = None,
    subscriptions: Annotated[int, typer.Option(min=0, help="File so many subscriptions first.")] = 0,
    bulk: Annotated[int, typer.Option(min=0, help="Publish so many messages in bulk.")] = 100_000,
    batch: Annotated[int, typer.Option(min=1, help="Messages per bulk request.")] = 2000,
    single: Annotated[int, typer.Option(min=0, help="Publish so many messages one by one.")] = 10_000,
    connections: Annotated[int, typer.Option(min=1, help="Connections of the single posts; bulk takes a sixteenth.")] = 64,
    listeners: Annotated[int, typer.Option(min=0, help="Open so many live connections, each with its own subscription.")] = 0,
    live: Annotated[int, typer.Option(min=0, help="Publish so many messages that reach every live connection.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of the workload.")] = 1,
) -> None:
    """Send load and show what was kept (acknowledged after it was on disk), how long it took, what live connections got."""
    import asyncio

    from nearcast.cli.extras import need_service

    need_service()
    from nearcast.cli.console import progress_bar, results, table_of
    from nearcast.cli.options import read_settings
    from nearcast.load.phases import HEADER
    from nearcast.load.requests import Target
    from nearcast.workloads import open_workload

    source, target = open_workload(workload, **read_settings(settings or ())), Target.of(url, key)

    async def run(progress: Progress) -> list[PhaseResult]:
        from nearcast.load import phases, requests

        def bar(what: str, total: int) -> phases.Progress:
            task = progress.add_task(what, total=total)
            return lambda n: progress.advance(task, n)

        found = []
        if subscriptions:
            chunks = requests.subscription_bodies(source, subscriptions, seed)
            found.append(await phases.file_subscriptions(target, chunks, bar("subscriptions", subscriptions)))
        if bulk:
            bodies, sizes = requests.bulk_bodies(requests.messages_of(source, bulk, seed), batch)
            shared = max(1, connections // 16)
            found.append(await phases.publish_bulk(target, bodies, sizes, shared, bar("bulk messages", bulk)))
        if single:
            singles = requests.single_bodies(requests.messages_of(source, single, seed + 1))
            found.append(await phases.publish_singly(target, singles, connections, bar("single messages", single)))
        if listeners and live:
            messages = requests.messages_of(source, live, seed + 2, (phases.LIVE_WORD,))
            bodies, sizes = requests.bulk_bodies(messages, 100)
            found.append(await phases.fan_out(target, listeners, bodies, sizes, bar("live messages", live)))
        return found

    with progress_bar() as progress:
        found = asyncio.run(run(progress))
    results().print(table_of(HEADER, [figures.cells() for figures in found]))
