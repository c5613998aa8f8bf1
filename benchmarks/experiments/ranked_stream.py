"""Ranked streams: step "rank" on local Spark, batch by batch, compared with a `Ranker` of one process in the same run.

`method` is a mechanism, or "one_process". The first batch brings a full window and a few subscriptions, which the shards are
planned for. The next batches bring all other subscriptions, and then messages come. The time of a batch is the one that Spark
reports, from asking for offsets to the commit. Every batch must have the changes of the one process. At the end one shard is
lost, and restored from its last snapshot and the log since.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.experiments import Experiment, read_fields
from benchmarks.experiments.ranked_shards import METHODS, ONE_PROCESS, common_k
from benchmarks.experiments.shared.answers import combined_checksum, ranked_checksum
from benchmarks.experiments.shared.ranked_input import RankedInput
from benchmarks.plan import Series
from benchmarks.record import Record
from benchmarks.simulation.routing import visits_of
from nearcast.errors import NearcastError
from nearcast.pipeline.keeping.areas import RankedArea
from nearcast.pipeline.keeping.layouts import layout_of
from nearcast.pipeline.keeping.live_shards import LiveShards
from nearcast.pipeline.prepare.keyword_statistics import KeywordStatistics, publish_statistics
from nearcast.pipeline.progress import read_news
from nearcast.pipeline.ranked.batch_log import RankedBatch
from nearcast.pipeline.ranked.homes import FUSED
from nearcast.pipeline.ranked.layouts import RankedPlace
from nearcast.pipeline.ranked.rules import RankingRules
from nearcast.pipeline.ranked.sources import read_rows
from nearcast.pipeline.ranked.stream import start_rank
from nearcast.pipeline.session import local_session
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.store import StreamFolders
from nearcast.ranked.engine import Ranker
from nearcast.workloads import open_workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MASTER = "local[2]"
_SESSION = {"spark.driver.memory": "3g"}
_FIRST_SUBSCRIPTIONS = 5_000
_STREAM = "rank"
# Checksum and number of the changes of a batch.
Changes = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Parameters:
    k: int = 20


class RankedStream(Experiment[Parameters]):
    """One process is measured in `prepare`: every stream is compared with it."""

    subject = "method"
    methods = METHODS
    metrics = (
        "messages_per_second",
        "copies_per_subscription",
        "tuples_per_message",
        "reports_per_message",
        "floors_told_per_message",
        "told_bytes_per_message",
        "feed_bytes_per_message",
        "opening_seconds",
        "recovery_seconds",
    )

    def read_parameters(self, series: Series) -> Parameters:
        return read_fields(Parameters, series)

    def check_plan(self) -> None:
        self.k = common_k(self.plan, (parameters.k for parameters in self.parameters.values()))

    def prepare(self) -> None:
        point = self.point
        workload = open_workload(point.workload, **point.workload_parameters)
        input = RankedInput(workload, point.size, self.plan.seed, self.k)
        self.session = local_session("nearcast benchmarks", _MASTER, _SESSION)
        folder = self.resources.enter_context(tempfile.TemporaryDirectory(prefix="nearcast-bench-"))
        self.setup = _Setup(input, Path(folder))
        self.single, self.expected = _measure_one_process(self.setup)

    def measure(self, series: Series) -> Record:
        if series.subject == ONE_PROCESS:
            record = self.single
        else:
            record = _measure_stream(self.session, self.setup, series, self.expected)
        n_messages, n_changes = sum(batch.messages.num_rows for batch in self.setup.batches), sum(n for _, n in self.expected)
        record.facts["check"] = {"against": "Ranker", "messages": n_messages, "pairs": n_changes, "equal": True}
        return record


EXPERIMENT = RankedStream


class _Setup:
    """The batches of an input, written as files of two sources."""

    def __init__(self, input: RankedInput, folder: Path) -> None:
        self.input, self.folder = input, folder
        self.batches = self._batches()
        self.n_opening = len(self.batches) - input.size.warm_steps - input.size.repetitions
        for name in ("messages", "changes"):
            (folder / name).mkdir()
        for number, batch in enumerate(self.batches):
            for name, table in (("messages", batch.messages), ("changes", batch.put)):
                path = folder / name / f"{number:04d}.parquet"
                pq.write_table(table, path)
                # Spark reads files in the order of their times.
                os.utime(path, (1_000_000 + number, 1_000_000 + number))

    def _batches(self) -> list[RankedBatch]:
        """The first batch, for which shards are planned; the other subscriptions; messages to warm up with and to measure."""
        input, size = self.input, self.input.size
        n = min(_FIRST_SUBSCRIPTIONS, input.subscriptions.num_rows // 2)
        first = input.batch_of(input.subscriptions.slice(0, n), input.first_window)
        later = [input.batch(number) for number in range(size.warm_steps + size.repetitions)]
        return [first, *input.filing(n), *later]

    def settings(self, mechanism: str) -> PipelineSettings:
        work = self.folder / mechanism
        settings = PipelineSettings(
            work=str(work),
            shared_dir=str(work / "host"),
            space=self.input.space,
            max_distance=self.input.max_distance,
            stream=_STREAM,
            mechanism=mechanism,
            shards=self.input.size.shards,
            messages=str(self.folder / "messages"),
            messages_options={"maxFilesPerTrigger": 1},
            changes=str(self.folder / "changes"),
            changes_options={"maxFilesPerTrigger": 1},
            window_messages=self.input.window_messages,
            word_weights="prepared",
            # Saved once, before what is measured.
            snapshot_batches=self.n_opening + self.input.size.warm_steps,
        )
        words = sorted(self.input.idf, key=lambda word: -self.input.idf[word])
        counts = np.array([self.input.idf[word] for word in words], np.int64)
        counted = KeywordStatistics.from_counts(pa.array(words), counts, self.input.window_messages, settings.analysis)
        publish_statistics(settings.store, counted, settings.analysis)
        return settings

    def measured(self) -> range:
        return range(len(self.batches) - self.input.size.repetitions, len(self.batches))


def _measure_one_process(setup: _Setup) -> tuple[Record, list[Changes]]:
    """The changes that a `Ranker` reports for each batch, and its times without files."""
    settings = setup.settings("hashing")
    ranker = Ranker(**RankingRules.of(settings).engine_settings(settings.store))
    seconds, changes = [], []
    for batch in setup.batches:
        began = time.perf_counter()
        parts = [ranker.subscribe_table(batch.put), ranker.publish_table(batch.messages)]
        seconds.append(time.perf_counter() - began)
        changes.append(_summed(parts))
    return _record(setup, seconds, {"n_shards": 1, "bytes": ranker.stats()["bytes"]}), changes


def _measure_stream(session: SparkSession, setup: _Setup, series: Series, expected: list[Changes]) -> Record:
    settings = setup.settings(series.subject)
    stream = start_rank(read_rows(session, settings), settings)
    stream.awaitTermination()
    news = [read_news(progress.json) for progress in stream.recentProgress]
    seconds = {one.batch: one.batch_seconds for one in news}
    if sorted(seconds) != list(range(len(setup.batches))):
        raise NearcastError(f"{series.label!r} ran the batches {sorted(seconds)}; expected {len(setup.batches)} of them")
    compare_deliveries(series.label, Path(settings.work), expected)
    facts = {"master": _MASTER, "n_shards": settings.shards, **_communication(setup, settings)}
    record = _record(setup, [seconds[number] for number in range(len(setup.batches))], facts)
    # The process that holds the shards ends with the folder.
    shutil.rmtree(settings.work)
    return record


def _record(setup: _Setup, seconds: list[float], facts: dict[str, Any]) -> Record:
    input = setup.input
    common = {
        "workload": input.workload_facts,
        "n_subscriptions": input.subscriptions.num_rows,
        "window": input.window_messages,
        "opening_seconds": sum(seconds[: setup.n_opening]),
    }
    measured = [seconds[number] for number in setup.measured()]
    return Record({**common, **facts}, np.array([measured]), np.full(len(measured), input.size.n_messages))


def compare_deliveries(label: str, work: Path, expected: Sequence[Changes]) -> None:
    """Compare every batch of the sink with one process; NearcastError if they differ."""
    for number, (checksum, n_changes) in enumerate(expected):
        files = sorted((work / StreamFolders(_STREAM).deliveries / f"batch={number}").glob("*.parquet"))
        delivered = _summed([pq.read_table(file, partitioning=None) for file in files])
        if delivered != (checksum, n_changes):
            raise NearcastError(
                f"{label!r} reports {delivered[1]} changes of batch {number} where one process reports {n_changes}, or others; "
                "its times are worth nothing: correct the stream first"
            )


def _summed(parts: Sequence[pa.Table]) -> Changes:
    """Checksum and number of changes in several tables."""
    checksums = [ranked_checksum(part) for part in parts if part.num_rows]
    return combined_checksum(checksums), sum(part.num_rows for part in parts)


# --- what shards reported to each other, and how long it takes to lose one --------------------------------------------------


def _communication(setup: _Setup, settings: PipelineSettings) -> dict[str, Any]:
    rules = RankingRules.of(settings)
    place = _place(settings, rules, len(setup.batches) - 1)
    messages = pa.concat_tables([setup.batches[number].messages for number in setup.measured()])
    facts: dict[str, Any] = {
        "n_tuples": int(visits_of(place.plan_copy(), messages.combine_chunks()).sum()),
        "feed_bytes": messages.nbytes * settings.shards,
        "recovery_seconds": _recovery_seconds(place, setup.measured()[-1]),
    }
    store, area = settings.store, place.area
    last_saved = f"{area.snapshots(place.layout.number)}/{setup.measured()[0] - 1:08d}"
    if settings.mechanism in FUSED:
        copies = setup.input.subscriptions.num_rows
    else:
        names = [f"{last_saved}/{shard}/copies.arrow" for shard in range(settings.shards)]
        copies = sum(pa.ipc.open_stream(store.read_bytes(name)).read_all().num_rows for name in names)
    facts["copies_per_subscription"] = copies / setup.input.subscriptions.num_rows
    rows = {"reports": 0, "floors": 0}
    n_bytes = 0
    for number in setup.measured():
        for folder in store.names(area.told(number)):
            for name in store.names(f"{area.told(number)}/{folder}"):
                content = store.read_bytes(f"{area.told(number)}/{folder}/{name}")
                rows["floors" if folder == "floors" else "reports"] += pa.ipc.open_stream(content).read_all().num_rows
                n_bytes += len(content)
    return {**facts, "n_reports": rows["reports"], "n_floors": rows["floors"], "told_bytes": n_bytes}


def _place(settings: PipelineSettings, rules: RankingRules, number: int) -> RankedPlace:
    layout = layout_of(settings.store, RankedArea(settings.stream), number)
    assert layout is not None
    return RankedPlace(settings.store, settings.shared_dir, settings.stream, rules, layout)


def _recovery_seconds(place: RankedPlace, number: int) -> float:
    """Seconds to restore a shard in a process that has nothing, as after losing it, and to save it."""
    began = time.perf_counter()
    LiveShards().snapshot(place, 0, number, place.batch(number).mark)
    return time.perf_counter() - began
