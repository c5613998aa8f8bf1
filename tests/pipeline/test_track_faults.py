"""A tracked stream that is killed without warning: every change of a result is there, once.

In `make test` a process whose keeper is killed and which is then killed itself, and taken up by another; in `make soak` a
cluster of executors, twenty kills of all kinds at random moments, with other shards and a deleted folder in between.
"""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from nearcast.cli.main import app
from nearcast.pipeline.keeping.wishes import wish_layout
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.status import read_batches
from nearcast.pipeline.store import StreamFolders
from nearcast.pipeline.tracked.rules import TrackingRules
from nearcast.testing.budget import current_budget
from nearcast.testing.oracles.moving import MovingOracle
from support.killed_streams import KilledStream, files_by_batch
from support.tracked_input import OneProcess, RawBatch, TrackMaker, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

SOURCES = ("messages", "moves", "changes")
AREA = StreamFolders("track")
ONE = {"maxFilesPerTrigger": 1}


class Scene:
    """A stream with files that come bit by bit, and the process that reads them."""

    def __init__(self, folder: Path, n_files: int, master: str) -> None:
        self.folder = folder
        for name in SOURCES:
            (folder / name).mkdir()
        maker = TrackMaker(8)
        self.raw = [maker.batch() for _ in range(n_files)]
        self.n_added = 0
        box = "x0 double, y0 double, x1 double, y1 double"
        kind = "string" if pa.types.is_string(self.raw[0].moves["id"].type) else "long"
        words = f"id {kind}, keywords array<string>"
        told: dict[str, Any] = {
            "work": str(folder / "work"),
            "shared_dir": str(folder / "host"),
            "space": maker.space,
            "stream": "track",
            "shards": 3,
            "snapshot_batches": 3,
            "lifetime_seconds": 5.0,
            **{name: str(folder / name) for name in SOURCES},
            **{f"{name}_options": ONE for name in SOURCES},
            "messages_schema": f"{words}, {box}, time double, expires double",
            "moves_schema": f"id {kind}, region string, {box}, time double",
            "changes_schema": f"{words}, interest string, region string, {box}, change byte, time double",
        }
        self.settings = PipelineSettings(**told)
        self.stream = KilledStream("track", folder, {**told, "master": master, "trigger": "100 milliseconds"})

    def add_files(self, up_to: int) -> None:
        for number in range(self.n_added, up_to):
            for name in SOURCES:
                aside = self.folder / f"{number:04d}.part"
                pq.write_table(getattr(self.raw[number], name), aside)
                aside.rename(self.folder / name / f"{number:04d}.parquet")
        self.n_added = up_to

    def n_batches(self) -> int:
        return len(self.settings.store.names(AREA.batches))

    def n_read(self) -> int:
        return sum(batch.read for batch in read_batches(self.settings))

    def n_rows(self, n_files: int) -> int:
        """Of the first files. After a kill a batch may take several of them, so batches say nothing."""
        return sum(table.num_rows for raw in self.raw[:n_files] for table in (raw.changes, raw.moves, raw.messages))

    def check(self) -> None:
        """Every batch has told what one process says of the files that Spark says it read."""
        rules = TrackingRules.of(self.settings)
        one = OneProcess(MovingOracle(rules.space), rules.space, rules.tick_seconds, rules.lifetime_seconds)
        n_changes = 0
        for number, files in enumerate(files_by_batch(self.folder / "work" / AREA.checkpoint, SOURCES)):
            tables = {name: self._table(name, read) for name, read in files.items()}
            expected = one.take(RawBatch(tables["changes"], tables["moves"], tables["messages"]))
            folder = self.folder / "work" / AREA.deliveries / f"batch={number}"
            assert sorted(rows_of(pq.read_table(folder, partitioning=None))) == expected, number
            n_changes += len(expected)
        assert self.n_read() == self.n_rows(len(self.raw))
        assert n_changes > 0

    def _table(self, name: str, files: list[int]) -> pa.Table:
        nothing: pa.Table = getattr(self.raw[0], name).slice(0, 0)
        return pa.concat_tables([nothing, *[getattr(self.raw[file], name) for file in files]])


@pytest.mark.xdist_group("spark_lists")
def test_a_killed_stream_is_taken_up_by_another_process(spark: SparkSession, tmp_path: Path) -> None:
    scene = Scene(tmp_path, 4, "local[2]")
    scene.add_files(1)
    scene.stream.start()
    try:
        scene.stream.wait_for(lambda: scene.n_batches() >= 1)
        scene.stream.kill_keepers()
        scene.add_files(2)
        scene.stream.wait_for(lambda: scene.n_batches() >= 2)
        # Somewhere in the next batch.
        scene.add_files(3)
        time.sleep(0.3)
    finally:
        scene.stream.kill_all()
    shutil.rmtree(scene.settings.shared_dir)
    scene.add_files(4)
    told = ("--settings", str(tmp_path / "settings.toml"), "--set", "trigger=available_now")
    outcome = CliRunner().invoke(app, ["pipeline", "track", *told])
    assert "layout 1, hashing" in outcome.output
    scene.check()


@pytest.mark.xdist_group("kills")
@pytest.mark.skipif(not current_budget().is_soak, reason="the test above has two of them; twenty: make soak")
@pytest.mark.parametrize("part", range(4))
def test_kills_at_random_moments_lose_and_repeat_no_change(tmp_path: Path, part: int) -> None:
    pytest.importorskip("pyspark")
    draw, n_kills = random.Random(part), 5
    scene = Scene(tmp_path, 3 * n_kills, "local-cluster[2,1,1024]")
    stream = scene.stream
    scene.add_files(1)
    stream.start()
    try:
        for number in range(n_kills):
            before, kill = scene.n_added, part + number
            scene.add_files(3 * (number + 1))
            stream.wait_for(lambda n=before: scene.n_read() >= scene.n_rows(n))  # type: ignore[misc]
            if kill % 3 == 1:
                wish_layout(scene.settings, 1 + kill % 5)
            time.sleep(draw.random() * 2)
            if kill % 2:
                stream.kill_all()
                if kill % 4 == 1:
                    shutil.rmtree(scene.settings.shared_dir, ignore_errors=True)
                stream.start()
            elif kill % 4 == 2:
                stream.kill_executor()
            else:
                stream.kill_keepers()
        stream.wait_for(lambda: scene.n_read() == scene.n_rows(len(scene.raw)))
    finally:
        stream.kill_all()
    scene.check()
