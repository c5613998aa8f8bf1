"""The bundled sample from end to end: index its subscriptions, match its messages on Spark, tell what came out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearcast.engines.boolean import Matcher
from nearcast.pipeline.job import match_files
from nearcast.pipeline.session import local_session
from nearcast.workloads import sample_messages, sample_notes, sample_subscriptions

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Example:
    """One delivery in words."""

    note: str
    place: str
    text: str


@dataclass(frozen=True, slots=True)
class SampleSummary:
    """What a run of the sample did."""

    subscriptions: int
    messages: int
    deliveries: int
    reached_subscriptions: int
    delivered_messages: int
    seconds: float
    busiest: list[tuple[str, int]]
    examples: list[Example]
    deliveries_folder: Path


def run_sample(out: Path, say: Say, n_examples: int = 5, master: str = "local[*]") -> SampleSummary:
    """Run every stage; `say` hears one line as each begins."""
    began = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    messages, subscriptions = sample_messages(), sample_subscriptions()
    say(f"indexing {subscriptions.num_rows:,} subscriptions")
    matcher = Matcher()
    matcher.subscribe_table(subscriptions)
    index_folder, deliveries_folder = out / "index", out / "deliveries"
    matcher.save(index_folder)
    messages_file = out / "messages.parquet"
    # Small row groups, so that several tasks share the work.
    pq.write_table(messages, messages_file, row_group_size=1000)
    say("starting Spark")
    session = local_session("nearcast sample", master)
    say(f"matching {messages.num_rows:,} messages")
    match_files(session, str(messages_file), str(index_folder.resolve()), "string", str(deliveries_folder))
    deliveries = pq.read_table(deliveries_folder)
    return SampleSummary(
        subscriptions.num_rows,
        messages.num_rows,
        deliveries.num_rows,
        len(deliveries["subscription_id"].unique()),
        len(deliveries["message_id"].unique()),
        time.perf_counter() - began,
        _busiest(deliveries),
        _examples(deliveries, messages, n_examples),
        deliveries_folder,
    )


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
