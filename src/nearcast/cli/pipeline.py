"""`nearcast pipeline …`: the engines on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="The data pipeline on Spark.", no_args_is_help=True)


@app.callback()
def pipeline() -> None:
    """The data pipeline on Spark."""


@app.command()
def run(
    out: Annotated[Path, typer.Option(help="Folder for the index, the messages and the deliveries.")] = Path("output"),
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[*]",
    examples: Annotated[int, typer.Option(help="How many deliveries to tell in words.")] = 5,
) -> None:
    """Run the bundled sample from end to end: index, match on Spark, deliveries into Parquet."""
    from rich.console import Console
    from rich.markup import escape

    from nearcast.pipeline.sample_run import run_sample

    console = Console()
    with console.status("preparing") as status:

        def say(stage: str) -> None:
            status.update(stage)
            console.print(f"[dim]·[/dim] {stage}")

        summary = run_sample(out, say, examples, master)
    console.print(
        f"\n[bold]{summary.deliveries:,} deliveries[/bold]: {summary.delivered_messages:,} of {summary.messages:,} messages "
        f"reached {summary.reached_subscriptions:,} of {summary.subscriptions:,} subscriptions, in {summary.seconds:.1f} s.\n"
    )
    for example in summary.examples:
        console.print(f"[green]“{escape(example.note)}”[/green] received, from {escape(example.place)}:")
        console.print(f"   {escape(_shortened(example.text))}\n")
    busiest = ", ".join(f"{name} ({count})" for name, count in summary.busiest)
    console.print(f"Busiest subscriptions: {busiest}")
    console.print(f"Deliveries: {summary.deliveries_folder} (Parquet: message_id, subscription_id)")


def _shortened(text: str, longest: int = 200) -> str:
    return text if len(text) <= longest else text[: longest - 1].rsplit(" ", 1)[0] + " …"
