"""Step "track" on a real session gives the changes of one process, batch by batch, whatever happens to its tasks."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearcast as nc
from nearcast.errors import PipelineError
from nearcast.pipeline.io.sinks import ParquetSink, without_repeats
from nearcast.pipeline.keeping.areas import TrackedArea
from nearcast.pipeline.keeping.wishes import wish_layout
from nearcast.pipeline.ranked.stream import start_rank
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.status import read_batches, stream_status
from nearcast.pipeline.store import StreamFolders
from nearcast.pipeline.tracked.rules import TrackingRules
from nearcast.pipeline.tracked.sources import read_rows
from nearcast.pipeline.tracked.sources import rows_of as rows_of_frames
from nearcast.pipeline.tracked.stream import TrackedRunner, start_track
from nearcast.testing.budget import current_budget
from nearcast.testing.oracles.moving import MovingOracle
from support.tracked_input import Change, OneProcess, TrackMaker, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark_lists"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

SOURCES = ("messages", "moves", "changes")
CELLS = [(n_shards, size, tick) for n_shards in (1, 4, 8) for size, tick in ((5, 0.0), (30, 1.0), (90, 2.5))]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One keeper for all tests that do not take it away: starting it takes longer than what they ask of it."""
    return str(tmp_path_factory.mktemp("host"))


class Scene:
    """A tracked stream with what one process says of it."""

    def __init__(self, spark: SparkSession, folder: Path, seed: int, most: int = 24, **given: Any) -> None:
        self.spark, self.folder = spark, folder
        for name in SOURCES:
            (folder / name).mkdir()
        one = {"maxFilesPerTrigger": 1}
        self.maker = TrackMaker(seed, most=most)
        named: dict[str, Any] = {name: str(folder / name) for name in SOURCES}
        options: dict[str, Any] = {f"{name}_options": one for name in SOURCES}
        self.settings = replace(
            PipelineSettings(work=str(folder / "work"), shared_dir=str(folder / "host"), space=self.maker.space),
            **{"stream": "track", "snapshot_batches": 3, **named, **options, **given},
        )
        rules = TrackingRules.of(self.settings)
        self.one = OneProcess(MovingOracle(rules.space), rules.space, rules.tick_seconds, rules.lifetime_seconds)
        self.expected: list[list[Change]] = []

    def add_batches(self, n: int) -> None:
        """A file in each of the sources, in which the next batch finds them."""
        for _ in range(n):
            raw, number = self.maker.batch(), len(self.expected)
            for name in SOURCES:
                table: pa.Table = getattr(raw, name)
                aside = self.folder / f"{name}-{number:04d}"
                # The rows in an order that is not that of their times.
                pq.write_table(table.take(pa.array(range(table.num_rows)[::-1], pa.int64())), aside)
                os.utime(aside, (1_000_000 + number, 1_000_000 + number))
                aside.rename(self.folder / name / f"{number:04d}.parquet")
            self.expected.append(self.one.take(raw))

    def run(self) -> None:
        start_track(read_rows(self.spark, self.settings), self.settings).awaitTermination()

    def check(self) -> None:
        folder = Path(self.settings.work) / StreamFolders("track").deliveries
        for number, expected in enumerate(self.expected):
            found = sorted(rows_of(pq.read_table(folder / f"batch={number}", partitioning=None)))
            assert found == expected, number
        assert [batch.batch for batch in read_batches(self.settings)] == list(range(len(self.expected)))
        assert sum(len(changes) for changes in self.expected) > 0


@pytest.mark.skipif(not current_budget().is_soak, reason="the tests below have two of them; all: make soak")
@pytest.mark.parametrize(("n_shards", "size", "tick"), CELLS)
def test_the_stream_tells_the_changes_of_one_process(
    spark: SparkSession, tmp_path: Path, host: str, n_shards: int, size: int, tick: float
) -> None:
    times = {"tick_seconds": tick, "lifetime_seconds": tick}
    scene = Scene(spark, tmp_path, size + n_shards, size, shards=n_shards, shared_dir=host, **times)
    scene.add_batches(5)
    scene.run()
    scene.check()


def test_other_shards_and_a_deleted_folder_change_nothing(spark: SparkSession, tmp_path: Path) -> None:
    scene = Scene(spark, tmp_path, 3, shards=3, lifetime_seconds=4.0, snapshot_batches=2)
    scene.add_batches(2)
    scene.run()
    # The folder of the host goes, and with it the process that kept the shards; then the stream moves to others.
    shutil.rmtree(scene.settings.shared_dir)
    assert wish_layout(scene.settings, 2).n_shards == 3
    scene.add_batches(2)
    scene.run()
    scene.check()
    status = stream_status(scene.settings)
    assert (status.version.n_shards, status.mechanism) == (2, "hashing")
    # What nobody needs any more is gone.
    tracked = Path(scene.settings.work) / TrackedArea("track").root
    assert len(list((tracked / "snapshots").iterdir())) == 1
    assert len(list((tracked / "log").iterdir())) <= scene.settings.snapshot_batches + 1
    rows = read_rows(spark, scene.settings)
    with pytest.raises(nc.NearcastError, match="give the stream another name"):
        start_track(rows, replace(scene.settings, tick_seconds=7.0))
    with pytest.raises(nc.NearcastError, match="track shares out by hashing"):
        start_track(rows, replace(scene.settings, mechanism="prefix"))
    with pytest.raises(nc.NearcastError, match="is a tracked one"):
        start_rank(rows, replace(scene.settings, max_distance=1.0))
    with pytest.raises(nc.NearcastError, match="by hashing"):
        wish_layout(replace(scene.settings, mechanism="location"), 3)


