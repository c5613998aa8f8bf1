"""Verbs that take a workload: `generate` files from it, `load` a server with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearcast.cli.console import progress_bar, results, table_of
from nearcast.cli.options import DEFAULT_URL, Key, Url, need_service, read_settings
from nearcast.errors import NearcastError

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.progress import Progress

    from nearcast.load.phases import PhaseResult

_ROWS_AT_A_TIME = 100_000


def _show_workloads(is_requested: bool) -> None:
    if is_requested:
        from nearcast.workloads import workload_names

        rows = [
            (name, info.description, ", ".join(f"{key}={_default_text(value)}" for key, value in info.parameters.items()))
            for name, info in workload_names().items()
        ]
        results().print(table_of(("workload", "what it is", "parameters for --set"), rows))
        raise typer.Exit


def _default_text(value: Any) -> str:
    return "(required)" if value is ... else str(value)


def generate(
    workload: Annotated[str, typer.Argument(help="Name of the workload; --list shows them.", show_default=False)],
    out: Annotated[Path, typer.Option(help="Folder to write messages.parquet, subscriptions.parquet and README.md to.")],
    messages: Annotated[int, typer.Option(min=0, help="Number of messages.")] = 10_000,
    subscriptions: Annotated[int, typer.Option(min=0, help="Number of subscriptions.")] = 10_000,
    words: Annotated[bool, typer.Option("--words/--ids", help="Keywords as words, or as numbers (smaller, faster).")] = True,
    seed: Annotated[int, typer.Option(help="Where the stream starts and which subscriptions are sampled.")] = 1,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the workload; may be repeated.")
    ] = None,
    show_list: Annotated[
        bool, typer.Option("--list", callback=_show_workloads, is_eager=True, help="List the workloads and exit.")
    ] = False,
) -> None:
    """Generate messages and subscriptions of a workload; the same arguments give the same files."""
    from nearcast.workloads import open_workload

    if out.exists() and not out.is_dir():
        raise NearcastError(f"--out {str(out)!r} is a file; expected a folder")
    source = open_workload(workload, **read_settings(settings or ()))
    out.mkdir(parents=True, exist_ok=True)
    with progress_bar() as progress:
        for name, n, make in (
            ("subscriptions", subscriptions, source.subscriptions),
            ("messages", messages, source.messages),
        ):
            task = progress.add_task(f"{name}: generating", total=n)
            table = make(n, seed)
            progress.update(task, description=f"{name}: writing")
            for n_written in _write_chunks(out / f"{name}.parquet", table, source.with_words if words else lambda rows: rows):
                progress.advance(task, n_written)
    facts = {**source.describe(), "stream_seed": seed, "messages": messages, "subscriptions": subscriptions, "words": words}
    readme = "Made by `nearcast generate`: " + json.dumps(facts, default=str, ensure_ascii=False) + "\n"
    (out / "README.md").write_text(readme, encoding="utf-8")
    typer.echo(f"{subscriptions:,} subscriptions and {messages:,} messages of {workload!r} ({source.space}) in {out}")


def _write_chunks(path: Path, table: pa.Table, convert: Callable[[pa.Table], pa.Table]) -> Iterator[int]:
    """Write a table in chunks, each converted first; yields the number of rows of each chunk."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, convert(table.slice(0, 0)).schema) as writer:
        for first in range(0, table.num_rows, _ROWS_AT_A_TIME):
            chunk = convert(table.slice(first, _ROWS_AT_A_TIME))
            writer.write_table(chunk)
            yield chunk.num_rows


def load(
    url: Url = DEFAULT_URL,
    key: Key = None,
    workload: Annotated[str, typer.Option(help="Workload to send; see nearcast generate --list.")] = "tweets",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the workload; may be repeated.")
    ] = None,
    subscriptions: Annotated[int, typer.Option(min=0, help="Subscriptions to make first.")] = 0,
    bulk: Annotated[int, typer.Option(min=0, help="Messages to publish in bulk.")] = 100_000,
    batch: Annotated[int, typer.Option(min=1, help="Messages per bulk request.")] = 2000,
    single: Annotated[int, typer.Option(min=0, help="Messages to publish one by one.")] = 10_000,
    connections: Annotated[
        int, typer.Option(min=1, help="Connections for single messages; bulk uses a sixteenth of them.")
    ] = 64,
    listeners: Annotated[int, typer.Option(min=0, help="Live connections to open, each with its own subscription.")] = 0,
    live: Annotated[int, typer.Option(min=0, help="Messages to publish that reach every live connection.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the workload.")] = 1,
) -> None:
    """Send load to a server; show what it acknowledged (once on disk), its latency, and what live connections received."""
    import asyncio

    need_service()
    from nearcast.load.phases import HEADER
    from nearcast.load.requests import Target
    from nearcast.workloads import open_workload

    source, target = open_workload(workload, **read_settings(settings or ())), Target.of(url, key)

    async def run(progress: Progress) -> list[PhaseResult]:
        from nearcast.load import phases, requests

        def bar(what: str, total: int) -> phases.Progress:
            task = progress.add_task(what, total=total)
            return lambda n: progress.advance(task, n)

        phase_results = []
        if subscriptions:
            chunks = requests.subscription_bodies(source, subscriptions, seed)
            phase_results.append(await phases.file_subscriptions(target, chunks, bar("subscriptions", subscriptions)))
        if bulk:
            bodies, sizes = requests.bulk_bodies(requests.messages_of(source, bulk, seed), batch)
            shared = max(1, connections // 16)
            phase_results.append(await phases.publish_bulk(target, bodies, sizes, shared, bar("bulk messages", bulk)))
        if single:
            singles = requests.single_bodies(requests.messages_of(source, single, seed + 1))
            phase_results.append(await phases.publish_singly(target, singles, connections, bar("single messages", single)))
        if listeners and live:
            messages = requests.messages_of(source, live, seed + 2, (phases.LIVE_WORD,))
            bodies, sizes = requests.bulk_bodies(messages, 100)
            phase_results.append(await phases.fan_out(target, listeners, bodies, sizes, bar("live messages", live)))
        return phase_results

    with progress_bar() as progress:
        phase_results = asyncio.run(run(progress))
    results().print(table_of(HEADER, [result.cells() for result in phase_results]))
