"""Step "rank" on a real session gives the changes of one process, batch by batch, whatever happens to its tasks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearcast as nc
from nearcast.pipeline.io.sinks import ParquetSink, without_repeats
from nearcast.pipeline.keeping.areas import RankedArea
from nearcast.pipeline.keeping.wishes import wish_layout
from nearcast.pipeline.ranked.batch_log import RankedBatch
from nearcast.pipeline.ranked.rules import RankingRules
from nearcast.pipeline.ranked.sources import named_changes, read_rows
from nearcast.pipeline.ranked.sources import rows_of as rows_of_frames
from nearcast.pipeline.ranked.stream import RankedRunner, start_rank
from nearcast.pipeline.settings import MECHANISMS, PipelineSettings
from nearcast.pipeline.status import read_batches, stream_status
from nearcast.pipeline.store import StreamFolders
from nearcast.testing.budget import current_budget
from support.ranked_input import Change, StreamMaker, as_changes, changes_of, incident_batches, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark_lists"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

CELLS = [
    (mechanism, n_shards, window, size)
    for mechanism in MECHANISMS
    for n_shards in (1, 4, 8)
    for window, size in (("count", 5), ("time", 40))
]


class Scene:
    """A ranked stream with what one process says of it."""

    def __init__(self, spark: SparkSession, folder: Path, seed: int, most_messages: int = 30, **given: object) -> None:
        self.spark, self.folder = spark, folder
        for name in ("messages", "changes"):
            (folder / name).mkdir()
        self.settings = replace(
            PipelineSettings(
                work=str(folder / "work"),
                shared_dir=str(folder / "host"),
                space="plane",
                max_distance=14.0,
                stream="rank",
                messages=str(folder / "messages"),
                messages_options={"maxFilesPerTrigger": 1},
                changes=str(folder / "changes"),
                changes_options={"maxFilesPerTrigger": 1},
                window_messages=25,
                snapshot_batches=3,
            ),
            **given,  # type: ignore[arg-type]
        )
        self.maker = StreamMaker(seed, most_messages=most_messages)
        self.ranker = nc.Ranker(**RankingRules.of(self.settings).engine_settings(self.settings.store))
        self.expected: list[list[Change]] = []

    def add(self, batch: RankedBatch) -> None:
        """A file in each of the sources, in which the next batch finds them."""
        number = len(self.expected)
        for name, table in (("messages", batch.messages), ("changes", as_changes(batch))):
            aside = self.folder / f"{name}-{number:04d}"
            # The rows in an order that is not that of their times.
            pq.write_table(table.take(pa.array(range(table.num_rows)[::-1], pa.int64())), aside)
            os.utime(aside, (1_000_000 + number, 1_000_000 + number))
            aside.rename(self.folder / name / f"{number:04d}.parquet")
        self.expected.append(changes_of(self.ranker, batch))

    def add_batches(self, n: int) -> None:
        for _ in range(n):
            self.add(self.maker.batch(is_first=not self.expected))

    def run(self, rows: DataFrame | None = None) -> None:
        start_rank(read_rows(self.spark, self.settings) if rows is None else rows, self.settings).awaitTermination()

    def check(self) -> None:
        folder = Path(self.settings.work) / StreamFolders("rank").deliveries
        for number, expected in enumerate(self.expected):
            found = sorted(rows_of(pq.read_table(folder / f"batch={number}", partitioning=None)))
            assert found == expected, number
        assert [batch.batch for batch in read_batches(self.settings)] == list(range(len(self.expected)))
        assert sum(len(changes) for changes in self.expected) > 0


@pytest.mark.skipif(not current_budget().is_soak, reason="the test below has some of them; all: make soak")
@pytest.mark.parametrize(("mechanism", "n_shards", "window", "size"), CELLS)
def test_the_stream_tells_the_changes_of_one_process(
    spark: SparkSession, tmp_path: Path, mechanism: str, n_shards: int, window: str, size: int
) -> None:
    seconds = 25.0 if window == "time" else 0.0
    scene = Scene(spark, tmp_path, 1, size, mechanism=mechanism, shards=n_shards, window_seconds=seconds)
    scene.add_batches(5)
    scene.run()
    scene.check()


@pytest.mark.parametrize(
    ("mechanism", "n_shards"),
    [(mechanism, n) for mechanism in MECHANISMS for n in (1, 4, 8)] if current_budget().is_soak else [("prefix", 4)],
)
def test_the_stream_of_incidents_tells_the_changes_of_one_process(
    spark: SparkSession, tmp_path: Path, mechanism: str, n_shards: int
) -> None:
    scene = Scene(
        spark, tmp_path, 1, space="lonlat", max_distance=500_000.0, mechanism=mechanism, shards=n_shards, window_messages=1_000
    )
    for batch in incident_batches(4, 500):
        scene.add(batch)
    scene.run()
    scene.check()


def test_moves_to_other_shards_a_deleted_folder_and_failed_tasks_change_nothing(spark: SparkSession, tmp_path: Path) -> None:
    scene = Scene(spark, tmp_path, 2, mechanism="location", shards=3, window_seconds=25.0)
    scene.add_batches(2)
    scene.run()
    # The folder of the host goes, and with it the process that kept the shards; then the stream moves to others.
    shutil.rmtree(scene.settings.shared_dir)
    assert wish_layout(replace(scene.settings, mechanism="prefix"), 4).n_shards == 3
    scene.add_batches(2)
    scene.run()
    wish_layout(replace(scene.settings, mechanism="keyword_first"), 2)
    scene.add_batches(2)
    failing = read_rows(spark, scene.settings)
    scene.run(failing.mapInArrow(fail_first_tries(str(tmp_path / "failed")), failing.schema))
    assert (tmp_path / "failed").exists()
    scene.check()
    status = stream_status(scene.settings)
    assert (status.version.n_shards, status.mechanism) == (2, "keyword_first")
    # What nobody needs any more is gone.
    ranked = Path(scene.settings.work) / RankedArea("rank").root
    assert len(list((ranked / "snapshots").iterdir())) == 1
    assert len(list((ranked / "log").iterdir())) <= scene.settings.snapshot_batches + 1
    with pytest.raises(nc.NearcastError, match="give the stream another name"):
        start_rank(failing, replace(scene.settings, window_seconds=7.0))


def test_a_batch_that_runs_again_tells_the_same_and_once(spark: SparkSession, tmp_path: Path) -> None:
    scene = Scene(spark, tmp_path, 3, mechanism="keyword", shards=2)
    sink = DyingSink(scene.settings.store, StreamFolders("rank").deliveries)
    rules = RankingRules.of(scene.settings)
    for number in range(2):
        scene.add_batches(1)
        file = f"{number:04d}.parquet"
        told = replace(scene.settings, messages=f"{tmp_path}/messages/{file}", changes=f"{tmp_path}/changes/{file}")
        rows = read_rows(spark, told, is_stream=False)
        # As if the process had died after the shards had taken the batch, and before its changes were seen.
        with pytest.raises(RuntimeError, match="died"):
            RankedRunner(scene.settings, rules, sink)(rows, number)
        for _ in range(2):
            RankedRunner(scene.settings, rules)(rows, number)
    scene.check()


def test_bad_rows_are_put_aside_and_other_sinks_can_tell_repeats(spark: SparkSession, tmp_path: Path) -> None:
    out = str(tmp_path / "changes.json")
    settings = PipelineSettings(
        work=str(tmp_path / "work"), shared_dir=str(tmp_path / "host"), stream="rank", sink_format="json", sink=out
    )
    messages = [(1, "rain in town", 1.0, 1.0), (1, "rain again", 1.0, 1.0), (2, "rain", 500.0, 1.0)]
    changes = [
        ("a", ["rain"], 1.0, 1.0, 1),
        ("b", [], 1.0, 1.0, 1),
        ("c", ["rain"], 1.0, 1.0, 5),
        (None, ["rain"], 1.0, 1.0, 1),
        ("d", ["rain"], 1.0, 1.0, 300),
    ]
    frame = rows_of_frames(
        spark.createDataFrame(messages, "id long, text string, x double, y double"),
        named_changes(spark.createDataFrame(changes, "id string, keywords array<string>, x double, y double, change int")),
    )
    runner = RankedRunner(settings, RankingRules.of(settings))
    runner(frame, 0)
    runner(frame, 0)
    found = spark.read.json(out)
    assert found.count() == 2
    assert [(row["subscription_id"], row["message_id"], row["change"]) for row in without_repeats(found).collect()] == [
        ("a", 1, 1)
    ]
    (facts,) = read_batches(settings)
    assert (facts.read, facts.quarantined) == (8, 6)
    reasons = " ".join(pq.read_table(tmp_path / "work" / StreamFolders("rank").quarantine)["reason"].to_pylist())
    for expected in ("outside lonlat", "still in the window", "no keywords", "change is 5", "id is null", "change is None"):
        assert expected in reasons


class DyingSink(ParquetSink):
    def commit(self, batch: int, staging: str) -> None:
        raise RuntimeError("died")


def fail_first_tries(marker: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A step that gives its rows, then fails, until it has failed once."""

    def step(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            if not Path(marker).exists():
                Path(marker).touch()
                raise RuntimeError("this task was told to fail")

    return step