def test_a_batch_that_runs_again_tells_the_same_and_once(spark: SparkSession, tmp_path: Path, host: str) -> None:
    scene = Scene(spark, tmp_path, 4, shards=2, tick_seconds=0.0, shared_dir=host)
    sink = DyingSink(scene.settings.store, StreamFolders("track").deliveries)
    rules = TrackingRules.of(scene.settings)
    for number in range(2):
        scene.add_batches(1)
        files: dict[str, Any] = {name: f"{tmp_path}/{name}/{number:04d}.parquet" for name in SOURCES}
        told = replace(scene.settings, **files)
        rows = read_rows(spark, told, is_stream=False)
        # As if the process had died after the shards had taken the batch, and before its changes were seen.
        with pytest.raises(RuntimeError, match="died"):
            TrackedRunner(scene.settings, rules, sink)(rows, number)
        for _ in range(2):
            TrackedRunner(scene.settings, rules)(rows, number)
    scene.check()


def test_bad_rows_are_put_aside_and_other_sinks_can_tell_repeats(spark: SparkSession, tmp_path: Path, host: str) -> None:
    out = str(tmp_path / "changes.json")
    settings = PipelineSettings(
        work=str(tmp_path / "work"), shared_dir=host, stream="track", sink_format="json", sink=out, shards=2
    )
    messages = [
        (1, "rain in town", 1.0, 1.0, 10.0, None),
        (1, "rain again", 1.0, 1.0, 10.5, None),
        (2, "rain", 500.0, 1.0, 10.0, None),
        (3, "rain", 1.0, 1.0, 10.0, 9.0),
        (4, "rain", 1.0, 1.0, float("nan"), None),
    ]
    moves = [
        ("a", 0.0, 0.0, 2.0, 2.0, 10.0),
        ("b", 0.0, 0.0, 2.0, 2.0, 10.0),
        ("a", None, 0.0, 2.0, 2.0, 11.0),
        ("a", 5.0, 0.0, 2.0, 2.0, 11.0),
        (None, 0.0, 0.0, 2.0, 2.0, 11.0),
    ]
    changes = [("a", ["rain"], 50.0, 1), ("c", ["rain"], None, 5), ("d", None, None, 1)]
    frame = frames(spark, messages, moves, changes)
    runner = TrackedRunner(settings, TrackingRules.of(settings))
    runner(frame, 0)
    runner(frame, 0)
    found = spark.read.json(out)
    assert found.count() == 2
    told = [(row["tick"], row["subscription_id"], row["message_id"], row["change"]) for row in without_repeats(found).collect()]
    # Tick 0 files, tick 1 moves, tick 2 publishes.
    assert told == [(2, "a", 1, 1)]
    (facts,) = read_batches(settings)
    assert (facts.read, facts.quarantined) == (13, 10)
    reasons = " ".join(pq.read_table(tmp_path / "work" / StreamFolders("track").quarantine)["reason"].to_pylist())
    for expected in (
        "outside lonlat",
        "comes twice in one batch",
        "expires > time",
        "no subscription 'b'",
        "are null",
        "inverted",
        "id is null",
        "change is 5",
        "neither keywords nor interest",
    ):
        assert expected in reasons
    with pytest.raises(PipelineError, match="make them the same"):
        frames(spark, messages, [(1, *moves[0][1:])], changes, "id long")
    without_place = spark.createDataFrame([("a", 2)], "id string, x long")
    with pytest.raises(PipelineError, match="expected id, and x0 or region"):
        rows_of_frames(frame, without_place, spark.createDataFrame([("a", "rain")], "id string, interest string"))


def frames(spark: SparkSession, messages: Any, moves: Any, changes: Any, move_id: str = "id string") -> DataFrame:
    box = "x0 double, y0 double, x1 double, y1 double"
    changes = [(id, words, *([side] * 4 if side else [None] * 4), change) for id, words, side, change in changes]
    return rows_of_frames(
        spark.createDataFrame(messages, "id long, text string, x double, y double, time double, expires double"),
        spark.createDataFrame(moves, f"{move_id}, {box}, time double"),
        spark.createDataFrame(changes, f"id string, keywords array<string>, {box}, change int"),
    )


class DyingSink(ParquetSink):
    def commit(self, batch: int, staging: str) -> None:
        raise RuntimeError("died")
