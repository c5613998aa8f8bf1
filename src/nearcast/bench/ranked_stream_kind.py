"""Kind "ranked_stream": step "rank" on local Spark, batch by batch, beside a `Ranker` of one process in the same run.

`method` is a mechanism, or "one_process". The first batch brings a few subscriptions, by which the shards are cut, and a full
window; the next ones file everybody else; then messages come. Timed is a whole batch as Spark reports it, from asking for
offsets to the commit. Every batch must bring the changes of the one process. At the end one shard is lost, and made again from
its last snapshot and the log since.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.bench.change_sums import sum_of_changes
from nearcast.bench.message_visits import visits_of
from nearcast.bench.plan import Plan, Point, Series
from nearcast.bench.ranked_shards_kind import METHODS, ONE_PROCESS, check_ranked_series
from nearcast.bench.ranked_story import RankedStory
from nearcast.bench.record import Record
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
Told = tuple[int, int]


class _Scene:
    """The batches of a story as files of two sources, and what one process says of each."""

    def __init__(self, story: RankedStory, folder: Path) -> None:
        self.story, self.folder = story, folder
        self.batches = self._batches()
        self.n_opening = len(self.batches) - story.size.warm_steps - story.size.repetitions
        for name in ("messages", "changes"):
            (folder / name).mkdir()
        for number, batch in enumerate(self.batches):
            for name, table in (("messages", batch.messages), ("changes", batch.put)):
                path = folder / name / f"{number:04d}.parquet"
                pq.write_table(table, path)
                # Spark takes files by their times.
                os.utime(path, (1_000_000 + number, 1_000_000 + number))

    def _batches(self) -> list[RankedBatch]:
        """A first one that the shards are cut by, everybody else, the messages to get warm and to be measured."""
        story, size = self.story, self.story.size
        n = min(_FIRST_SUBSCRIPTIONS, story.subscriptions.num_rows // 2)
        first = story.batch_of(story.subscriptions.slice(0, n), story.first_window)
        later = [story.batch(number) for number in range(size.warm_steps + size.repetitions)]
        return [first, *story.filing(n), *later]

    def settings(self, mechanism: str) -> PipelineSettings:
        work = self.folder / mechanism
        settings = PipelineSettings(
            work=str(work),
            shared_dir=str(work / "host"),
            space=self.story.space,
            max_distance=self.story.max_distance,
            stream=_STREAM,
            mechanism=mechanism,
            shards=self.story.size.shards,
            messages=str(self.folder / "messages"),
            messages_options={"maxFilesPerTrigger": 1},
            changes=str(self.folder / "changes"),
            changes_options={"maxFilesPerTrigger": 1},
            window_messages=self.story.window_messages,
            word_weights="prepared",
            # Saved once, before what is measured.
            snapshot_batches=self.n_opening + self.story.size.warm_steps,
        )
        words = sorted(self.story.idf, key=lambda word: -self.story.idf[word])
        counts = np.array([self.story.idf[word] for word in words], np.int64)
        counted = KeywordStatistics.from_counts(pa.array(words), counts, self.story.window_messages, settings.analysis)
        publish_statistics(settings.store, counted, settings.analysis)
        return settings

    def measured(self) -> range:
        return range(len(self.batches) - self.story.size.repetitions, len(self.batches))


def measure_ranked_stream(plan: Plan, point: Point, say: Callable[[str], None]) -> list[Record]:
    """One record per series."""
    k = check_ranked_series(plan, point.series, METHODS, ("k",))
    say("generating")
    story = RankedStory(open_workload(point.workload, **point.workload_parameters), point.size, plan.seed, k)
    session = local_session("nearcast bench", _MASTER, _SESSION)
    records = []
    with tempfile.TemporaryDirectory(prefix="nearcast-bench-") as folder:
        scene = _Scene(story, Path(folder))
        say("one process")
        single, expected = _measure_one_process(scene)
        for series in point.series:
            say(series.label)
            record = single if series.subject == ONE_PROCESS else _measure_stream(session, scene, series, expected)
            n_messages = sum(batch.messages.num_rows for batch in scene.batches)
            record.facts["check"] = {
                "against": "Ranker",
                "messages": n_messages,
                "pairs": sum(told[1] for told in expected),
                "equal": True,
            }
            records.append(record)
    return records


def _measure_one_process(scene: _Scene) -> tuple[Record, list[Told]]:
    """What a `Ranker` says of each batch, and its times without files."""
    settings = scene.settings("hashing")
    ranker = Ranker(**RankingRules.of(settings).engine_settings(settings.store))
    seconds, told = [], []
    for batch in scene.batches:
        began = time.perf_counter()
        parts = [ranker.subscribe_table(batch.put), ranker.publish_table(batch.messages)]
        seconds.append(time.perf_counter() - began)
        sums = [sum_of_changes(part) for part in parts if part.num_rows]
        told.append((sum(sums) % (1 << 64), sum(part.num_rows for part in parts)))
    return _record(scene, seconds, {"n_shards": 1, "bytes": ranker.stats()["bytes"]}), told


def _measure_stream(session: SparkSession, scene: _Scene, series: Series, expected: list[Told]) -> Record:
    settings = scene.settings(series.subject)
    stream = start_rank(read_rows(session, settings), settings)
    stream.awaitTermination()
    news = [read_news(progress.json) for progress in stream.recentProgress]
    seconds = {one.batch: one.batch_seconds for one in news}
    if sorted(seconds) != list(range(len(scene.batches))):
        raise NearcastError(f"{series.label!r} ran the batches {sorted(seconds)}; expected {len(scene.batches)} of them")
    compare_deliveries(series.label, Path(settings.work), expected)
    facts = {"master": _MASTER, "n_shards": settings.shards, **_counted(scene, settings)}
    record = _record(scene, [seconds[number] for number in range(len(scene.batches))], facts)
    # Its keeper ends with the folder.
    shutil.rmtree(settings.work)
    return record


def _record(scene: _Scene, seconds: list[float], facts: dict[str, Any]) -> Record:
    story = scene.story
    common = {
        "workload": story.described,
        "n_subscriptions": story.subscriptions.num_rows,
        "window": story.window_messages,
        "opening_seconds": sum(seconds[: scene.n_opening]),
    }
    measured = [seconds[number] for number in scene.measured()]
    return Record({**common, **facts}, np.array([measured]), np.full(len(measured), story.size.n_messages))


def compare_deliveries(label: str, work: Path, expected: list[Told]) -> None:
    """Every batch of the sink against one process."""
    for number, told in enumerate(expected):
        files = sorted((work / StreamFolders(_STREAM).deliveries / f"batch={number}").glob("*.parquet"))
        tables = [pq.read_table(file, partitioning=None) for file in files]
        filled = [table for table in tables if table.num_rows]
        found = (sum(sum_of_changes(table) for table in filled) % (1 << 64), sum(table.num_rows for table in filled))
        if found != told:
            raise NearcastError(
                f"{label!r} tells {found[1]} changes of batch {number} where one process tells {told[1]}, or others; "
                "its times are worth nothing: correct the stream first"
            )


# --- what shards told each other, and what it takes to lose one -----------------------------------------------------------


def _counted(scene: _Scene, settings: PipelineSettings) -> dict[str, Any]:
    rules = RankingRules.of(settings)
    place = _place(settings, rules, len(scene.batches) - 1)
    messages = pa.concat_tables([scene.batches[number].messages for number in scene.measured()])
    facts: dict[str, Any] = {
        "n_tuples": int(visits_of(place.plan_copy(), messages.combine_chunks()).sum()),
        "feed_bytes": messages.nbytes * settings.shards,
        "recovery_seconds": _recovered(place, scene.measured()[-1]),
    }
    store, area = settings.store, place.area
    last_saved = f"{area.snapshots(place.layout.number)}/{scene.measured()[0] - 1:08d}"
    if settings.mechanism in FUSED:
        copies = scene.story.subscriptions.num_rows
    else:
        names = [f"{last_saved}/{shard}/copies.arrow" for shard in range(settings.shards)]
        copies = sum(pa.ipc.open_stream(store.read_bytes(name)).read_all().num_rows for name in names)
    facts["copies_per_subscription"] = copies / scene.story.subscriptions.num_rows
    rows = {"reports": 0, "floors": 0}
    n_bytes = 0
    for number in scene.measured():
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


def _recovered(place: RankedPlace, number: int) -> float:
    """Seconds to make a shard again in a process that has nothing, as after losing it; and to save it."""
    began = time.perf_counter()
    LiveShards().snapshot(place, 0, number, place.batch(number).mark)
    return time.perf_counter() - began
