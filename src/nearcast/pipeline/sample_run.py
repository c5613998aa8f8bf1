"""The bundled sample from end to end: prepare, plan, index, match and rank on Spark, then tell what came out."""

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
from nearcast.pipeline.progress import Hear, listening
from nearcast.pipeline.ranked.sample import RankedSummary, rank_sample
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.stream_folders import StreamArea
from nearcast.workloads import sample_messages, sample_notes, sample_subscriptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Say = Callable[[str], None]

N_BATCHES = 4
N_SHARDS = 2


@dataclass(frozen=True, slots=True)
class Example:
    """One delivery in words."""

    note: str
    place: str
    text: str


@dataclass(frozen=True, slots=True)
class SampleSummary:
    """What a run of the sample did, and where its outputs are."""

    subscriptions: int
    messages: int
    deliveries: int
    reached_subscriptions: int
    delivered_messages: int
    seconds: float
    busiest: list[tuple[str, int]]
    examples: list[Example]
    estimates: list[Estimate]
    chosen: str
    ranked: RankedSummary
    folders: dict[str, str]


def run_sample(
    session: SparkSession, out: Path, say: Say, hear: Hear = lambda news: None, n_examples: int = 5
) -> SampleSummary:
    """Run every step; `say` hears one line as each begins, `hear` every batch of the stream."""
    began = time.perf_counter()
    settings = _settings(out)
    say("prepare: clean and split the texts, drop repeated ids, count words")
    prepared = prepare(session, read_messages(session, settings, is_stream=False), settings)
    subscriptions = read_subscriptions(session, settings)
    say(f"plan: how to share {prepared.kept:,} messages out to {settings.shards} shards")
    _, plan = make_plan(subscriptions, settings)
    say(f"index: build the shards ({plan.mechanism} was cheapest)")
    build_index(session, subscriptions, settings)
    say("match: the messages as a stream, deliveries exactly once into Parquet")
    _match(session, settings, hear)
    deliveries = pq.read_table(out / StreamArea(settings.stream).deliveries)
    say("rank: the same messages, and the best three of a sliding window for every subscriber")
    ranked = rank_sample(session, settings, hear)
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
    """The sample's tables as files below `out`, and the settings that read them; what an earlier run left is removed."""
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


def _match(session: SparkSession, settings: PipelineSettings, hear: Hear) -> None:
    with listening(session, settings.stream, hear):
        start_match(read_messages(session, settings, is_stream=True), settings).awaitTermination()


def _folders(settings: PipelineSettings) -> dict[str, str]:
    store = settings.store
    return {
        "deliveries": store.address(StreamArea(settings.stream).deliveries),
        "clean messages": store.address(MESSAGES),
        "quarantine": store.address(QUARANTINE),
        "index": store.address("index"),
    }


def _busiest(deliveries: pa.Table, n: int = 3) -> list[tuple[str, int]]:
    counts = deliveries.group_by("subscription_id").aggregate([("message_id", "count")])
    top = counts.sort_by([("message_id_count", "descending"), ("subscription_id", "ascending")]).slice(0, n)
    return list(zip(top["subscription_id"].to_pylist(), top["message_id_count"].to_pylist(), strict=True))


def _examples(deliveries: pa.Table, messages: pa.Table, n: int) -> list[Example]:
    """Deliveries spread over the run, of different subscriptions, in the same order every time."""
    ordered = deliveries.sort_by([("message_id", "ascending"), ("subscription_id", "ascending")])
    step = max(1, ordered.num_rows // max(1, n))
    notes = sample_notes()
    told = []
    for row in range(step // 2, ordered.num_rows, step)[:n]:
        message_id, subscription_id = ordered["message_id"][row], ordered["subscription_id"][row]
        message = messages.filter(pc.equal(messages["id"], message_id)).to_pylist()[0]
        note = notes.filter(pc.equal(notes["id"], subscription_id))["note"][0].as_py()
        told.append(Example(note, message["place"], message["text"]))
    return told
