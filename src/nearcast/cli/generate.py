"""`nearcast generate`: a workload as Parquet files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS_AT_A_TIME = 100_000


def _show_workloads(wanted: bool) -> None:
    if wanted:
        from nearcast.cli.console import results, table_of
        from nearcast.workloads import workload_names

        rows = [
            (name, info.description, ", ".join(f"{key}={_shown(value)}" for key, value in info.parameters.items()))
            for name, info in workload_names().items()
        ]
        results().print(table_of(("workload", "what it is", "parameters for --set"), rows))
        raise typer.Exit


def _shown(value: Any) -> str:
    return "(must be given)" if value is ... else str(value)


def generate(
    workload: Annotated[str, typer.Argument(help="Name of the workload; --list shows them.", show_default=False)],
    out: Annotated[Path, typer.Option(help="Folder to write messages.parquet, subscriptions.parquet and README.md to.")],
    messages: Annotated[int, typer.Option(min=0, help="How many messages of the stream.")] = 10_000,
    subscriptions: Annotated[int, typer.Option(min=0, help="How many subscriptions.")] = 10_000,
    words: Annotated[bool, typer.Option("--words/--ids", help="Keywords as words, or as numbers (smaller, faster).")] = True,
    seed: Annotated[int, typer.Option(help="Another seed starts the stream elsewhere and samples other subscriptions.")] = 1,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the workload; may be repeated.")
    ] = None,
    show_list: Annotated[
        bool, typer.Option("--list", callback=_show_workloads, is_eager=True, help="List the workloads and leave.")
    ] = False,
) -> None:
    """Generate messages and subscriptions of a workload; the same arguments give the same files."""
    from nearcast.cli.console import progress_bar
    from nearcast.cli.options import read_settings
    from nearcast.errors import NearcastError
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
            for n_written in _written(out / f"{name}.parquet", table, source.with_words if words else _as_is):
                progress.advance(task, n_written)
    facts = {**source.describe(), "stream_seed": seed, "messages": messages, "subscriptions": subscriptions, "words": words}
    readme = "Made by `nearcast generate`: " + json.dumps(facts, default=str, ensure_ascii=False) + "\n"
    (out / "README.md").write_text(readme, encoding="utf-8")
    typer.echo(f"{subscriptions:,} subscriptions and {messages:,} messages of {workload!r} ({source.space}) in {out}")


def _as_is(table: pa.Table) -> pa.Table:
    return table


def _written(path: Path, table: pa.Table, spelled: Callable[[pa.Table], pa.Table]) -> Iterator[int]:
    """Write a table piece by piece; gives the rows of each piece."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, spelled(table.slice(0, 0)).schema) as writer:
        for first in range(0, table.num_rows, _ROWS_AT_A_TIME):
            piece = spelled(table.slice(first, _ROWS_AT_A_TIME))
            writer.write_table(piece)
            yield piece.num_rows
