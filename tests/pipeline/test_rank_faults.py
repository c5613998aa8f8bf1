"""A ranked stream that is killed without warning, again and again: every change of a list is there, once.

In `make test` one process, whose keeper of shards is killed and which is killed itself; in `make soak` a cluster of executors,
twenty kills of all kinds at random moments, with other shards and a deleted folder in between.
"""

from __future__ import annotations

import random
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearcast as nc
from nearcast.pipeline.keeping.sequencing import latest_changes, ordered_messages
from nearcast.pipeline.keeping.wishes import wish_layout
from nearcast.pipeline.ranked.batch_log import RankedBatch
from nearcast.pipeline.ranked.rules import RankingRules
from nearcast.pipeline.settings import MECHANISMS, PipelineSettings
from nearcast.pipeline.status import read_batches
from nearcast.pipeline.store import StreamFolders
from nearcast.testing.budget import current_budget
from support.killed_streams import KilledStream, files_by_batch
from support.ranked_input import StreamMaker, as_changes, changes_of, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("kills"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]

IS_LONG = current_budget().is_soak
N_KILLS = 20 if IS_LONG else 2
N_FILES = 3 * N_KILLS
MASTER = "local-cluster[2,1,1024]" if IS_LONG else "local[2]"
AREA = StreamFolders("rank")
SOURCES = ("messages", "changes")


class Scene:
    """A stream with files that come bit by bit, and the process that reads them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in SOURCES:
            (folder / name).mkdir()
        batches = list(StreamMaker(4).batches(N_FILES))
        self.tables = {"messages": [batch.messages for batch in batches], "changes": [as_changes(batch) for batch in batches]}
        schema = "id long, keywords array<string>, x double, y double"
        told: dict[str, Any] = {
            "work": str(folder / "work"),
            "shared_dir": str(folder / "host"),
            "space": "plane",
            "max_distance": 14.0,
            "stream": "rank",
            "mechanism": "prefix",
            "shards": 3,
            "window_messages": 25,
            "snapshot_batches": 3,
            **{name: str(folder / name) for name in SOURCES},
            **{f"{name}_options": {"maxFilesPerTrigger": 1} for name in SOURCES},
            "messages_schema": f"{schema}, time double",
            "changes_schema": f"{schema}, k int, spatial_weight double, change byte",
        }
        self.settings = PipelineSettings(**told)
        self.stream = KilledStream("rank", folder, {**told, "master": MASTER, "trigger": "100 milliseconds"})

    def add_file(self, number: int) -> None:
        for name, tables in self.tables.items():
            aside = self.folder / f"{number:04d}.part"
            pq.write_table(tables[number], aside)
            aside.rename(self.folder / name / f"{number:04d}.parquet")

    def has_read(self, n_files: int) -> bool:
        """Whether the first files are done. After a kill a batch may take several of them, so batches say nothing."""
        n_rows = sum(table.num_rows for tables in self.tables.values() for table in tables[:n_files])
        return bool(sum(batch.read for batch in read_batches(self.settings)) >= n_rows)

    def check(self) -> None:
        """Every batch has told what one process says of the files that Spark says it read."""
        ranker = nc.Ranker(**RankingRules.of(self.settings).engine_settings(self.settings.store))
        for number, files in enumerate(files_by_batch(self.folder / "work" / AREA.checkpoint, SOURCES)):
            read = {
                name: [tables[0].slice(0, 0), *(tables[file] for file in files[name])] for name, tables in self.tables.items()
            }
            put, removed = latest_changes(pa.concat_tables(read["changes"]))
            messages = ordered_messages(pa.concat_tables(read["messages"]))
            expected = changes_of(ranker, RankedBatch.of(put, removed, messages))
            folder = self.folder / "work" / AREA.deliveries / f"batch={number}"
            assert sorted(rows_of(pq.read_table(folder, partitioning=None))) == expected, number

    def _table(self, name: str, files: list[int]) -> pa.Table:
        tables = self.tables[name]
        return pa.concat_tables([tables[0].slice(0, 0), *[tables[file] for file in files]])


def test_kills_at_random_moments_lose_and_repeat_no_change(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    draw = random.Random(11)
    scene = Scene(tmp_path)
    stream, settings = scene.stream, scene.settings
    scene.add_file(0)
    stream.start()
    done = 1
    try:
        for kill in range(N_KILLS):
            last = (kill + 1) * N_FILES // N_KILLS
            for number in range(done, last):
                scene.add_file(number)
            stream.wait_for(lambda n=done: scene.has_read(n))  # type: ignore[misc]
            done = last
            if kill % 3 == 1:
                wish_layout(replace(settings, mechanism=MECHANISMS[kill % 6]), 1 + kill % 4)
            time.sleep(draw.random() * 2)
            if kill % 2:
                stream.kill_all()
                if kill % 4 == 1:
                    shutil.rmtree(settings.shared_dir, ignore_errors=True)
                stream.start()
            elif kill % 4 == 2:
                stream.kill_executor()
            else:
                stream.kill_keepers()
        stream.wait_for(lambda: scene.has_read(N_FILES))
    finally:
        stream.kill_all()
    scene.check()
