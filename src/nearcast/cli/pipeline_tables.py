"""The results of the pipeline's steps, as readable tables and lines."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import TYPE_CHECKING

from nearcast.cli.console import results, table_of

if TYPE_CHECKING:
    from rich.table import Table

    from nearcast.pipeline.index.version import IndexVersion
    from nearcast.pipeline.plan.shard_plan import Estimate, ShardPlan
    from nearcast.pipeline.prepare.step import PrepareSummary
    from nearcast.pipeline.progress import StreamNews
    from nearcast.pipeline.ranked.sample import RankedSummary
    from nearcast.pipeline.sample_run import SampleSummary
    from nearcast.pipeline.settings import PipelineSettings
    from nearcast.pipeline.status import StreamStatus


def show_prepared(prepared: PrepareSummary, settings: PipelineSettings) -> None:
    console = results()
    console.print(
        f"{prepared.read:,} rows: {prepared.kept:,} messages kept, {prepared.quarantined:,} quarantined, "
        f"{prepared.repeated:,} repeated ids; {prepared.distinct_keywords:,} keywords, "
        f"{prepared.keywords_per_message:.1f} per message"
    )
    if prepared.reasons:
        rows = [(f"{count:,}", reason) for reason, count in prepared.reasons.items()]
        console.print(table_of(("rows", "reason"), rows, "Quarantine"))
    console.print(f"in {settings.store.address('prepared')}", markup=False)


def estimates_table(estimates: list[Estimate], mechanism: str) -> Table:
    """The expected cost of every mechanism, the cheapest first."""
    from nearcast.pipeline.plan.step import balance_bars

    rows = [
        (
            f"{'→ ' if estimate.mechanism == mechanism else '  '}{estimate.mechanism}",
            f"{estimate.replication:.2f}",
            f"{estimate.communication:.2f}",
            balance_bars(estimate.load),
            f"{estimate.balance:.2f}",
            f"{estimate.cost:.2f}",
        )
        for estimate in sorted(estimates, key=lambda estimate: estimate.cost)
    ]
    header = ("mechanism", "copies per subscription", "shards per message", "load", "balance", "µs per message")
    return table_of(header, rows, "Expected cost, from a sample")


def show_plan(version: int, plan: ShardPlan) -> None:
    console = results()
    console.print(estimates_table(plan.others, plan.mechanism))
    console.print(f"plan {version}: {plan.n_shards} shards by {plan.mechanism}")


def show_index(version: IndexVersion) -> None:
    rows = [
        (str(number), f"{shard.n_subscriptions:,}", f"{shard.n_bytes / 2**20:,.1f}")
        for number, shard in enumerate(version.shards)
    ]
    console = results()
    console.print(table_of(("shard", "subscriptions", "MiB"), rows))
    console.print(
        f"index version {version.number} is current: plan {version.plan}, {len(version.deltas)} deltas on top of the shards"
    )


def show_status(status: StreamStatus) -> None:
    from nearcast.pipeline.keeping.layouts import Layout
    from nearcast.pipeline.match.step import ShardWork

    total = sum(work.seconds for work in status.work.values()) or 1.0
    rows = []
    for number in range(status.version.n_shards):
        work = status.work.get(number, ShardWork())
        cells = (work.messages, work.deliveries, work.candidates)
        rows.append((str(number), *[f"{cell:,}" for cell in cells], f"{work.seconds:.2f}", f"{work.seconds / total:.0%}"))
    console = results()
    console.print(table_of(("shard", "messages", "deliveries", "candidates", "seconds", "load"), rows))
    last = status.batches[-1]
    # Streams with state read changes of subscriptions in addition to messages.
    has_state = isinstance(status.version, Layout)
    read, result_name = ("rows", "changes") if has_state else ("messages", "deliveries")
    console.print(
        f"{len(status.batches)} batches up to {last.batch}: {status.messages:,} {read}, "
        f"{sum(batch.deliveries for batch in status.batches):,} {result_name}, "
        f"{sum(batch.quarantined for batch in status.batches):,} quarantined, {status.messages_per_second:,.0f} {read}/s"
    )
    version_name = "layout" if has_state else "index version"
    console.print(
        f"{version_name} {status.version.number}, {status.mechanism}, balance {status.balance:.2f}; last batch: {last.mode}"
    )


def news_line(news: StreamNews) -> str:
    return f"  batch {news.batch}: {news.rows:,} messages in {news.batch_seconds:.1f} s ({news.rows_per_second:,.0f}/s)"


def show_sample(summary: SampleSummary) -> None:
    console = results()
    console.print(estimates_table(summary.estimates, summary.mechanism))
    console.print(
        f"{summary.deliveries:,} deliveries: {summary.delivered_messages:,} of {summary.messages:,} messages "
        f"reached {summary.reached_subscriptions:,} of {summary.subscriptions:,} subscriptions, in {summary.seconds:.1f} s.\n",
        style="bold",
    )
    for example in summary.examples:
        console.print(f"“{example.note}” received, from {example.location}:", style="green", markup=False, soft_wrap=True)
        console.print(f"   {_shorten(example.text)}\n", markup=False, soft_wrap=True)
    console.print("Busiest subscriptions: " + ", ".join(f"{name} ({count})" for name, count in summary.busiest), markup=False)
    _show_ranked(summary.ranked)
    for content, folder in summary.folders.items():
        console.print(f"{content}: {folder}", markup=False, soft_wrap=True)


def _show_ranked(ranked: RankedSummary) -> None:
    console = results()
    console.print(
        f"\nRanked: {ranked.changes:,} changes of the lists of {ranked.subscriptions:,} subscriptions.\n", style="bold"
    )
    for example in ranked.stories:
        console.print(f"“{example.note}” The top list over time:", style="green", markup=False, soft_wrap=True)
        for number, best in enumerate(example.lists, 1):
            entries = "; ".join(f"{location}: {_shorten(text, 60)}" for location, text in best) or "nothing"
            console.print(f"   {number}. {entries}", markup=False, soft_wrap=True)
        console.print()


def settings_table() -> Table:
    from nearcast.pipeline.settings import PipelineSettings

    rows = []
    for setting in fields(PipelineSettings):
        default = setting.default if setting.default is not MISSING else {}
        rows.append((setting.name, repr(default), setting.metadata["help"]))
    return table_of(("setting", "default", "meaning"), rows)


def _shorten(text: str, limit: int = 200) -> str:
    return text if len(text) <= limit else text[: limit - 1].rsplit(" ", 1)[0] + " …"
