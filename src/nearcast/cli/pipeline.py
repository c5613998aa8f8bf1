"""`nearcast pipeline …`: the engines on Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearcast.cli.console import remarks, results
from nearcast.cli.options import read_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from nearcast.pipeline.progress import StreamNews
    from nearcast.pipeline.settings import PipelineSettings

app = typer.Typer(help="The data pipeline on Spark.", no_args_is_help=True)
_File = Annotated[Path | None, typer.Option("--settings", help="TOML file of settings.")]
_Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting; may be repeated.")]


@app.callback()
def pipeline() -> None:
    """The data pipeline on Spark. `nearcast pipeline settings` lists what can be set."""


@app.command()
def prepare(file: _File = None, overrides: _Set = None) -> None:
    """Clean raw messages, split texts, drop repeated ids, count words, keep a sample."""
    from nearcast.cli.pipeline_tables import show_prepared
    from nearcast.pipeline.io.sources import read_messages
    from nearcast.pipeline.prepare.step import prepare as run_prepare

    settings = _settings(file, overrides)
    with _session(settings) as session:
        show_prepared(run_prepare(session, read_messages(session, settings, is_stream=False), settings), settings)


@app.command()
def plan(
    file: _File = None,
    overrides: _Set = None,
    plot: Annotated[Path | None, typer.Option(help="File for a picture of the expected loads (.png, .svg).")] = None,
) -> None:
    """Plan how to split the work over shards: the expected cost of each mechanism, and the cheapest plan."""
    from nearcast.cli.pipeline_tables import show_plan
    from nearcast.pipeline.io.sources import read_subscriptions
    from nearcast.pipeline.plan.step import make_plan, plot_estimates

    settings = _settings(file, overrides)
    with _session(settings) as session:
        version, shard_plan = make_plan(read_subscriptions(session, settings), settings, _show_progress)
    show_plan(version, shard_plan)
    if plot is not None:
        plot_estimates(shard_plan.others, plot)
        typer.echo(str(plot))


@app.command()
def index(
    file: _File = None,
    overrides: _Set = None,
    changes: Annotated[
        str | None,
        typer.Option(
            help="Parquet file, folder or address (hdfs://, s3://, gs://) of changes instead of the whole table: subscriptions "
            "with a column change, 1 or -1."
        ),
    ] = None,
    pack: Annotated[bool, typer.Option("--pack", help="Only merge the deltas into the shards.")] = False,
) -> None:
    """Build the shards of the current plan, or publish changed subscriptions as a delta."""
    from nearcast.cli.pipeline_tables import show_index
    from nearcast.pipeline.index.deltas import pack_deltas, publish_changes
    from nearcast.pipeline.index.step import build_index
    from nearcast.pipeline.index.version import current_index
    from nearcast.pipeline.io.sources import read_subscriptions

    settings = _settings(file, overrides)
    if changes is not None:
        import pyarrow.parquet as pq

        version = publish_changes(pq.read_table(changes), settings)
        pack = len(version.deltas) >= settings.max_deltas
    if changes is None or pack:
        with _session(settings) as session:
            if pack:
                version = pack_deltas(session, settings)
            else:
                # Subscriptions of the current index include the changes of the topic up to its position.
                position = current_index(settings.store).taken if settings.subscriptions_format == "index" else ""
                version = build_index(session, read_subscriptions(session, settings), settings, _show_progress, position)
    show_index(version)


@app.command()
def match(file: _File = None, overrides: _Set = None) -> None:
    """Match a stream of messages. Deliveries go to the sink; exactly once to Parquet and Delta."""
    from nearcast.cli.pipeline_tables import show_status
    from nearcast.pipeline.io.sources import read_messages
    from nearcast.pipeline.match.stream import start_match
    from nearcast.pipeline.status import stream_status

    settings = _settings(file, overrides)
    with _session(settings) as session, _progress(session, settings):
        start_match(read_messages(session, settings, is_stream=True), settings).awaitTermination()
    show_status(stream_status(settings))


@app.command()
def rank(file: _File = None, overrides: _Set = None) -> None:
    """Maintain the top list of every ranked subscription. Changes go to the sink; exactly once to Parquet and Delta."""
    from nearcast.cli.pipeline_tables import show_status
    from nearcast.pipeline.ranked.sources import read_rows
    from nearcast.pipeline.ranked.stream import start_rank
    from nearcast.pipeline.status import stream_status

    settings = _settings(file, overrides, stream="rank")
    with _session(settings) as session, _progress(session, settings):
        start_rank(read_rows(session, settings), settings).awaitTermination()
    show_status(stream_status(settings))


@app.command()
def track(file: _File = None, overrides: _Set = None) -> None:
    """Maintain the messages in the region of every moving subscription. Changes go to the sink, as for rank."""
    from nearcast.cli.pipeline_tables import show_status
    from nearcast.pipeline.status import stream_status
    from nearcast.pipeline.tracked.sources import read_rows
    from nearcast.pipeline.tracked.stream import start_track

    settings = _settings(file, overrides, stream="track")
    with _session(settings) as session, _progress(session, settings):
        start_track(read_rows(session, settings), settings).awaitTermination()
    show_status(stream_status(settings))


@app.command()
def status(file: _File = None, overrides: _Set = None) -> None:
    """Show the load of each shard over the last batches."""
    from nearcast.cli.pipeline_tables import show_status
    from nearcast.pipeline.status import stream_status

    show_status(stream_status(_settings(file, overrides)))


@app.command()
def rebalance(
    file: _File = None,
    overrides: _Set = None,
    shards: Annotated[int | None, typer.Option(min=1, help="Number of shards from now on; default: as many as now.")] = None,
) -> None:
    """Split the busiest shards and merge the idlest. A running stream uses the new shards from its next batch."""
    from nearcast.cli.pipeline_tables import show_index
    from nearcast.pipeline.keeping.wishes import area_with_shards, wish_layout
    from nearcast.pipeline.rebalance import rebalance as run_rebalance

    settings = _settings(file, overrides)
    if area_with_shards(settings) is not None:
        layout = wish_layout(settings, shards)
        results().print(
            f"layout {layout.number}: {layout.n_shards} shards by {layout.mechanism}; the next batch uses a new one"
        )
        return
    with _session(settings) as session:
        show_index(run_rebalance(session, settings, shards, _show_progress))


@app.command("settings")
def list_settings() -> None:
    """List the settings with their defaults."""
    from nearcast.cli.pipeline_tables import settings_table

    results().print(settings_table())


@app.command()
def run(
    out: Annotated[Path, typer.Option(help="Folder for everything the run writes.")] = Path("output"),
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[*]",
    examples: Annotated[int, typer.Option(help="Number of deliveries to show.")] = 5,
) -> None:
    """Run the bundled sample from end to end: prepare, plan, index, match, rank."""
    from nearcast.cli.pipeline_tables import news_line, show_sample
    from nearcast.pipeline.sample_run import run_sample
    from nearcast.pipeline.settings import PipelineSettings

    console = remarks()
    with console.status("preparing") as status_line:

        def on_progress(stage: str) -> None:
            status_line.update(stage)
            console.print(f"· {stage}", style="dim", markup=False)

        def on_news(news: StreamNews) -> None:
            console.print(news_line(news), style="dim", markup=False)

        on_progress("starting Spark")
        with _session(PipelineSettings(work=str(out), master=master)) as session:
            summary = run_sample(session, out, on_progress, on_news, examples)
    show_sample(summary)


def _settings(file: Path | None, options: list[str] | None, **defaults: Any) -> PipelineSettings:
    from nearcast.pipeline.settings import read_pipeline_settings

    return read_pipeline_settings(file, read_settings(options or ()), defaults)


@contextmanager
def _session(settings: PipelineSettings) -> Iterator[SparkSession]:
    """A session for one step. An existing one stays open afterwards."""
    from nearcast.pipeline.session import has_session, open_session

    is_ours = not has_session()
    session = open_session("nearcast", settings.master, settings.session_settings)
    try:
        yield session
    finally:
        if is_ours:
            session.stop()


@contextmanager
def _progress(session: SparkSession, settings: PipelineSettings) -> Iterator[None]:
    """Show a line on standard error for every batch."""
    from nearcast.cli.pipeline_tables import news_line
    from nearcast.pipeline.progress import watch_stream

    status_line = remarks().status("waiting for messages")
    with status_line, watch_stream(session, settings.stream, lambda news: status_line.update(news_line(news))):
        yield


def _show_progress(stage: str) -> None:
    remarks().print(f"· {stage}", style="dim", markup=False)
