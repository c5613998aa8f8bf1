"""The bundled sample from end to end: prepare, plan, index, match and rank on Spark, and a summary of the results."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearcast.pipeline.index.step import build_index
from nearcast.pipeline.io.sources import read_messages, read_subscriptions
from nearcast.pipeline.match.stream import start_match
from nearcast.pipeline.plan.shard_plan import Estimate
from nearcast.pipeline.plan.step import make_plan
from nearcast.pipeline.prepare.step import MESSAGES, QUARANTINE, prepare
from nearcast.pipeline.progress import OnNews, watch_stream
from nearcast.pipeline.ranked.sample import RankedSummary, rank_sample
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.store import StreamFolders
from nearcast.workloads import sample_messages, sample_notes, sample_subscriptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OnProgress = Callable[[str], None]

N_BATCHES = 4
N_SHARDS = 2


@dataclass(frozen=True, slots=True)
class Example:
    """One delivery in words."""

    note: str
    location: str
    text: str


@dataclass(frozen=True, slots=True)
class SampleSummary:
    """The results of a run of the sample, and the folders of its outputs."""

    subscriptions: int
    messages: int
    deliveries: int
    reached_subscriptions: int
    delivered_messages: int
    seconds: float
    busiest: list[tuple[str, int]]
    examples: list[Example]
    estimates: list[Estimate]
    mechanism: str
    ranked: RankedSummary
    folders: dict[str, str]


def run_sample(
    session: SparkSession, out: Path, on_progress: OnProgress, on_news: OnNews = lambda news: None, n_examples: int = 5
) -> SampleSummary:
    """Run every step. `on_progress` gets a line at the start of each, `on_news` every batch of the streams."""
    began = time.perf_counter()
    settings = _settings(out)
    on_progress("prepare: clean and split the texts, drop repeated ids, count words")
    prepared = prepare(session, read_messages(session, settings, is_stream=False), settings)
    subscriptions = read_subscriptions(session, settings)
    on_progress(f"plan: how to split {prepared.kept:,} messages over {settings.shards} shards")
    _, plan = make_plan(subscriptions, settings)
    on_progress(f"index: build the shards ({plan.mechanism} was cheapest)")
    build_index(session, subscriptions, settings)
    on_progress("match: the messages as a stream, deliveries exactly once into Parquet")
    _match(session, settings, on_news)
    deliveries = pq.read_table(out / StreamFolders(settings.stream).deliveries)
    on_progress("rank: the same messages, and the best three of a sliding window for every subscriber")
    ranked = rank_sample(session, settings, on_news)
    return SampleSummary(
        sample_subscriptions().num_rows,
        prepared.read,
        deliveries.num_rows,
        len(deliveries["subscription_id"].unique()),
        len(deliveries["message_id"].unique()),
        time.perf_counter() - began,
        _busiest(deliveries),
        _examples(deliveries, sample_messages(), n_examples),
        plan.others,
        plan.mechanism,
        ranked,
        {**_folders(settings), "changes of lists": ranked.folder},
    )


def _settings(out: Path) -> PipelineSettings:
    """Write the tables of the sample below `out`, where earlier results are removed; returns the settings that read them."""
    for name in ("raw", "prepared", "plans", "index", "bases", "deltas", "routing", "subscriptions", "pins", "streams"):
        shutil.rmtree(out / name, ignore_errors=True)
    (out / "raw").mkdir(parents=True)
    messages = sample_messages()
    size = -(-messages.num_rows // N_BATCHES)
    for number in range(N_BATCHES):
        pq.write_table(messages.slice(number * size, size), out / "raw" / f"messages-{number}.parquet")
    pq.write_table(sample_subscriptions(), out / "subscriptions.parquet")
    return PipelineSettings(
        work=str(out),
        messages=str(out / "raw"),
        messages_options={"maxFilesPerTrigger": 1},
        subscriptions=str(out / "subscriptions.parquet"),
        shards=N_SHARDS,
    )


def _match(session: SparkSession, settings: PipelineSettings, on_news: OnNews) -> None:
    with watch_stream(session, settings.stream, on_news):
        start_match(read_messages(session, settings, is_stream=True), settings).awaitTermination()


def _folders(settings: PipelineSettings) -> dict[str, str]:
    store = settings.store
    return {
        "deliveries": store.address(StreamFolders(settings.stream).deliveries),
        "clean messages": store.address(MESSAGES),
        "quarantine": store.address(QUARANTINE),
        "index": store.address("index"),
    }


def _busiest(deliveries: pa.Table, n: int = 3) -> list[tuple[str, int]]:
    counts = deliveries.group_by("subscription_id").aggregate([("message_id", "count")])
    top = counts.sort_by([("message_id_count", "descending"), ("subscription_id", "ascending")]).slice(0, n)
    return list(zip(top["subscription_id"].to_pylist(), top["message_id_count"].to_pylist(), strict=True))


def _examples(deliveries: pa.Table, messages: pa.Table, n: int) -> list[Example]:
    """Some deliveries, evenly spaced over the run; the same in every run."""
    ordered = deliveries.sort_by([("message_id", "ascending"), ("subscription_id", "ascending")])
    step = max(1, ordered.num_rows // max(1, n))
    notes = sample_notes()
    examples = []
    for row in range(step // 2, ordered.num_rows, step)[:n]:
        message_id, subscription_id = ordered["message_id"][row], ordered["subscription_id"][row]
        message = messages.filter(pc.equal(messages["id"], message_id)).to_pylist()[0]
        note = notes.filter(pc.equal(notes["id"], subscription_id))["note"][0].as_py()
        examples.append(Example(note, message["place"], message["text"]))
    return examples
